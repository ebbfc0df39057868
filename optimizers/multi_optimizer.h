// MultiOptimizer: several optimizers for the variables of one model (keras.optimizers).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/optimizers/optimizer.h>

namespace keel {

// Assigns optimizers to variables by their paths (keras.optimizers.OptimizerMap):
//   const OptimizerMap by_path(optimizers::SGD({.learning_rate = 0.1}),
//                              {{"embedding.*", optimizers::Adagrad({})}});
// A key is the path of a variable (Variable::path, "dense/kernel") or a regular expression that
// matches a whole path ("dense.*"). Several keys may have the same optimizer.
class OptimizerMap {
 public:
  // The name of the class in configs and files.
  static constexpr const char* kClassName = "OptimizerMap";
  // The optimizers of keys, in order.
  using Entries = std::vector<std::pair<std::string, OptimizerHandle>>;

  // Throws ValueError if a handle is empty, an optimizer is a MultiOptimizer or a
  // LossScaleOptimizer, a key is there twice, or a key is not a regular expression.
  explicit OptimizerMap(OptimizerHandle default_optimizer, Entries optimizer_map = {});

  // Returns the optimizer of the key that equals `path`, or else of the key that matches it, or
  // else the default optimizer. Throws ValueError if several keys match.
  const OptimizerHandle& operator[](const std::string& path) const;

  // Returns the optimizer of the variables that no key matches.
  const OptimizerHandle& default_optimizer() const { return default_optimizer_; }
  const Entries& entries() const { return entries_; }  // without the default optimizer
  // Returns the different optimizers: the default one, then those of the keys.
  std::vector<OptimizerHandle> optimizers() const;

  // Return and read the Keras config. An optimizer with several keys becomes one for each key.
  Config get_config() const;
  static OptimizerMap from_config(const Config& config);

 private:
  OptimizerHandle default_optimizer_;
  Entries entries_;
};

// Options of MultiOptimizer.
struct MultiOptimizerOptions {
  std::optional<OptimizerMap> optimizer_map = {};  // required
  std::optional<double> loss_scale_factor = {};    // see OptimizerOptions
  std::string name = {};                           // if empty, "multi_optimizer"
};

// Updates each variable by its optimizer (keras.optimizers.MultiOptimizer):
//   model->compile({.optimizer = optimizers::MultiOptimizer({.optimizer_map = by_path}), ...});
// The first step of a variable decides on its optimizer. A function that chooses optimizers, which
// Keras also accepts, is not supported.
//
// Each optimizer keeps its options, its learning rate and its state:
//   - Clipping, weight decay, averages and accumulation are those of each optimizer.
//     global_clipnorm is the norm of the gradients of its own variables.
//   - loss_scale_factor must be unset in them; set that of the MultiOptimizer.
//   - learning_rate() and set_learning_rate() throw RuntimeError, and with them the callbacks
//     LearningRateScheduler and ReduceLROnPlateau. Use schedules, or the members of optimizers().
//   - iterations() counts the calls, also while an optimizer accumulates gradients.
// apply_gradients() throws ValueError, before anything changes, if none of the variables of one
// optimizer has a gradient. In replicas every optimizer makes a step of its own, one after the
// other, and this error may occur after the steps of others.
//
// Checkpoints and .keras files hold the state: the number of calls, a learning rate that stays 0,
// and then the variables of each optimizer in the order of optimizers(). Saving to .h5 files throws
// NotImplementedError unless the optimizer is left out.
class MultiOptimizer final : public Optimizer {
 public:
  static constexpr const char* kClassName = "MultiOptimizer";  // the name in configs and files
  using Options = MultiOptimizerOptions;                       // the options of the constructor

  // Throws ValueError if optimizer_map is missing, or if one of its optimizers has a
  // loss_scale_factor.
  explicit MultiOptimizer(const Options& options);

  void apply_gradients(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables) override;
  const std::vector<OptimizerHandle>& optimizers() const override { return optimizers_; }
  const Optimizer& optimizer_of(const Variable& variable) const override;
  std::vector<Variable> wrapper_variables() const override;
  Config get_config() const override;
  // Reads what get_config() returns.
  static std::shared_ptr<MultiOptimizer> from_config(const Config& config);

 private:
  size_t index_of(const Variable& variable) const;

  const Options options_;
  const std::vector<OptimizerHandle> optimizers_;
  Variable learning_rate_;                      // as in Keras's files; always 0
  mutable std::mutex mutex_;                    // guards indices_
  mutable std::map<uint64_t, size_t> indices_;  // in optimizers_, by Variable::id
};

namespace optimizers {
// A handle to the optimizer, under Keras's name.
using MultiOptimizer = Handle<keel::MultiOptimizer>;
using OptimizerMap = keel::OptimizerMap;  // under Keras's name
}  // namespace optimizers

}  // namespace keel

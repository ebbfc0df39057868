// EmbeddingOptimizer: how an embedding engine updates the rows of a table. It differs from the
// optimizers for dense variables: Adagrad has no epsilon, Adam no bias correction and its epsilon
// inside the root, and only rows that a batch looked up are touched.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/slot_variables.h>
#include <keel/optimizers/embedding/tpu_optimizers.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

namespace tpu {  // optimizers/embedding/tpu_parameters.h
struct StochasticGradientDescentParameters;
struct AdagradParameters;
struct AdamParameters;
struct FtrlParameters;
struct ProximalAdagradParameters;
struct ProximalYogiParameters;
struct MomentumParameters;
struct RMSPropParameters;
struct FrequencyEstimatorParameters;
}  // namespace tpu

// An embedding optimizer as engines see it. Immutable, shared by handle.
struct TableOptimizerState {
  std::string class_name;  // "SGD", "Adagrad", ...; of V1 parameters "AdagradParameters", ...
  std::shared_ptr<const EngineRule> rule;
  // At the time of translation if there is a source; EmbeddingOptimizer::current_learning_rate
  // knows.
  LearningRate learning_rate = 0.01;
  // Bounds of each element of the summed row gradient, before the rule.
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  // w -= factor w before the rule (times the learning rate if multiply_...). 0: off.
  double weight_decay_factor = 0;
  bool multiply_weight_decay_factor_by_learning_rate = false;
  // Bounds of each weight after the rule.
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  // True: gradients of a row are summed over the batch and the rule runs once; false: once for
  // each occurrence, in the order replica, feature, sample, position.
  bool use_gradient_accumulation = true;
  bool low_dimensional_packing_status = false;
  // False for Adam that moves every row at every step.
  bool lazy = true;
  // What the rule's slots start from, in their order; create_slots() asks the function first.
  std::vector<Initializer> slot_initializers = {};
  SlotVariableCreationFn slot_variable_creation_fn = {};
  // The only width that its tables may have.
  std::optional<int64_t> required_dim = {};
  // Made from parameters of the V1 engine, where slots are variables "<table>/<suffix>".
  bool v1_parameters = false;
  std::vector<std::string> v1_slot_suffixes = {};
  // A tpu::CustomOptimizer, and its hyper-parameters.
  bool custom = false;
  std::vector<LearningRate> hyperparameters = {};
  // {"class_name", "config"} of the options it was made from, without the rate and what files
  // cannot hold.
  Config config = {};
  // The Keras optimizer this was translated from; null otherwise. Its `iterations` drive its
  // schedule, and files keep the slots under its names.
  std::shared_ptr<Optimizer> source = nullptr;
  std::vector<std::string> source_slot_names = {};
};

// What TableConfig and TPUEmbedding take: nothing, a name ("sgd", "adagrad", "adam", "ftrl"), the
// options of an embedding optimizer, or a Keras optimizer, which is translated.
//
// ValueError for an unknown name, for parameters out of range or left out, bounds of gradients or
// an Adam that is not lazy without gradient accumulation, a schedule as rate of an embedding
// optimizer, another number of slot initializers than of slot names, and a Keras optimizer or
// setting that an engine does not have (see translate_keras_optimizer).
class EmbeddingOptimizer {
 public:
  EmbeddingOptimizer() = default;                           // unset
  EmbeddingOptimizer(const char* name);                     // NOLINT: implicit
  EmbeddingOptimizer(const std::string& name);              // NOLINT: implicit
  EmbeddingOptimizer(const tpu::SGD& options);              // NOLINT: implicit
  EmbeddingOptimizer(const tpu::Adagrad& options);          // NOLINT: implicit
  EmbeddingOptimizer(const tpu::Adam& options);             // NOLINT: implicit
  EmbeddingOptimizer(const tpu::FTRL& options);             // NOLINT: implicit
  EmbeddingOptimizer(const tpu::AdagradMomentum& options);  // NOLINT: implicit
  EmbeddingOptimizer(const tpu::CustomOptimizer& options);  // NOLINT: implicit
  // Of the V1 engine.
  EmbeddingOptimizer(const tpu::StochasticGradientDescentParameters& options);  // NOLINT: implicit
  EmbeddingOptimizer(const tpu::AdagradParameters& options);                    // NOLINT: implicit
  EmbeddingOptimizer(const tpu::AdamParameters& options);                       // NOLINT: implicit
  EmbeddingOptimizer(const tpu::FtrlParameters& options);                       // NOLINT: implicit
  EmbeddingOptimizer(const tpu::ProximalAdagradParameters& options);            // NOLINT: implicit
  EmbeddingOptimizer(const tpu::ProximalYogiParameters& options);               // NOLINT: implicit
  EmbeddingOptimizer(const tpu::MomentumParameters& options);                   // NOLINT: implicit
  EmbeddingOptimizer(const tpu::RMSPropParameters& options);                    // NOLINT: implicit
  EmbeddingOptimizer(const tpu::FrequencyEstimatorParameters& options);         // NOLINT: implicit
  template <std::derived_from<Optimizer> T>
  EmbeddingOptimizer(const Handle<T>& optimizer)  // NOLINT: implicit
      : EmbeddingOptimizer(std::shared_ptr<Optimizer>(optimizer.shared())) {}

  explicit operator bool() const { return state_ != nullptr; }
  const TableOptimizerState* operator->() const { return state_.get(); }
  const TableOptimizerState& operator*() const { return *state_; }

  // By value: the same class and equal parameters; functions and initializers by identity (see
  // SharedFunction). Translated ones are equal if their source is the same object.
  friend bool operator==(const EmbeddingOptimizer& a, const EmbeddingOptimizer& b);
  size_t hash() const;  // equal for equal ones

  // The rate now: of the source optimizer's iterations, or the number or callable given.
  // RuntimeError if unset.
  double current_learning_rate() const;
  // The same with another rate, a number or a function; a translated one follows its source no
  // more. RuntimeError if unset.
  EmbeddingOptimizer with_learning_rate(LearningRate rate) const;
  // The hyper-parameters of a custom optimizer now.
  std::vector<double> current_hyperparameters() const;

 private:
  explicit EmbeddingOptimizer(std::shared_ptr<Optimizer> keras_optimizer);
  std::shared_ptr<const TableOptimizerState> state_;
};

// The embedding optimizer that does what a Keras optimizer does, with the rate that the Keras
// optimizer has at each step. By class name: SGD, Adagrad, Adam (lazy, epsilon inside the root) and
// Ftrl become SGD, Adagrad, Adam and FTRL; ValueError for any other, and for a setting beyond the
// learning rate, weight_decay (of all variables: exclude_from_weight_decay is refused), and
// initial_accumulator_value, beta_1, beta_2, epsilon of Adam, and learning_rate_power, l1, l2, beta
// of Ftrl that has not its default.
EmbeddingOptimizer translate_keras_optimizer(const OptimizerHandle& optimizer);

// What happens to one row.
distribute::RowUpdate row_update(const TableOptimizerState& optimizer);

// Null if unset; {"class_name", "config"} of an embedding optimizer; the same under "keras" for a
// translated one. A rate that is a function is written as its value of now: no file can hold it.
// NotImplementedError for a custom optimizer and one with a slot_variable_creation_fn.
Config encode(const EmbeddingOptimizer& optimizer);
void decode(const Config& config, EmbeddingOptimizer& optimizer);

}  // namespace keel

template <>
struct std::hash<keel::EmbeddingOptimizer> {
  size_t operator()(const keel::EmbeddingOptimizer& optimizer) const { return optimizer.hash(); }
};

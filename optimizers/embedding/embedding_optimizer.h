// EmbeddingOptimizer: how an embedding engine updates the rows of a table.
//
// It differs from the optimizers for dense variables: Adagrad has no epsilon, Adam has no bias
// correction and its epsilon is inside the square root, and a step changes only the rows that a
// batch looked up.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/optimizers/embedding/bounds_and_slots.h>
#include <keel/optimizers/embedding/tpu_optimizers.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

struct EngineRule;
namespace distribute {
struct RowUpdate;  // the update of one row by an embedding engine
}

namespace tpu {  // optimizers/embedding/sparse_core_optimizers.h
struct LaProp;
struct F2A;
struct RowwiseAdagrad;  // optimizers/embedding/rowwise_adagrad.h
// Those of optimizers/embedding/tpu_parameters.h.
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

// The state of an embedding optimizer, as read by the engines. Immutable and shared by handle.
struct TableOptimizerState {
  std::string class_name;  // "SGD", "Adagrad", ...; for V1 parameters "AdagradParameters", ...
  std::shared_ptr<const EngineRule> rule;  // the arithmetic of the update
  // If there is a source, the rate at the time of translation; use
  // EmbeddingOptimizer::current_learning_rate for the current one.
  LearningRate learning_rate = 0.01;
  // Bounds of each element of the summed row gradient, applied before the rule.
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  // Weight decay w -= factor w before the rule, where the factor is multiplied by the learning rate
  // if multiply_weight_decay_factor_by_learning_rate is set. 0 turns it off.
  double weight_decay_factor = 0;
  bool multiply_weight_decay_factor_by_learning_rate = false;
  // At most one is positive; 0 turns them off. clipnorm scales the gradient of a table, summed by
  // row over the global batch, down to this norm. global_clipnorm scales the gradients of all
  // tables that have an equal optimizer by one factor, so that the norm of all of them does not
  // exceed it.
  double clipnorm = 0, global_clipnorm = 0;
  // Bounds of each weight, applied after the rule.
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  // If true, the gradients of a row are summed over the batch and the rule runs once. If false, the
  // rule runs once per occurrence, in the order replica, feature, sample, position.
  bool use_gradient_accumulation = true;
  bool low_dimensional_packing_status = false;  // a storage hint; changes no value
  // False for an Adam that updates every row in every step.
  bool lazy = true;
  // The initial values of the rule's slots, in their order. create_slots() prefers
  // slot_variable_creation_fn.
  std::vector<Initializer> slot_initializers = {};
  SlotVariableCreationFn slot_variable_creation_fn = {};
  // The only row width that tables may have, if set.
  std::optional<int64_t> required_dim = {};
  // True if made from parameters of the V1 engine, whose slots are variables "<table>/<suffix>".
  bool v1_parameters = false;
  std::vector<std::string> v1_slot_suffixes = {};  // in the order of the slots
  bool custom = false;                             // true for a tpu::CustomOptimizer
  // Numbers or functions that the rule reads in each step: those of a tpu::CustomOptimizer, and the
  // global_step of tpu::LaProp and tpu::F2A.
  std::vector<LearningRate> hyperparameters = {};
  // {"class_name", "config"} of the options it was made from, without the learning rate and without
  // values that files cannot hold.
  Config config = {};
  // The Keras optimizer that this was translated from, or null. Its `iterations` drive its
  // schedule, and files store the slots under its slot names.
  std::shared_ptr<Optimizer> source = nullptr;
  std::vector<std::string> source_slot_names = {};  // in the order of the slots
};

// The optimizer argument of TableConfig and TPUEmbedding. It is unset, or it is constructed from a
// name ("sgd", "adagrad", "adam", "ftrl"), from the options of an embedding optimizer, or from a
// Keras optimizer, which is translated.
//
// Construction throws ValueError for
//   - an unknown name,
//   - a parameter that is out of range or missing,
//   - gradient bounds or norms, or an Adam that is not lazy, without gradient accumulation,
//   - more than one of clipvalue, clipnorm and global_clipnorm,
//   - a schedule as the learning rate or global_step of an embedding optimizer,
//   - a number of slot initializers that differs from the number of slot names,
//   - a Keras optimizer or setting that the engines do not support (see translate_keras_optimizer).
class EmbeddingOptimizer {
 public:
  EmbeddingOptimizer() = default;  // unset
  // The optimizer with this name and default options.
  EmbeddingOptimizer(const char* name);  // NOLINT: implicit
  // Accepts the name as a std::string, too.
  EmbeddingOptimizer(const std::string& name);  // NOLINT: implicit
  // The optimizer with these options.
  EmbeddingOptimizer(const tpu::SGD& options);              // NOLINT: implicit
  EmbeddingOptimizer(const tpu::Adagrad& options);          // NOLINT: implicit
  EmbeddingOptimizer(const tpu::Adam& options);             // NOLINT: implicit
  EmbeddingOptimizer(const tpu::FTRL& options);             // NOLINT: implicit
  EmbeddingOptimizer(const tpu::AdagradMomentum& options);  // NOLINT: implicit
  EmbeddingOptimizer(const tpu::CustomOptimizer& options);  // NOLINT: implicit
  // The optimizers of optimizers/embedding/sparse_core_optimizers.h.
  EmbeddingOptimizer(const tpu::LaProp& options);  // NOLINT: implicit
  EmbeddingOptimizer(const tpu::F2A& options);     // NOLINT: implicit
  // The optimizer of optimizers/embedding/rowwise_adagrad.h.
  EmbeddingOptimizer(const tpu::RowwiseAdagrad& options);  // NOLINT: implicit
  // Parameters of the V1 engine (optimizers/embedding/tpu_parameters.h).
  EmbeddingOptimizer(const tpu::StochasticGradientDescentParameters& options);  // NOLINT: implicit
  EmbeddingOptimizer(const tpu::AdagradParameters& options);                    // NOLINT: implicit
  EmbeddingOptimizer(const tpu::AdamParameters& options);                       // NOLINT: implicit
  EmbeddingOptimizer(const tpu::FtrlParameters& options);                       // NOLINT: implicit
  EmbeddingOptimizer(const tpu::ProximalAdagradParameters& options);            // NOLINT: implicit
  EmbeddingOptimizer(const tpu::ProximalYogiParameters& options);               // NOLINT: implicit
  EmbeddingOptimizer(const tpu::MomentumParameters& options);                   // NOLINT: implicit
  EmbeddingOptimizer(const tpu::RMSPropParameters& options);                    // NOLINT: implicit
  EmbeddingOptimizer(const tpu::FrequencyEstimatorParameters& options);         // NOLINT: implicit
  // A Keras optimizer, translated.
  template <std::derived_from<Optimizer> T>
  EmbeddingOptimizer(const Handle<T>& optimizer)  // NOLINT: implicit
      : EmbeddingOptimizer(std::shared_ptr<Optimizer>(optimizer.shared())) {}

  // Returns true unless unset.
  explicit operator bool() const { return state_ != nullptr; }
  // Returns the state. Must not be called if unset.
  const TableOptimizerState* operator->() const { return state_.get(); }
  // Returns the state by reference. Must not be called if unset.
  const TableOptimizerState& operator*() const { return *state_; }

  // Compares by value: the same class and equal parameters. Functions and initializers are compared
  // by identity (see SharedFunction). Translated optimizers are equal if their source is the same
  // object.
  friend bool operator==(const EmbeddingOptimizer& a, const EmbeddingOptimizer& b);
  size_t hash() const;  // equal for equal optimizers

  // Returns the current learning rate: at the iterations of the source optimizer if there is one,
  // otherwise the given number or the result of the given function. Throws RuntimeError if unset.
  double current_learning_rate() const;
  // Returns a copy with another learning rate, a number or a function. A translated optimizer no
  // longer follows its source. Throws RuntimeError if unset.
  EmbeddingOptimizer with_learning_rate(LearningRate rate) const;
  // Returns the current hyperparameters of a custom optimizer. Throws RuntimeError if unset.
  std::vector<double> current_hyperparameters() const;

 private:
  explicit EmbeddingOptimizer(std::shared_ptr<Optimizer> keras_optimizer);
  std::shared_ptr<const TableOptimizerState> state_;
};

// Returns the embedding optimizer that performs the update of a Keras optimizer, with the learning
// rate that the Keras optimizer has at each step. Keras's SGD, Adagrad, Adam (lazy, with epsilon
// inside the square root) and Ftrl become SGD, Adagrad, Adam and FTRL.
//
// Throws ValueError for any other class, and for a setting without its default value, except
//   - the learning rate and initial_accumulator_value,
//   - weight_decay, if it applies to all variables (exclude_from_weight_decay is rejected),
//   - clipnorm, clipvalue and global_clipnorm,
//   - beta_1, beta_2 and epsilon of Adam,
//   - learning_rate_power, l1, l2 and beta of Ftrl.
EmbeddingOptimizer translate_keras_optimizer(const OptimizerHandle& optimizer);

// Returns the update of one row as the engine performs it.
distribute::RowUpdate row_update(const TableOptimizerState& optimizer);

// Encodes an unset optimizer as null, an embedding optimizer as {"class_name", "config"}, and a
// translated one as {"keras": {"class_name", "config"}}. A learning rate that is a function is
// written as its current value, because files cannot hold functions. Throws NotImplementedError for
// a custom optimizer, and for one with a slot_variable_creation_fn.
Config encode(const EmbeddingOptimizer& optimizer);
// Decodes what encode() returns. Throws the errors of EmbeddingOptimizer.
void decode(const Config& config, EmbeddingOptimizer& optimizer);

}  // namespace keel

template <>
struct std::hash<keel::EmbeddingOptimizer> {
  // Returns EmbeddingOptimizer::hash().
  size_t operator()(const keel::EmbeddingOptimizer& optimizer) const { return optimizer.hash(); }
};

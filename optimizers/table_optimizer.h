// Embedding optimizers: how an embedding engine updates the rows of a table
// (tf.tpu.experimental.embedding). They differ from the optimizers for dense variables: Adagrad
// has no epsilon, Adam no bias correction and its epsilon inside the root, and only rows that a
// batch looked up are touched.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimizers/optimizer.h"

namespace keel {

// A rule whose slots have the names that engines give them: "accumulators", "momenta",
// "velocities", "linears".
struct EngineRule final : UpdateRule {
  // One name for each slot of the base.
  EngineRule(std::shared_ptr<const UpdateRule> base_, std::vector<std::string> slot_names_)
      : base(std::move(base_)), slot_names(std::move(slot_names_)) {}
  const std::shared_ptr<const UpdateRule> base;
  const std::vector<std::string> slot_names;
  std::vector<Slot> slots() const override;
  bool moves_without_gradient() const override { return base->moves_without_gradient(); }
  void update(float* value, const float* gradient, float* const* slots, int64_t n,
              const Step& step) const override {
    base->update(value, gradient, slots, n, step);
  }
  void update(double* value, const double* gradient, double* const* slots, int64_t n,
              const Step& step) const override {
    base->update(value, gradient, slots, n, step);
  }
};

// An embedding optimizer as engines see it. Immutable, shared by handle; compared by identity.
struct TableOptimizerState {
  std::string class_name;  // "SGD", "Adagrad", "Adam", "FTRL"
  std::shared_ptr<const EngineRule> rule;
  // At the time of translation if there is a source; TableOptimizer::current_learning_rate knows.
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
  // False for Adam that moves every row at every step.
  bool lazy = true;
  // {"class_name", "config"} of the options it was made from, the rate left out.
  Config config = {};
  // The Keras optimizer this was translated from; null otherwise. Its `iterations` drive its
  // schedule, and files keep the slots under its names.
  std::shared_ptr<Optimizer> source = nullptr;
  std::vector<std::string> source_slot_names = {};
};

namespace tpu {

// Parameters common to all classes have the meaning they have in TableOptimizerState; clipvalue c
// bounds gradients by (-c, c).
// Rates are numbers or functions: a schedule counts the steps of a Keras optimizer, so it comes
// with one.
template <class Self>
void common_fields(Self& self, auto&& field) {
  field("learning_rate", self.learning_rate);
  field("use_gradient_accumulation", self.use_gradient_accumulation);
  field("clip_weight_min", self.clip_weight_min);
  field("clip_weight_max", self.clip_weight_max);
  field("weight_decay_factor", self.weight_decay_factor);
  field("multiply_weight_decay_factor_by_learning_rate",
        self.multiply_weight_decay_factor_by_learning_rate);
  field("clipvalue", self.clipvalue);
}

struct SGD {
  LearningRate learning_rate = 0.01;
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clipvalue = {};

  static constexpr char kClassName[] = "SGD";
  static void fields(auto& self, auto&& field) { common_fields(self, field); }
};
struct Adagrad {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;  // > 0
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clipvalue = {};

  static constexpr char kClassName[] = "Adagrad";
  static void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("initial_accumulator_value", self.initial_accumulator_value);
  }
};
struct Adam {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9, beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;                // > 0
  bool lazy_adam = true;                // false: all rows move at every step, O(vocabulary)
  bool sum_inside_sqrt = true;
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clipvalue = {};

  static constexpr char kClassName[] = "Adam";
  static void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
    field("epsilon", self.epsilon);
    field("lazy_adam", self.lazy_adam);
    field("sum_inside_sqrt", self.sum_inside_sqrt);
  }
};
struct FTRL {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;                                                // <= 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0, beta = 0;  // l1, l2 >= 0
  double initial_accumulator_value = 0.1;                                           // > 0
  bool use_gradient_accumulation = true;
  bool multiply_linear_by_learning_rate = false;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clipvalue = {};

  static constexpr char kClassName[] = "FTRL";
  static void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("learning_rate_power", self.learning_rate_power);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("beta", self.beta);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("multiply_linear_by_learning_rate", self.multiply_linear_by_learning_rate);
  }
};

}  // namespace tpu

// What TableConfig and TPUEmbedding take: nothing, a name ("sgd", "adagrad", "adam", "ftrl"), the
// options of an embedding optimizer, or a Keras optimizer, which is translated.
// ValueError for an unknown name, parameters out of range, clipvalue or an Adam that is not lazy
// without gradient accumulation, a schedule as rate of an embedding optimizer, and a Keras
// optimizer or setting that an engine does not have (momentum, nesterov, another epsilon of
// Adagrad, classes beyond SGD, Adagrad, Adam and Ftrl).
class TableOptimizer {
 public:
  TableOptimizer() = default;                          // unset
  TableOptimizer(const char* name);                    // NOLINT: implicit
  TableOptimizer(const std::string& name);             // NOLINT: implicit
  TableOptimizer(const tpu::SGD& options);      // NOLINT: implicit
  TableOptimizer(const tpu::Adagrad& options);  // NOLINT: implicit
  TableOptimizer(const tpu::Adam& options);     // NOLINT: implicit
  TableOptimizer(const tpu::FTRL& options);     // NOLINT: implicit
  template <std::derived_from<Optimizer> T>
  TableOptimizer(const Handle<T>& optimizer)  // NOLINT: implicit
      : TableOptimizer(std::shared_ptr<Optimizer>(optimizer.shared())) {}

  explicit operator bool() const { return state_ != nullptr; }
  const TableOptimizerState* operator->() const { return state_.get(); }
  const TableOptimizerState& operator*() const { return *state_; }
  friend bool operator==(const TableOptimizer& a, const TableOptimizer& b) = default;

  // The rate now: of the source optimizer's iterations, or the number or callable given.
  // RuntimeError if unset.
  double current_learning_rate() const;

 private:
  explicit TableOptimizer(std::shared_ptr<Optimizer> keras_optimizer);
  std::shared_ptr<const TableOptimizerState> state_;
};

// Null if unset; {"class_name", "config"} of an embedding optimizer; the same under "keras" for a
// translated one. A rate that is a function is written as its value of now: no file can hold it.
Config encode(const TableOptimizer& optimizer);
void decode(const Config& config, TableOptimizer& optimizer);

}  // namespace keel

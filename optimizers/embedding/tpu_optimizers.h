// The options of embedding optimizers (tf.tpu.experimental.embedding.SGD, Adagrad, ...). Each
// converts to an EmbeddingOptimizer (optimizers/embedding/embedding_optimizer.h), which checks it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/initializers.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/embedding/bounds_and_slots.h>
#include <keel/optimizers/schedules/learning_rate.h>

namespace keel::tpu {

// Parameters of all classes except CustomOptimizer:
//   learning_rate              a number or a function; for a schedule, which counts the steps of a
//                              Keras optimizer, pass a Keras optimizer instead
//   use_gradient_accumulation  true: a row is updated once per batch, by the sum of its gradients;
//                              false: once per occurrence, and clipvalue must be unset
//   clip_weight_min, _max      bounds of each weight of an updated row
//   weight_decay_factor        w -= factor w before the update; the factor is multiplied by the
//                              learning rate if multiply_weight_decay_factor_by_learning_rate
//   clipvalue                  bounds of each element of the row's gradient
//   clipnorm, global_clipnorm  bounds of the norm of the gradient of the table, or of all tables
//                              with an equal optimizer; at most one of the three may be set
//   low_dimensional_packing_status  a storage hint; changes no value
//   slot_variable_creation_fn  creates the slots instead of the optimizer (SGD has no slots)
template <class Self>
constexpr void common_fields(Self& self, auto&& field) {
  field("learning_rate", self.learning_rate);
  field("use_gradient_accumulation", self.use_gradient_accumulation);
  field("clip_weight_min", self.clip_weight_min);
  field("clip_weight_max", self.clip_weight_max);
  field("weight_decay_factor", self.weight_decay_factor);
  field("multiply_weight_decay_factor_by_learning_rate",
        self.multiply_weight_decay_factor_by_learning_rate);
  field("clipvalue", self.clipvalue);
  field("clipnorm", self.clipnorm);
  field("global_clipnorm", self.global_clipnorm);
  field("low_dimensional_packing_status", self.low_dimensional_packing_status);
}

// Stochastic gradient descent: w -= lr g.
struct SGD {
  LearningRate learning_rate = 0.01;
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  static constexpr char kClassName[] = "SGD";
  static constexpr void fields(auto& self, auto&& field) { common_fields(self, field); }
};

// Adagrad without epsilon: a += g^2; w -= lr g / sqrt(a). The slot "accumulators" holds a.
struct Adagrad {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;  // > 0
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};
  static constexpr char kClassName[] = "Adagrad";
  static constexpr const char* kUnsaved[] = {"slot_variable_creation_fn"};  // saving throws
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("initial_accumulator_value", self.initial_accumulator_value);
  }
};

// Adam without bias correction:
//   m = beta_1 m + (1 - beta_1) g
//   v = beta_2 v + (1 - beta_2) g^2
//   w -= lr m / sqrt(v + epsilon^2)      with sum_inside_sqrt
//   w -= lr m / (sqrt(v) + epsilon)      without sum_inside_sqrt
// A learning rate of lr sqrt(1 - beta_2^t) / (1 - beta_1^t) in step t has the effect of bias
// correction. The slots are named "momenta" (m) and "velocities" (v).
struct Adam {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9, beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;                // > 0
  // If false, every step updates all rows, in time proportional to the size of the table. This
  // requires use_gradient_accumulation.
  bool lazy_adam = true;
  bool sum_inside_sqrt = true;  // epsilon^2 is added to v under the root
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};
  static constexpr char kClassName[] = "Adam";
  static constexpr const char* kUnsaved[] = {"slot_variable_creation_fn"};  // saving throws
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
    field("epsilon", self.epsilon);
    field("lazy_adam", self.lazy_adam);
    field("sum_inside_sqrt", self.sum_inside_sqrt);
  }
};

// FTRL-Proximal, with the formula of FtrlOptimizer (optimizers/adagrad.h) without shrinkage. A new
// row that is updated by a zero gradient becomes 0. The slots are named "accumulators" and
// "linears".
struct FTRL {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;                                                // <= 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0, beta = 0;  // l1, l2 >= 0
  double initial_accumulator_value = 0.1;                                           // > 0
  bool use_gradient_accumulation = true;
  bool multiply_linear_by_learning_rate = false;  // the slot holds lr times the linear term
  bool allow_zero_accumulator = false;  // has no effect: zeros in slots are always allowed
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};
  static constexpr char kClassName[] = "FTRL";
  static constexpr const char* kUnsaved[] = {"slot_variable_creation_fn"};  // saving throws
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("learning_rate_power", self.learning_rate_power);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("beta", self.beta);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("multiply_linear_by_learning_rate", self.multiply_linear_by_learning_rate);
    field("allow_zero_accumulator", self.allow_zero_accumulator);
  }
};

// Adagrad with momentum. The slots are named "accumulators" (a, from 0) and "momenta" (m):
//   a = beta2 a + (1 - beta2) g^2, or a += g^2 if beta2 is 1
//   u = g (a + epsilon)^(-1 / exponent);  m = momentum m + u
//   w -= lr m, or with use_nesterov w -= lr (momentum m + u)
struct AdagradMomentum {
  LearningRate learning_rate = 0.001;
  double momentum = 0;        // factor of m
  bool use_nesterov = false;  // use Nesterov momentum
  double exponent = 2;        // > 0
  double beta2 = 1;           // factor of a
  double epsilon = 1e-10;     // > 0
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};
  static constexpr char kClassName[] = "AdagradMomentum";
  static constexpr const char* kUnsaved[] = {"slot_variable_creation_fn"};  // saving throws
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("momentum", self.momentum);
    field("use_nesterov", self.use_nesterov);
    field("exponent", self.exponent);
    field("beta2", self.beta2);
    field("epsilon", self.epsilon);
  }
};

// A user-defined rule for one row. It runs for each row of a batch after the gradients of the row
// are summed:
//   .custom_computation = [](const CustomRow& r) {
//     for (size_t i = 0; i < r.row.size(); ++i) r.row[i] -= r.learning_rate * r.gradient[i];
//   }
// Only the SparseCore engine supports it, and it cannot be written to files.
struct CustomOptimizer {
  CustomComputation custom_computation = {};  // required
  LearningRate learning_rate = 0.01;
  std::vector<std::string> slot_names = {};         // names of CustomRow::slots, in their order
  std::vector<Initializer> slot_initializers = {};  // as many as slot_names
  // Numbers or functions, which are evaluated in every step.
  std::vector<LearningRate> hyperparameters = {};
  static constexpr char kClassName[] = "CustomOptimizer";
  // Saving throws.
  static constexpr const char* kUnsaved[] = {"custom_computation", "slot_initializers",
                                             "hyperparameters"};
  static constexpr void fields(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate);
    field("slot_names", self.slot_names);
  }
};

}  // namespace keel::tpu

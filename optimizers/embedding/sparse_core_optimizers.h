// The options of the embedding optimizers that jax-tpu-embedding has besides those of TensorFlow:
// LaProp and F2A. The common parameters are those of tpu_optimizers.h.
#pragma once

#include <optional>

#include <keel/optimizers/embedding/tpu_optimizers.h>

namespace keel::tpu {

// LaProp (Ziyin et al. 2020), which normalizes gradients before it averages them. The slots are
// named "mu" (m) and "nu" (v):
//   v = d v + (1 - d) (g^2 + eps)
//   m = b1 m + sqrt(1 - b1^2) g / sqrt(v)
//   w -= lr m
// where d is b2 or, with global_step = t, b2 (1 - b2^t) / (1 - b2^(t + 1)), which corrects the bias
// of v.
struct LaProp {
  LearningRate learning_rate = 0.001;
  double b1 = 0.9;                // in [0, 1)
  double b2 = 0.95;               // in [0, 1)
  double eps = 1e-30;             // added to the squared gradient, > 0
  double initial_slot_value = 0;  // of both slots, >= 0
  // The number of completed steps, from 0: a function that is called before each step. Unset: d is
  // b2.
  std::optional<LearningRate> global_step = {};
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};

  static constexpr char kClassName[] = "LaProp";
  // encode() writes the value of global_step, and throws for a function that creates slots.
  static constexpr const char* kUnsaved[] = {"global_step", "slot_variable_creation_fn"};
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("b1", self.b1);
    field("b2", self.b2);
    field("eps", self.eps);
    field("initial_slot_value", self.initial_slot_value);
  }
};

// F2A, an Adagrad whose rate grows with the rarity of a row. The slots are named "accumulators" (a)
// and "local_steps" (k, the number of updates of the row); s is global_step:
//   k += 1;  a += g^2;  f = min((max(s, 1) / k)^rho, max_lr_multiplier)
//   w -= lr (f g / sqrt(a) + l1 sign(w) + l2 w)
struct F2A {
  LearningRate learning_rate = 0.001;
  double rho = 0.5;                        // >= 0; 0 gives Adagrad
  double initial_accumulator_value = 0.1;  // > 0
  double initial_local_step_value = 0;     // >= 0
  double l1_regularization_strength = 0;   // l1, >= 0
  double l2_regularization_strength = 0;   // l2, >= 0
  double max_lr_multiplier = 1e6;          // > 0
  // Required unless rho is 0: the number of the step, from 1. A function is called before each
  // step: [adam] { return adam->iterations() + 1.0; }
  std::optional<LearningRate> global_step = {};
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};

  static constexpr char kClassName[] = "F2A";
  // encode() writes the value of global_step, and throws for a function that creates slots.
  static constexpr const char* kUnsaved[] = {"global_step", "slot_variable_creation_fn"};
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("rho", self.rho);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("initial_local_step_value", self.initial_local_step_value);
    field("l1_regularization_strength", self.l1_regularization_strength);
    field("l2_regularization_strength", self.l2_regularization_strength);
    field("max_lr_multiplier", self.max_lr_multiplier);
  }
};

}  // namespace keel::tpu

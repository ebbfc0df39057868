// The options of the row-wise Adagrad of embedding tables. The common parameters are those of
// tpu_optimizers.h.
#pragma once

#include <optional>

#include <keel/optimizers/embedding/tpu_optimizers.h>

namespace keel::tpu {

// Row-wise Adagrad: Adagrad with one accumulator for each row, which takes the memory of one
// element per row instead of one per weight. a is the accumulator and g the gradient of a row,
// summed over the batch:
//   a += mean(g^2);  w -= lr g / (sqrt(a) + epsilon)
// This is the exact row-wise Adagrad of FBGEMM and TorchRec. The slot is named "accumulators" and
// has the shape [vocabulary_size, 1], with dynamic ids [size, 1]. In a DistributedEmbedding, a
// table with this optimizer is not stacked.
struct RowwiseAdagrad {
  LearningRate learning_rate = 0.01;
  double initial_accumulator_value = 0;  // >= 0
  double epsilon = 1e-8;                 // >= 0
  bool use_gradient_accumulation = true;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  std::optional<double> weight_decay_factor = {};
  bool multiply_weight_decay_factor_by_learning_rate = false;
  ClipValue clipvalue = {};
  std::optional<double> clipnorm = {}, global_clipnorm = {};
  bool low_dimensional_packing_status = false;
  SlotVariableCreationFn slot_variable_creation_fn = {};

  static constexpr char kClassName[] = "RowwiseAdagrad";
  static constexpr const char* kUnsaved[] = {"slot_variable_creation_fn"};  // saving throws
  static constexpr void fields(auto& self, auto&& field) {
    common_fields(self, field);
    field("initial_accumulator_value", self.initial_accumulator_value);
    field("epsilon", self.epsilon);
  }
};

}  // namespace keel::tpu

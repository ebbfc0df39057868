// Planner: the interface through which layers compile themselves into a serving plan
// (layers/serving/serving_plan.h).
//
//   std::optional<PlanValues> MyLayer::plan(Planner& planner, const PlanValues& inputs) const {
//     const auto x = planner.rows(inputs);               // float32 rows, or nothing
//     if (!x || x->size() != 1) return {};               // the plan calls the layer
//     const PlanValue y = planner.make_rows({units});    // memory for the result
//     planner.add(std::make_unique<MyStep>((*x)[0], y), *x, {y});
//     return y;
//   }
//
// If a layer returns nothing, the steps that it has added are removed. Values are either rows of
// floats in the workspace of a call, or tensors: the inputs of the model and the results of called
// layers.
//
// RowFunction: an activation applied in place to a row of floats, bitwise equal to
// layers/activations.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/base/combiner.h>
#include <keel/layers/activations.h>
#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

class Int8Table;
class ServingKeys;

// An activation function with its parameter.
class RowFunction {
 public:
  // The activations with a row function; see the functions of these names in layers/activations.h.
  enum class Kind {
    kLinear,
    kRelu,
    kLeakyRelu,
    kElu,
    kSigmoid,
    kTanh,
    kSilu,
    kSoftplus,
    kExp,
    kGelu,
    kSoftmax
  };

  // Makes a function. `parameter` is the negative slope of kLeakyRelu and alpha of kElu; the other
  // functions ignore it.
  RowFunction(Kind kind = Kind::kLinear, double parameter = 0)  // NOLINT: implicit
      : kind_(kind), parameter_(static_cast<float>(parameter)) {}
  // Returns nothing for an activation without a row function; plans then call the layer.
  static std::optional<RowFunction> of(const Activation& activation);

  // Returns the activation.
  Kind kind() const { return kind_; }
  // Returns Keras's name of the activation.
  std::string name() const;
  // Applies the function in place to n values; softmax normalizes over all n values.
  void apply(float* row, int64_t n) const;

 private:
  Kind kind_;
  float parameter_;
};

using PlanValues = Nest<PlanValue>;

// What a lookup in a table for unbounded ids does with negative ids and empty strings.
enum class InvalidKeys {
  kAccept,  // they are ids like all others
  kDrop,    // leaves them out; a position of dense ids or of a sequence reads zeros
  kReject   // throws InvalidIdError
};

// A lookup of rows in a table. The table is [vocabulary, dim] float32 or, for dense ids, int8 with
// scales. Rows of dense ids [batch, ...] are concatenated; rows of a ragged or sparse id tensor of
// rank 2 are pooled by row of the batch. Ids are int32 or int64.
struct PlanLookup {
  std::string caller = {};  // prefix of errors: ": id 7 at position 2 ..."
  Tensor table = {};        // the rows
  Tensor scales = {};       // float32 [vocabulary] for an int8 table: element = code / scale
  PlanValue ids = {};       // the numbers of the rows
  std::optional<PlanValue> weights = {};                 // float32, one per ragged or sparse id
  kernels::Combiner combiner = kernels::Combiner::kSum;  // how rows are pooled
  // Pools ragged and sparse ids, which then have no weights, by the maximum of each element instead
  // of `combiner`.
  bool takes_max = false;
  // For sparse ids: ignores negative ids and, unless the combiner is kSum, ids with weight <= 0.
  bool prunes = false;
  // An 8-bit copy of a float32 table, which is looked up instead of it if set.
  std::shared_ptr<const Int8Table> int8 = nullptr;
  // Set for a table for unbounded ids: finds the rows of ids, which are then any integers or
  // strings. `table` is its table().
  std::shared_ptr<const ServingKeys> keys = nullptr;
  InvalidKeys invalid_keys = InvalidKeys::kAccept;  // for `keys`
  // With InvalidKeys::kDrop: called with the number of dropped ids of a call, from any thread.
  std::function<void(int64_t)> count_dropped = {};
  // Pools the ids of each row of dense ids [batch, n], as those of ragged ids are.
  bool pools_dense = false;
  // Ids of a ragged or sparse row beyond this number are not looked up. kUnknown: no limit.
  int64_t max_row_length = kUnknown;
  // > 0: the ids of a ragged or sparse row are not pooled. The result has the rows of the first
  // positions, [sequence_length, dim], and zeros where a position has no id.
  int64_t sequence_length = 0;
  bool finite_weights = false;  // throws ValueError for weights that are NaN or infinite
};

// Collects the values and steps of a plan.
class Planner {
 public:
  Planner();
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // Returns the spec of a value; its first dimension is the batch.
  const TensorSpec& spec(PlanValue value) const;
  // Returns the shape of a value without the batch dimension.
  Shape row_shape(PlanValue value) const { return spec(value).shape.without(0); }

  // Returns the values as float32 rows of known shape. Returns nothing if a value has another dtype
  // or layout, or is not a batch. If `cast` is true, other numeric dtypes are converted first.
  std::optional<std::vector<PlanValue>> rows(const PlanValues& values, bool cast = false);
  // Creates rows for a step to write.
  PlanValue make_rows(const Shape& row_shape);
  // Returns the same rows with another shape of the same size.
  PlanValue reshaped(PlanValue value, const Shape& row_shape);
  // Concatenates rows. Where possible, the steps that compute the parts write directly to the
  // result.
  PlanValue joined(const std::vector<PlanValue>& parts, const Shape& row_shape);
  // Returns function(x . kernel + bias) over the last axis; kernel [in, units], bias [units] or
  // empty. Weights are packed once even if a layer is called several times.
  PlanValue product(PlanValue x, const Variable& kernel, const Variable& bias,
                    RowFunction function);
  // Returns function(x), applied along the last axis.
  PlanValue map(PlanValue x, RowFunction function);
  // Describes (x - center) factor + offset or, if `divides`, (x - center) / factor + offset. Each
  // operand has one value, or one value for each position of the last axis.
  struct Affine {
    Tensor center;         // subtracted from x
    Tensor factor;         // multiplies the difference
    Tensor offset;         // added at the end
    bool divides = false;  // true: divide by `factor`
  };
  // Returns nothing if the sizes of the operands do not fit x.
  std::optional<PlanValue> affine(PlanValue x, const Affine& numbers);
  // Adds a lookup; lookups of model inputs run in one step. Returns nothing if ids have another
  // dtype, layout or rank, if they are not a batch, or if the weights are not float32 or not a
  // model input.
  std::optional<PlanValue> look_up(PlanLookup lookup);
  // Requests scratch memory for a step (PlanCall::scratch); steps share it.
  void reserve_scratch(int64_t floats);
  // Appends a step with the values that it reads and writes.
  void add(std::unique_ptr<PlanStep> step, const std::vector<PlanValue>& reads,
           const std::vector<PlanValue>& writes);

  // Returns the results of an operation on these inputs: from its plan() if it is a layer that
  // implements it, otherwise by calling the operation at run time.
  PlanValues call(const std::shared_ptr<Operation>& operation, const PlanValues& inputs,
                  const CallOptions& options = {});
  // Adds a constant tensor.
  PlanValue constant(const TensorLike& value);

 private:
  friend class ServingPlan;
  struct State;
  PlanValue add_value(TensorLike symbol);
  PlanValue add_tensor(TensorLike symbol);
  PlanValue add_input(const std::string& name, const TensorSpec& spec);
  // Inserts one step for all lookups of inputs, before the first step that reads a result.
  void place_lookups();
  PlanValues call_at_run_time(const std::shared_ptr<Operation>& operation, const PlanValues& inputs,
                              const CallOptions& options);
  std::unique_ptr<State> state_;
};

}  // namespace keel

extern template class keel::Nest<keel::PlanValue>;
extern template std::vector<keel::PlanValues>::~vector();
extern template std::vector<keel::PlanValues>::vector(const std::vector<keel::PlanValues>& other);

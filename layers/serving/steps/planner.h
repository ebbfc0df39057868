// Planner: where layers say how a plan for serving computes them (layers/serving/serving_plan.h).
//
//   std::optional<PlanValues> MyLayer::plan(Planner& planner, const PlanValues& inputs) const {
//     const auto x = planner.rows(inputs);               // float32 rows, or none
//     if (!x || x->size() != 1) return {};               // the plan calls the layer
//     const PlanValue y = planner.make_rows({units});    // room for the result
//     planner.add(std::make_unique<MyStep>((*x)[0], y), *x, {y});
//     return y;
//   }
//
// Steps that a layer has added before it returns nothing are taken back. Values are rows of floats
// that a step writes into the workspace of a call, or tensors: the model's inputs and what layers
// that are called return.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/int8_table.h>
#include <keel/layers/serving/steps/plan_step.h>
#include <keel/layers/serving/steps/row_function.h>

namespace keel {

using PlanValues = Nest<PlanValue>;

// A lookup of rows of a table, [vocabulary, dim] float32 or, of dense ids, int8 with scales: those
// of dense ids [batch, ...] side by side; of a ragged or sparse id tensor of rank 2, pooled by row.
// Ids are int32 or int64.
struct PlanLookup {
  std::string caller =
      {};  // begins the message about an id out of range: ": id 7 at position 2 ..."
  Tensor table = {};
  Tensor scales = {};  // float32 [vocabulary], of an int8 table: an element is code / scale
  PlanValue ids = {};
  std::optional<PlanValue> weights = {};  // float32, one for each ragged or sparse id
  kernels::Combiner combiner = kernels::Combiner::kSum;
  // Of sparse ids: negative ids are left out, and, unless the combiner is sum, weights <= 0.
  bool prunes = false;
  // A float32 table in 8 bits, which is then looked up in its place.
  Int8Table int8 = {};
};

class Planner {
 public:
  Planner();
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  const TensorSpec& spec(PlanValue value) const;
  Shape row_shape(PlanValue value) const { return spec(value).shape.without(0); }

  // The values as float32 rows of known shape; none if one has another dtype or layout, or is no
  // batch. With `cast` numbers of other dtypes are converted first.
  std::optional<std::vector<PlanValue>> rows(const PlanValues& values, bool cast = false);
  // New rows, which a step will write.
  PlanValue make_rows(const Shape& row_shape);
  // The same rows under another shape of as many values.
  PlanValue reshaped(PlanValue value, const Shape& row_shape);
  // Rows side by side, written there at once by the steps that make them, where possible.
  PlanValue joined(const std::vector<PlanValue>& parts, const Shape& row_shape);
  // function(x . kernel + bias) over the last axis; kernel [in, units], bias [units] or empty.
  // Weights are packed once, however often a layer is called.
  PlanValue product(PlanValue x, const Variable& kernel, const Variable& bias,
                    RowFunction function);
  PlanValue map(PlanValue x, RowFunction function);
  // (x - center) factor + offset, or (x - center) / factor + offset; each is one value or one for
  // each position of the last axis.
  struct Affine {
    Tensor center, factor, offset;
    bool divides = false;
  };
  // None unless the numbers fit x.
  std::optional<PlanValue> affine(PlanValue x, const Affine& numbers);
  // Lookups of the model's inputs run together. None for ids of another dtype, layout or rank, for
  // those that are no batch, and for weights of others.
  std::optional<PlanValue> look_up(PlanLookup lookup);
  // Floats that a step may use while it runs (PlanCall::scratch).
  void reserve_scratch(int64_t floats);
  void add(std::unique_ptr<PlanStep> step, const std::vector<PlanValue>& reads,
           const std::vector<PlanValue>& writes);

  // The results of an operation on these inputs: by its plan() if it is a layer with one, else
  // by calling it.
  PlanValues call(const std::shared_ptr<Operation>& operation, const PlanValues& inputs,
                  const CallOptions& options = {});
  PlanValue constant(const TensorLike& value);

 private:
  friend class ServingPlan;
  struct State;
  PlanValue add_value(TensorLike symbol);
  PlanValue add_tensor(TensorLike symbol);
  PlanValue add_input(const std::string& name, const TensorSpec& spec);
  void place_lookups();
  PlanValues call_at_run_time(const std::shared_ptr<Operation>& operation, const PlanValues& inputs,
                              const CallOptions& options);
  std::unique_ptr<State> state_;
};

}  // namespace keel

// PlanStep: a unit of work of a serving plan, and the state of a call that it accesses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/layers/serving/steps/tensor_view.h>

namespace keel {

// Identifies a value of a plan (layers/serving/steps/planner.h).
struct PlanValue {
  int number = -1;
};

// Rows of float32 values whose starts are `stride` floats apart.
struct PlanRows {
  float* data = nullptr;
  int64_t stride = 0;
  float* operator[](int64_t row) const { return data + row * stride; }
};

// Location of a value's rows: in tensor `slot` or, if `slot` is negative, in the workspace.
struct PlanPlace {
  int slot = -1;
  int64_t offset = 0;  // start of the value's block per row of capacity, in floats
  int64_t column = 0;  // first column inside a row of the block
  int64_t stride = 0;
};

// State of one call, shared by its steps. Steps may write only the rows of their results and result
// tensors.
struct PlanCall {
  int64_t batch = 0;
  int64_t begin = 0, rows = 0;  // rows [begin, begin + rows) of the batch
  float* scratch = nullptr;     // as many floats as the steps reserved
  const std::vector<PlanPlace>* places = nullptr;
  std::vector<TensorView>* views = nullptr;    // by slot
  std::vector<TensorLike>* tensors = nullptr;  // empty where only views are available
  float* workspace = nullptr;
  int64_t capacity = 0;  // number of rows for which the workspace has room

  // Returns the current rows of a value.
  PlanRows operator[](PlanValue value) const {
    const PlanPlace& place = (*places)[value.number];
    if (place.slot < 0) {
      return {workspace + place.offset * capacity + place.column, place.stride};
    }
    auto* const data = static_cast<float*>(const_cast<void*>((*views)[place.slot].data));
    return {data + begin * place.stride, place.stride};
  }
  // Returns the whole tensor of a value that is not in the workspace.
  const TensorView& view(PlanValue value) const { return (*views)[(*places)[value.number].slot]; }
  // Returns the tensor of a value; copies it from its view on first use.
  TensorLike tensor(PlanValue value) const;
  // Stores the result of a called operation.
  void set_tensor(PlanValue value, TensorLike tensor) const;
};

// Immutable after construction; any number of threads may run it concurrently.
class PlanStep {
 public:
  PlanStep() = default;
  virtual ~PlanStep() = default;
  PlanStep(const PlanStep&) = delete;
  PlanStep& operator=(const PlanStep&) = delete;

  // Throws if the step cannot process the inputs. Called before any step of the call runs; `call`
  // contains only the views of the model's inputs.
  virtual void check(const PlanCall&) const {}
  // Prefetches memory that run() will read; called at the start of the call.
  virtual void prefetch(const PlanCall&) const {}
  // Computes the rows of `call`.
  virtual void run(const PlanCall& call) const = 0;
  // Returns false if a row of the result may depend on other rows. Plans with such a step run a
  // batch in one piece.
  virtual bool by_rows() const { return true; }
  // Returns true if the step calls a layer because there is no kernel for it.
  virtual bool calls_layer() const { return false; }
  // Returns a description for summary(), such as "dense 512 x 256, relu".
  virtual std::string what() const = 0;
};

}  // namespace keel

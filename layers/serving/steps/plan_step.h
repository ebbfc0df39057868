// PlanStep: a piece of the work of a plan for serving, and what it sees when it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/layers/serving/steps/tensor_view.h>

namespace keel {

// A value that flows through a plan (layers/serving/steps/planner.h).
struct PlanValue {
  int number = -1;
};

// Rows of float32 values, `stride` floats apart.
struct PlanRows {
  float* data = nullptr;
  int64_t stride = 0;
  float* operator[](int64_t row) const { return data + row * stride; }
};

// Where the rows of a value lie: in tensor `slot`, or in the workspace, if `slot` is negative.
struct PlanPlace {
  int slot = -1;
  int64_t offset = 0;  // in floats: of the value's block for one row, and inside its row
  int64_t column = 0;
  int64_t stride = 0;
};

// What the steps of one call share. Steps write the rows of their results, and tensors, no more.
struct PlanCall {
  int64_t batch = 0;
  int64_t begin = 0, rows = 0;  // of the batch, [begin, begin + rows)
  float* scratch = nullptr;     // as much as the step has asked for
  const std::vector<PlanPlace>* places = nullptr;
  std::vector<TensorView>* views = nullptr;    // by slot
  std::vector<TensorLike>* tensors = nullptr;  // empty ones where only views are known
  float* workspace = nullptr;
  int64_t capacity = 0;  // rows that the workspace has room for

  PlanRows operator[](PlanValue value) const {
    const PlanPlace& place = (*places)[value.number];
    if (place.slot < 0) {
      return {workspace + place.offset * capacity + place.column, place.stride};
    }
    auto* const data = static_cast<float*>(const_cast<void*>((*views)[place.slot].data));
    return {data + begin * place.stride, place.stride};
  }
  // The whole tensor of a value that is none of the workspace.
  const TensorView& view(PlanValue value) const { return (*views)[(*places)[value.number].slot]; }
  TensorLike tensor(PlanValue value) const;
  void set_tensor(PlanValue value, TensorLike tensor) const;
};

// Immutable once made: any number of calls may run it at once.
class PlanStep {
 public:
  PlanStep() = default;
  virtual ~PlanStep() = default;
  PlanStep(const PlanStep&) = delete;
  PlanStep& operator=(const PlanStep&) = delete;

  // Throws for inputs that the step cannot take, before any step of the call runs. `call` has
  // views only, of the model's inputs.
  virtual void check(const PlanCall&) const {}
  // Asks for memory that run() will read, at the start of the call.
  virtual void prefetch(const PlanCall&) const {}
  virtual void run(const PlanCall& call) const = 0;
  // False if rows of the result depend on other rows, or may: such plans run a batch in one piece.
  virtual bool by_rows() const { return true; }
  // True if it calls the layer: for want of a kernel.
  virtual bool calls_layer() const { return false; }
  // "dense 512 x 256, relu"
  virtual std::string what() const = 0;
};

}  // namespace keel

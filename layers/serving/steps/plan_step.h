// PlanStep: a unit of work of a serving plan, and the state of a call that it accesses. TensorView:
// a non-owning view of a tensor, the input type of serving plans.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>

namespace keel {

// Views a dense tensor; the values of a ragged tensor with row_splits (rows + 1 numbers); or the
// values of a sparse tensor with indices (rank numbers per value).
struct TensorView {
  Layout layout = Layout::kDense;  // layout of the tensor
  DType dtype = DType::kFloat32;   // dtype of the values
  Shape shape = {};            // dense and sparse: shape of the tensor; ragged: shape of the values
  const void* data = nullptr;  // the values, contiguous and row-major
  // Number of values: the size of a dense tensor; the first dimension of a ragged tensor's values.
  int64_t values = 0;
  const int64_t* row_splits = nullptr;  // ragged: rows + 1 positions among the values
  int64_t rows = 0;                     // first dimension of the dense equivalent; 0 for a scalar
  const int64_t* indices = nullptr;  // sparse: the position of each value, one number per dimension
};

// Returns true if `values` and `rows` match the shape of a dense view.
inline bool is_whole(const TensorView& view) {
  const std::span<const int64_t> dims = view.shape.dims();
  uint64_t size = 1;
  bool known = true;
  for (int64_t dim : dims) {
    known = known && dim >= 0;
    size *= static_cast<uint64_t>(dim);
  }
  return known && static_cast<uint64_t>(view.values) == size &&
         view.rows == (dims.empty() ? 0 : dims[0]);
}

// Returns a view that is valid as long as `tensor`. Strings are std::string objects.
TensorView view_of(const TensorLike& tensor);
// Returns a tensor with a copy of the values.
TensorLike copy_of(const TensorView& view);

// Checks a view against the spec of a plan's input; messages start with `caller`. Throws TypeError
// for another layout or dtype. Throws ValueError for
// - another shape;
// - `values` or `rows` that contradict the shape;
// - null pointers;
// - row splits that do not increase from 0 to the number of values;
// - indices outside the shape or not in row-major order.
void check_view(const std::string& caller, const TensorSpec& spec, const TensorView& view);

// Identifies a value of a plan (layers/serving/steps/planner.h).
struct PlanValue {
  int number = -1;  // position among the values of the plan; -1: none
};

// Rows of float32 values whose starts are `stride` floats apart.
struct PlanRows {
  float* data = nullptr;  // first value of row 0
  int64_t stride = 0;     // floats from the start of one row to the start of the next
  // Returns the first value of a row.
  float* operator[](int64_t row) const { return data + row * stride; }
};

// Location of a value's rows: in tensor `slot` or, if `slot` is negative, in the workspace.
struct PlanPlace {
  int slot = -1;       // number of a tensor; negative: the workspace
  int64_t offset = 0;  // start of the value's block per row of capacity, in floats
  int64_t column = 0;  // first column inside a row of the block
  int64_t stride = 0;  // floats from one row to the next
};

// State of one call, shared by its steps. Steps may write only the rows of their results and result
// tensors.
struct PlanCall {
  int64_t batch = 0;                               // number of rows of the batch
  int64_t begin = 0;                               // first row of the piece that the steps compute
  int64_t rows = 0;                                // number of rows of the piece
  float* scratch = nullptr;                        // as many floats as the steps reserved
  const std::vector<PlanPlace>* places = nullptr;  // places of the values, by number
  std::vector<TensorView>* views = nullptr;        // by slot
  std::vector<TensorLike>* tensors = nullptr;      // empty where only views are available
  float* workspace = nullptr;                      // memory of the values that are not tensors
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

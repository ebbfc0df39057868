#include <keel/autodiff/ops/ops_internal.h>

#include <keel/autodiff/tape.h>
#include <keel/framework/kernels/half.h>

namespace keel::ops::internal {

void check_floating(const char* caller, const TensorSpec& x) {
  if (!is_floating(x.dtype)) {
    throw TypeError(caller, ": dtype must be float32 or float64, received ", x.dtype);
  }
}

void check_numeric(const char* caller, const TensorSpec& x) {
  if (!is_floating(x.dtype) && !is_integer(x.dtype)) {
    throw TypeError(caller, ": dtype must be numeric, received ", x.dtype);
  }
}

void check_same_dtype(const char* caller, const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype) {
    throw TypeError(caller, ": operands must have the same dtype, received ", a.dtype, " and ",
                    b.dtype);
  }
}

MatmulPrecision precision_of_step() {
  return GradientTape::any_in_use() ? matmul_precision() : MatmulPrecision::kHighest;
}

Tensor product_operand(const Tensor& x, ProductOperands operands) {
  if (operands != ProductOperands::kFloat16 || x.dtype() != DType::kFloat32) return x;
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype());
  const float* from = x.data<float>().data();
  float* to = out.mutable_data<float>().data();
  parallel_for(x.size(), kGrain, [&](int64_t begin, int64_t end) {
    kernels::round_as_float16(from + begin, end - begin, to + begin);
  });
  return out;
}

BroadcastPlan plan_broadcast(const Shape& out, std::initializer_list<Shape> operands) {
  const int count = static_cast<int>(operands.size());
  BroadcastPlan plan;
  plan.advances.fill(true);  // correct for a result of a single element
  std::array<int64_t, BroadcastPlan::kMaxOperands> size;
  size.fill(1);
  // Merges adjacent dimensions that every operand traverses contiguously. dims[0] holds the
  // innermost dimension until all dimensions are known; then it becomes `inner`.
  for (int axis = 1; axis <= out.rank(); ++axis) {
    const int64_t n = out[-axis];
    if (n == 0) {
      plan.rows = 0;
      return plan;
    }
    if (n == 1) continue;
    std::array<int64_t, BroadcastPlan::kMaxOperands> stride = {};
    bool continues = plan.rank > 0;
    for (int k = 0; k < count; ++k) {
      const Shape& shape = operands.begin()[k];
      if (axis <= shape.rank() && shape[-axis] != 1) {
        stride[k] = size[k];
        size[k] *= n;
      }
      continues =
          continues && stride[k] == plan.strides[k][plan.rank - 1] * plan.dims[plan.rank - 1];
    }
    if (continues) {
      plan.dims[plan.rank - 1] *= n;
      continue;
    }
    plan.dims[plan.rank] = n;
    for (int k = 0; k < count; ++k) plan.strides[k][plan.rank] = stride[k];
    ++plan.rank;
  }
  if (plan.rank == 0) return plan;
  plan.inner = plan.dims[0];
  --plan.rank;
  for (int i = 0; i < plan.rank; ++i) {
    plan.dims[i] = plan.dims[i + 1];
    plan.rows *= plan.dims[i];
  }
  for (int k = 0; k < count; ++k) {
    plan.advances[k] = plan.strides[k][0] != 0;
    std::shift_left(plan.strides[k].begin(), plan.strides[k].end(), 1);
  }
  return plan;
}

}  // namespace keel::ops::internal

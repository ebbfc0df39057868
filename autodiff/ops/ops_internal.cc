#include <keel/autodiff/ops/ops_internal.h>

#include <algorithm>
#include <cstring>

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

namespace {

const std::byte* at(const void* data, int64_t element, size_t size) {
  return static_cast<const std::byte*>(data) + element * static_cast<int64_t>(size);
}
std::byte* at(void* data, int64_t element, size_t size) {
  return static_cast<std::byte*>(data) + element * static_cast<int64_t>(size);
}

// Applies `loops.each` to n elements and a single one, which is element `once` of the operands.
void map_with_copies(const BinaryLoops& loops, const void* fn, const std::byte* const (&x)[2],
                     int once, size_t size, std::byte* out, size_t out_size, int64_t n) {
  constexpr size_t kBytes = 2048;  // stays in the L1 cache, beside the operand and the result
  alignas(64) std::byte copies[kBytes];
  const int64_t block = std::min<int64_t>(n, kBytes / size);
  const size_t bytes = block * size;
  std::memcpy(copies, x[once], size);
  for (size_t done = size; done < bytes; done *= 2) {
    std::memcpy(copies + done, copies, std::min(done, bytes - done));
  }
  for (int64_t i = 0; i < n; i += block) {
    const std::byte* const other = at(x[1 - once], i, size);
    loops.each(fn, once == 0 ? copies : other, once == 0 ? other : copies, at(out, i, out_size),
               std::min(block, n - i));
  }
}

}  // namespace

void map(UnaryLoop loop, const void* fn, const void* x, size_t size, void* out, size_t out_size,
         int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    loop(fn, at(x, begin, size), at(out, begin, out_size), end - begin);
  });
}

void map(const BinaryLoops& loops, const void* fn, const BroadcastPlan& plan, const void* a,
         const void* b, size_t size, void* out, size_t out_size) {
  const bool each_a = plan.advances[0], each_b = plan.advances[1];
  const BinaryLoop loop = each_a && each_b ? loops.each : each_a ? loops.b_once : loops.a_once;
  if (plan.inner <= kGrain && plan.rank <= 1 && loop != nullptr) {
    // Rows may be short, so the loop over them does the least possible.
    const int64_t n = plan.inner;
    const int64_t a_step = plan.strides[0][0] * static_cast<int64_t>(size);
    const int64_t b_step = plan.strides[1][0] * static_cast<int64_t>(size);
    const int64_t out_step = n * static_cast<int64_t>(out_size);
    parallel_for(n == 0 ? 0 : plan.rows, kGrain / std::max<int64_t>(1, n),
                 [&](int64_t first, int64_t last) {
                   const std::byte *x = at(a, first, a_step), *y = at(b, first, b_step);
                   std::byte* to = at(out, first, out_step);
                   for (int64_t row = first; row < last; ++row) {
                     loop(fn, x, y, to, n);
                     x += a_step;
                     y += b_step;
                     to += out_step;
                   }
                 });
    return;
  }
  for_each_piece(plan, [&](int64_t row, int64_t begin, int64_t end) {
    const std::byte* const x[2] = {at(a, plan.offset(0, row) + (each_a ? begin : 0), size),
                                   at(b, plan.offset(1, row) + (each_b ? begin : 0), size)};
    std::byte* const to = at(out, row * plan.inner + begin, out_size);
    if (loop != nullptr) {
      loop(fn, x[0], x[1], to, end - begin);
    } else {
      map_with_copies(loops, fn, x, each_a ? 1 : 0, size, to, out_size, end - begin);
    }
  });
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

// Helpers shared by the op implementations: operand checks and broadcasting loops.
#pragma once

#include <array>
#include <initializer_list>
#include <span>

#include <keel/autodiff/internal/autocast.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/matmul_precision.h>
#include <keel/framework/tensor.h>

namespace keel::ops::internal {

inline constexpr int64_t kGrain = 16384;  // elements per block of a parallel loop

// Throw a TypeError naming `caller` unless the operand has the dtype in the function's name.
void check_floating(const char* caller, const TensorSpec& x);
void check_numeric(const char* caller, const TensorSpec& x);
void check_same_dtype(const char* caller, const TensorSpec& a, const TensorSpec& b);

// Returns the precision of a float32 product computed now: matmul_precision() during a training
// step, the highest precision otherwise.
MatmulPrecision precision_of_step();

// Returns the operand of a product as the op's setting says. Rounds to float16 only: the kernels
// round to bfloat16 themselves. Other dtypes than float32 are never rounded.
Tensor product_operand(const Tensor& x, ProductOperands operands);

// Returns x with its axes permuted: axis i of the result is axis permutation[i] of x.
Tensor transposed(const Tensor& x, std::span<const int> permutation);

// Describes how up to three broadcast operands are traversed while the result is filled in
// row-major order. The result is treated as `rows` rows of `inner` elements. Along a row, an
// operand either advances by 1 or stays at one element.
struct BroadcastPlan {
  static constexpr int kMaxOperands = 3;

  int64_t rows = 1;
  int64_t inner = 1;
  std::array<bool, kMaxOperands> advances = {};

  // Returns the position in `operand` at which `row` begins.
  int64_t offset(int operand, int64_t row) const {
    int64_t out = 0;
    for (int i = 0; i < rank; ++i) {
      const bool last = i + 1 == rank;
      out += (last ? row : row % dims[i]) * strides[operand][i];
      if (!last) row /= dims[i];
    }
    return out;
  }

  // The dimensions that enumerate the rows, innermost first.
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> dims = {};
  std::array<std::array<int64_t, Shape::kMaxRank>, kMaxOperands> strides = {};
};
// Returns the plan for operands that broadcast to `out`.
BroadcastPlan plan_broadcast(const Shape& out, std::initializer_list<Shape> operands);

// Calls fn(row, begin, end) in parallel for row segments that cover the result.
template <class Fn>
void for_each_piece(const BroadcastPlan& plan, const Fn& fn) {
  if (plan.rows == 0 || plan.inner == 0) return;
  const int64_t piece = std::min(plan.inner, kGrain);
  const int64_t per_row = (plan.inner + piece - 1) / piece;
  parallel_for(plan.rows * per_row, kGrain / piece, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t begin = per_row == 1 ? 0 : p % per_row * piece;
      fn(per_row == 1 ? p : p / per_row, begin, std::min(begin + piece, plan.inner));
    }
  });
}

// Computes out[i] = fn(x[i]).
template <class T, class Out, class Fn>
void map(std::span<const T> x, std::span<Out> out, const Fn& fn) {
  parallel_for(static_cast<int64_t>(x.size()), kGrain, [&](int64_t begin, int64_t end) {
    const Fn f = fn;
    const T* from = x.data();
    Out* __restrict to = out.data();
    for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
  });
}

// Computes out = fn(a, b) with broadcasting. The three loops let the compiler vectorize each case.
template <class T, class Out, class Fn>
void map(const BroadcastPlan& plan, const T* a, const T* b, Out* out, const Fn& fn) {
  for_each_piece(plan, [&](int64_t row, int64_t begin, int64_t end) {
    const Fn f = fn;
    const int64_t n = end - begin;
    const T* x = a + plan.offset(0, row) + (plan.advances[0] ? begin : 0);
    const T* y = b + plan.offset(1, row) + (plan.advances[1] ? begin : 0);
    Out* __restrict to = out + row * plan.inner + begin;
    if (plan.advances[0] && plan.advances[1]) {
      for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
    } else if (plan.advances[0]) {
      const T c = *y;
      for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], c);
    } else {
      const T c = *x;
      for (int64_t i = 0; i < n; ++i) to[i] = f(c, y[i]);
    }
  });
}

}  // namespace keel::ops::internal

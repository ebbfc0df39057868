// Helpers shared by the op implementations: operand checks and broadcasting loops.
#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>

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

// The bits of an element of sizeof(Unsigned) bytes, whatever its dtype.
template <class Unsigned>
struct [[gnu::may_alias]] Bits {
  Unsigned value;
};
// Returns the part of an element that ops assign: the compiler vectorizes loops over numbers only.
template <class Unsigned>
auto& value_of(Bits<Unsigned>& x) {
  return x.value;
}
template <class Unsigned>
const auto& value_of(const Bits<Unsigned>& x) {
  return x.value;
}
inline std::string& value_of(std::string& x) { return x; }
inline const std::string& value_of(const std::string& x) { return x; }

// Calls fn(T{}) with the type as which ops that only move elements read a dtype: std::string, or
// the Bits of its size. elements<T>() and mutable_elements<T>() then return the elements.
template <class Fn>
decltype(auto) visit_bits(DType dtype, const Fn& fn) {
  if (dtype == DType::kString) return fn(std::string());
  switch (size_of(dtype)) {
    case 1:
      return fn(Bits<uint8_t>());
    case 4:
      return fn(Bits<uint32_t>());
    default:
      return fn(Bits<uint64_t>());
  }
}
template <class T>
const T* elements(const Tensor& x) {
  if constexpr (std::same_as<T, std::string>) {
    return x.data<std::string>().data();
  } else {
    return reinterpret_cast<const T*>(x.raw().data());
  }
}
template <class T>
T* mutable_elements(Tensor& x) {
  if constexpr (std::same_as<T, std::string>) {
    return x.mutable_data<std::string>().data();
  } else {
    return reinterpret_cast<T*>(x.mutable_raw().data());
  }
}

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

// ---- Loops over elements. A loop is compiled for each function and element type; the code that
// divides the elements among workers and rows is compiled once and calls loops by their address.

// Computes out[i] = f(x[i]) for n elements. `fn` points to f if f has a state.
using UnaryLoop = void (*)(const void* fn, const void* x, void* out, int64_t n);
// Computes out[i] = f(a[i], b[i]) for n elements.
using BinaryLoop = void (*)(const void* fn, const void* a, const void* b, void* out, int64_t n);

// The loops of a function of two operands. `a_once` and `b_once` read a single element of this
// operand. If they are null, `each` serves instead, with copies of the element: this takes less
// code and, per element, one more load from the L1 cache. Elements must then be trivially copyable.
struct BinaryLoops {
  BinaryLoop each = nullptr;
  BinaryLoop a_once = nullptr, b_once = nullptr;
};

// Applies the loop to n elements of `size` bytes, whose results have `out_size` bytes.
void map(UnaryLoop loop, const void* fn, const void* x, size_t size, void* out, size_t out_size,
         int64_t n);
// Applies the loops to two broadcast operands with elements of `size` bytes.
void map(const BinaryLoops& loops, const void* fn, const BroadcastPlan& plan, const void* a,
         const void* b, size_t size, void* out, size_t out_size);

template <class T, class Out, class Fn>
void unary_loop(const void* fn, const void* x, void* out, int64_t n) {
  const Fn f = *static_cast<const Fn*>(fn);
  const T* from = static_cast<const T*>(x);
  Out* __restrict to = static_cast<Out*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = f(from[i]);
}
template <class T, class Out, class Fn>
void binary_loop(const void* fn, const void* a, const void* b, void* out, int64_t n) {
  const Fn f = *static_cast<const Fn*>(fn);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  Out* __restrict to = static_cast<Out*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
}

// Computes out[i] = fn(x[i]).
template <class T, class Out, class Fn>
void map(std::span<const T> x, std::span<Out> out, const Fn& fn) {
  map(unary_loop<T, Out, Fn>, &fn, x.data(), sizeof(T), out.data(), sizeof(Out),
      static_cast<int64_t>(x.size()));
}

// Computes out = fn(a, b) with broadcasting.
template <class T, class Out, class Fn>
void map(const BroadcastPlan& plan, const T* a, const T* b, Out* out, const Fn& fn) {
  map({.each = binary_loop<T, Out, Fn>}, &fn, plan, a, b, sizeof(T), out, sizeof(Out));
}

}  // namespace keel::ops::internal

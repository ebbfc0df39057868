// Elementwise functions as ops. The ops are not templates: a function is a table of loops, one for
// each dtype, and of gradients. Private to ops.
#pragma once

#include <array>
#include <concepts>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops/ops_internal.h>

namespace keel::ops::internal {

// The parameters of a function, such as the factor of Scale and the bounds of Clip.
struct Parameters {
  double first = 0, second = 0;
};

// The tensors that the gradient of a unary or binary function may use: operands, result, and the
// gradient of the result. Those not listed in kRetain are empty handles.
struct Values {
  const Tensor &a, &b, &y, &dy;
  const Parameters parameters = {};
};

// Defaults shared by the classes of functions. kFloating: accepts float32 and float64 only.
// kScalars: a binary function that often has an operand of a single element, and is so fast that
// this case needs loops of its own.
struct OfNumbers {
  static constexpr bool kFloating = false;
  static constexpr bool kDifferentiable = true;
  static constexpr bool kScalars = false;
  Parameters parameters = {};
};
struct OfFloats : OfNumbers {
  static constexpr bool kFloating = true;
};
inline constexpr Retain kNothing = {.inputs = 0, .outputs = 0};
inline constexpr Retain kInput = {.inputs = 1, .outputs = 0};
inline constexpr Retain kOutput = {.inputs = 0, .outputs = 1};
inline constexpr Retain kFirst = {.inputs = 1, .outputs = 0};
inline constexpr Retain kBoth = {.inputs = 3, .outputs = 0};
inline constexpr Retain kSecondAndOutput = {.inputs = 2, .outputs = 1};

inline constexpr size_t kDTypes =
    static_cast<size_t>(DType::kUint8) + 1;  // up to the last numeric one

struct FunctionTraits {
  const char *class_name, *name;
  bool floating, differentiable;
  Retain retain;

  // Throws TypeError, naming the function, for a dtype that it does not take.
  void check_dtype(const TensorSpec& x) const;
};
struct UnaryFunction : FunctionTraits {
  std::array<UnaryLoop, kDTypes> loops;
  Gradient (*gradient)(const Values&);
};
struct BinaryFunction : FunctionTraits {
  std::array<BinaryLoops, kDTypes> loops;
  Gradient (*gradient_a)(const Values&);
  Gradient (*gradient_b)(const Values&);
};

// Computes y[i] = f(x[i]).
class Unary final : public Op {
 public:
  Unary(const UnaryFunction& f, const Parameters& parameters)
      : Op(f.class_name), f_(f), parameters_(parameters) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override;
  std::vector<Tensor> compute(std::span<const Tensor> in) const override;
  std::vector<Gradient> vjp(const VjpArgs& args) const override;
  Retain retain() const override { return f_.retain; }
  bool differentiable() const override { return f_.differentiable; }

 private:
  const UnaryFunction& f_;
  const Parameters parameters_;
};

// Computes y = f(a, b) with broadcasting.
class Binary final : public Op {
 public:
  explicit Binary(const BinaryFunction& f) : Op(f.class_name), f_(f) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override;
  std::vector<Tensor> compute(std::span<const Tensor> in) const override;
  std::vector<Gradient> vjp(const VjpArgs& args) const override;
  Retain retain() const override { return f_.retain; }
  bool differentiable() const override { return f_.differentiable; }

 private:
  const BinaryFunction& f_;
};

template <class F>
constexpr FunctionTraits traits_of() {
  return {.class_name = F::kClass,
          .name = F::kName,
          .floating = F::kFloating,
          .differentiable = F::kDifferentiable,
          .retain = F::kRetain};
}

template <class F, class T>
void function_loop(const void* parameters, const void* x, void* out, int64_t n) {
  F f;
  f.parameters = *static_cast<const Parameters*>(parameters);
  const T* from = static_cast<const T*>(x);
  T* __restrict to = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(f(from[i]));
}
template <class F>
Tensor unary(const Tensor& x, const Parameters& parameters = {}) {
  static constexpr UnaryFunction kFunction = [] {
    UnaryFunction out = {
        traits_of<F>(), {function_loop<F, float>, function_loop<F, double>}, nullptr};
    if constexpr (!F::kFloating) {
      out.loops[static_cast<size_t>(DType::kInt32)] = function_loop<F, int32_t>;
      out.loops[static_cast<size_t>(DType::kInt64)] = function_loop<F, int64_t>;
      out.loops[static_cast<size_t>(DType::kUint8)] = function_loop<F, uint8_t>;
    }
    if constexpr (F::kDifferentiable) out.gradient = F::gradient;
    return out;
  }();
  return dispatch1(Unary(kFunction, parameters), {x});
}

// Computes out[i] = f(a[i * kStepA], b[i * kStepB]).
template <class F, class T, int64_t kStepA, int64_t kStepB>
void broadcast_loop(const void*, const void* a, const void* b, void* out, int64_t n) {
  const F f = {};
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* __restrict to = static_cast<T*>(out);
  if constexpr (kStepA == 0) {
    const T c = *x;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(f(c, y[i]));
  } else if constexpr (kStepB == 0) {
    const T c = *y;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(f(x[i], c));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(f(x[i], y[i]));
  }
}
template <class F, class T>
constexpr BinaryLoops binary_loops() {
  if constexpr (F::kScalars && std::floating_point<T>) {
    return {broadcast_loop<F, T, 1, 1>, broadcast_loop<F, T, 0, 1>, broadcast_loop<F, T, 1, 0>};
  } else {
    return {.each = broadcast_loop<F, T, 1, 1>};
  }
}
template <class F>
Tensor binary(const Tensor& a, const Tensor& b) {
  static constexpr BinaryFunction kFunction = [] {
    BinaryFunction out = {
        traits_of<F>(), {binary_loops<F, float>(), binary_loops<F, double>()}, nullptr, nullptr};
    if constexpr (!F::kFloating) {
      out.loops[static_cast<size_t>(DType::kInt32)] = binary_loops<F, int32_t>();
      out.loops[static_cast<size_t>(DType::kInt64)] = binary_loops<F, int64_t>();
      out.loops[static_cast<size_t>(DType::kUint8)] = binary_loops<F, uint8_t>();
    }
    if constexpr (F::kDifferentiable) {
      out.gradient_a = F::gradient_a;
      out.gradient_b = F::gradient_b;
    }
    return out;
  }();
  return dispatch1(Binary(kFunction), {a, b});
}

}  // namespace keel::ops::internal

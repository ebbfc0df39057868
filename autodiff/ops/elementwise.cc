#include <cmath>
#include <numbers>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/elementwise_internal.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/internal/math.h>

namespace keel {
namespace {

using ops::internal::binary;
using ops::internal::kBoth;
using ops::internal::kFirst;
using ops::internal::kInput;
using ops::internal::kNothing;
using ops::internal::kOutput;
using ops::internal::kSecondAndOutput;
using ops::internal::OfFloats;
using ops::internal::OfNumbers;
using ops::internal::unary;
using ops::internal::Values;

// ---- Binary functions.

struct Add : OfNumbers {
  static constexpr bool kScalars = true;
  static constexpr char kClass[] = "Add", kName[] = "add";
  static constexpr Retain kRetain = kNothing;
  auto operator()(auto a, auto b) const { return a + b; }
  static Gradient gradient_a(const Values& v) { return v.dy; }
  static Gradient gradient_b(const Values& v) { return v.dy; }
};

struct Subtract : OfNumbers {
  static constexpr bool kScalars = true;
  static constexpr char kClass[] = "Subtract", kName[] = "subtract";
  static constexpr Retain kRetain = kNothing;
  auto operator()(auto a, auto b) const { return a - b; }
  static Gradient gradient_a(const Values& v) { return v.dy; }
  static Gradient gradient_b(const Values& v) { return -v.dy; }
};

struct Multiply : OfNumbers {
  static constexpr bool kScalars = true;
  static constexpr char kClass[] = "Multiply", kName[] = "multiply";
  static constexpr Retain kRetain = kBoth;
  auto operator()(auto a, auto b) const { return a * b; }
  static Gradient gradient_a(const Values& v) { return v.dy * v.b; }
  static Gradient gradient_b(const Values& v) { return v.dy * v.a; }
};

struct Divide : OfFloats {
  static constexpr bool kScalars = true;
  static constexpr char kClass[] = "Divide", kName[] = "divide";
  static constexpr Retain kRetain = kSecondAndOutput;
  auto operator()(auto a, auto b) const { return a / b; }
  static Gradient gradient_a(const Values& v) { return v.dy / v.b; }
  static Gradient gradient_b(const Values& v) { return -(v.dy * v.y / v.b); }
};

struct DivideNoNan : OfFloats {
  static constexpr char kClass[] = "DivideNoNan", kName[] = "divide_no_nan";
  static constexpr Retain kRetain = kSecondAndOutput;
  template <class T>
  T operator()(T a, T b) const {
    return b == 0 ? T{0} : a / b;
  }
  static Gradient gradient_a(const Values& v) { return ops::divide_no_nan(v.dy, v.b); }
  static Gradient gradient_b(const Values& v) { return -ops::divide_no_nan(v.dy * v.y, v.b); }
};

// The factor of the gradient that flows to a in maximum(a, b): 1 where a is greater, one half where
// they are equal, 0 where b is greater.
struct Preference : OfNumbers {
  static constexpr char kClass[] = "Preference", kName[] = "maximum";
  static constexpr bool kDifferentiable = false;
  static constexpr Retain kRetain = kNothing;
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? T(1) : a == b ? T(0.5) : T(0);
  }
};

// Comparisons with NaN are false. The result is therefore NaN if either operand is NaN.
struct Maximum : OfNumbers {
  static constexpr bool kScalars = true;
  static constexpr char kClass[] = "Maximum", kName[] = "maximum";
  static constexpr Retain kRetain = kBoth;
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
  static Gradient gradient_a(const Values& v) { return v.dy * binary<Preference>(v.a, v.b); }
  static Gradient gradient_b(const Values& v) { return v.dy * binary<Preference>(v.b, v.a); }
};

struct Minimum : OfNumbers {
  static constexpr bool kScalars = true;
  static constexpr char kClass[] = "Minimum", kName[] = "minimum";
  static constexpr Retain kRetain = kBoth;
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
  static Gradient gradient_a(const Values& v) { return v.dy * binary<Preference>(v.b, v.a); }
  static Gradient gradient_b(const Values& v) { return v.dy * binary<Preference>(v.a, v.b); }
};

struct Pow : OfFloats {
  static constexpr char kClass[] = "Pow", kName[] = "pow";
  static constexpr Retain kRetain = {.inputs = 3, .outputs = 1};
  auto operator()(auto a, auto b) const { return math::pow(a, b); }
  // b a^(b - 1), and 0 for b = 0 even if a is 0.
  static Gradient gradient_a(const Values& v) {
    const Tensor one = Tensor::scalar(1.0).cast(v.b.dtype());
    const Tensor exponent = ops::where(ops::equal(v.b, zero(v)), one, v.b - 1.0);
    return v.dy * v.b * ops::pow(v.a, exponent);
  }
  // y log(a), and 0 where log(a) is undefined.
  static Gradient gradient_b(const Values& v) {
    const Tensor one = Tensor::scalar(1.0).cast(v.a.dtype());
    const Tensor base = ops::where(ops::greater(v.a, zero(v)), v.a, one);
    return v.dy * v.y * ops::log(base);
  }
  static Tensor zero(const Values& v) { return Tensor::zeros({}, v.dy.dtype()); }
};

// ---- Gradients computed in one pass from y and dy. They are linear in dy.

struct ReluGradient : OfFloats {
  static constexpr char kClass[] = "ReluGradient", kName[] = "relu";
  static constexpr Retain kRetain = kFirst;
  template <class T>
  T operator()(T y, T dy) const {
    return y > 0 ? dy : T{0};
  }
  static Gradient gradient_a(const Values&) { return {}; }
  static Gradient gradient_b(const Values& v) { return binary<ReluGradient>(v.a, v.dy); }
};

struct SigmoidGradient : OfFloats {
  static constexpr char kClass[] = "SigmoidGradient", kName[] = "sigmoid";
  static constexpr Retain kRetain = kBoth;
  template <class T>
  T operator()(T y, T dy) const {
    return dy * (y * (1 - y));
  }
  static Gradient gradient_a(const Values& v) { return v.dy * v.b * (-2.0 * v.a + 1.0); }
  static Gradient gradient_b(const Values& v) { return binary<SigmoidGradient>(v.a, v.dy); }
};

struct TanhGradient : OfFloats {
  static constexpr char kClass[] = "TanhGradient", kName[] = "tanh";
  static constexpr Retain kRetain = kBoth;
  template <class T>
  T operator()(T y, T dy) const {
    return dy * (1 - y * y);
  }
  static Gradient gradient_a(const Values& v) { return -2.0 * (v.dy * v.b * v.a); }
  static Gradient gradient_b(const Values& v) { return binary<TanhGradient>(v.a, v.dy); }
};

// ---- Unary functions.

struct Scale : OfNumbers {
  static constexpr char kClass[] = "Scale", kName[] = "scale";
  static constexpr Retain kRetain = kNothing;
  template <class T>
  auto operator()(T x) const {
    if constexpr (std::floating_point<T>) {
      return x * static_cast<T>(parameters.first);
    } else {
      return static_cast<double>(x) * parameters.first;
    }
  }
  static Gradient gradient(const Values& v) { return ops::scale(v.dy, v.parameters.first); }
};

struct Shift : OfNumbers {
  static constexpr char kClass[] = "Shift", kName[] = "shift";
  static constexpr Retain kRetain = kNothing;
  template <class T>
  auto operator()(T x) const {
    if constexpr (std::floating_point<T>) {
      return x + static_cast<T>(parameters.first);
    } else {
      return static_cast<double>(x) + parameters.first;
    }
  }
  static Gradient gradient(const Values& v) { return v.dy; }
};

struct Negative : OfNumbers {
  static constexpr char kClass[] = "Negative", kName[] = "negative";
  static constexpr Retain kRetain = kNothing;
  auto operator()(auto x) const { return -x; }
  static Gradient gradient(const Values& v) { return -v.dy; }
};

struct Abs : OfNumbers {
  static constexpr char kClass[] = "Abs", kName[] = "abs";
  static constexpr Retain kRetain = kInput;
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return std::abs(x);
    }
  }
  static Gradient gradient(const Values& v) { return v.dy * ops::sign(v.a); }
};

struct Sign : OfNumbers {
  static constexpr char kClass[] = "Sign", kName[] = "sign";
  static constexpr bool kDifferentiable = false;
  static constexpr Retain kRetain = kNothing;
  template <class T>
  T operator()(T x) const {
    return x != x ? x : static_cast<T>((x > 0) - (x < 0));
  }
};

struct Square : OfNumbers {
  static constexpr char kClass[] = "Square", kName[] = "square";
  static constexpr Retain kRetain = kInput;
  auto operator()(auto x) const { return x * x; }
  static Gradient gradient(const Values& v) { return 2.0 * (v.dy * v.a); }
};

struct Sqrt : OfFloats {
  static constexpr char kClass[] = "Sqrt", kName[] = "sqrt";
  static constexpr Retain kRetain = kOutput;
  auto operator()(auto x) const { return std::sqrt(x); }
  static Gradient gradient(const Values& v) { return 0.5 * (v.dy / v.y); }
};

struct Rsqrt : OfFloats {
  static constexpr char kClass[] = "Rsqrt", kName[] = "rsqrt";
  static constexpr Retain kRetain = kOutput;
  template <class T>
  T operator()(T x) const {
    return 1 / std::sqrt(x);
  }
  static Gradient gradient(const Values& v) { return -0.5 * (v.dy * v.y * ops::square(v.y)); }
};

struct Exp : OfFloats {
  static constexpr char kClass[] = "Exp", kName[] = "exp";
  static constexpr Retain kRetain = kOutput;
  auto operator()(auto x) const { return math::exp(x); }
  static Gradient gradient(const Values& v) { return v.dy * v.y; }
};

struct Log : OfFloats {
  static constexpr char kClass[] = "Log", kName[] = "log";
  static constexpr Retain kRetain = kInput;
  auto operator()(auto x) const { return math::log(x); }
  static Gradient gradient(const Values& v) { return v.dy / v.a; }
};

struct Log1p : OfFloats {
  static constexpr char kClass[] = "Log1p", kName[] = "log1p";
  static constexpr Retain kRetain = kInput;
  auto operator()(auto x) const { return math::log1p(x); }
  static Gradient gradient(const Values& v) { return v.dy / (v.a + 1.0); }
};

struct Erf : OfFloats {
  static constexpr char kClass[] = "Erf", kName[] = "erf";
  static constexpr Retain kRetain = kInput;
  auto operator()(auto x) const { return math::erf(x); }
  static Gradient gradient(const Values& v) {
    return 2 * std::numbers::inv_sqrtpi * (v.dy * ops::exp(-ops::square(v.a)));
  }
};

struct Tanh : OfFloats {
  static constexpr char kClass[] = "Tanh", kName[] = "tanh";
  static constexpr Retain kRetain = kOutput;
  auto operator()(auto x) const { return math::tanh(x); }
  static Gradient gradient(const Values& v) { return binary<TanhGradient>(v.y, v.dy); }
};

struct Sigmoid : OfFloats {
  static constexpr char kClass[] = "Sigmoid", kName[] = "sigmoid";
  static constexpr Retain kRetain = kOutput;
  auto operator()(auto x) const { return math::sigmoid(x); }
  static Gradient gradient(const Values& v) { return binary<SigmoidGradient>(v.y, v.dy); }
};

struct Softplus : OfFloats {
  static constexpr char kClass[] = "Softplus", kName[] = "softplus";
  static constexpr Retain kRetain = kInput;
  auto operator()(auto x) const { return math::softplus(x); }
  static Gradient gradient(const Values& v) { return v.dy * ops::sigmoid(v.a); }
};

struct Relu : OfFloats {
  static constexpr char kClass[] = "Relu", kName[] = "relu";
  static constexpr Retain kRetain = kOutput;
  template <class T>
  T operator()(T x) const {
    return x < 0 ? T{0} : x;
  }
  static Gradient gradient(const Values& v) { return binary<ReluGradient>(v.y, v.dy); }
};

struct Floor : OfFloats {
  static constexpr char kClass[] = "Floor", kName[] = "floor";
  static constexpr bool kDifferentiable = false;
  static constexpr Retain kRetain = kNothing;
  auto operator()(auto x) const { return std::floor(x); }
};

// Returns 1 in [first, second] and 0 outside.
struct Inside : OfNumbers {
  static constexpr char kClass[] = "Inside", kName[] = "clip_by_value";
  static constexpr bool kDifferentiable = false;
  static constexpr Retain kRetain = kNothing;
  template <class T>
  T operator()(T x) const {
    return x >= static_cast<T>(parameters.first) && x <= static_cast<T>(parameters.second) ? T{1}
                                                                                           : T{0};
  }
};

struct Clip : OfFloats {
  static constexpr char kClass[] = "ClipByValue", kName[] = "clip_by_value";
  static constexpr Retain kRetain = kInput;
  template <class T>
  T operator()(T x) const {
    const T l = static_cast<T>(parameters.first), h = static_cast<T>(parameters.second);
    return x < l ? l : x > h ? h : x;
  }
  static Gradient gradient(const Values& v) { return v.dy * unary<Inside>(v.a, v.parameters); }
};

class Cast final : public Op {
 public:
  explicit Cast(DType dtype) : Op("Cast"), dtype_(dtype) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    if (in[0].dtype == DType::kString || dtype_ == DType::kString) {
      throw TypeError("cast: cannot convert ", in[0].dtype, " to ", dtype_,
                      "; strings cannot be cast");
    }
    return {{.shape = in[0].shape, .dtype = dtype_}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {in[0].cast(dtype_)};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {ops::cast(args.output_gradients[0].dense(), args.input_specs[0].dtype)};
  }
  Retain retain() const override { return kNothing; }
  bool differentiable() const override { return is_floating(dtype_); }

 private:
  const DType dtype_;
};

}  // namespace

namespace ops {

Tensor add(const Tensor& a, const Tensor& b) { return binary<Add>(a, b); }
Tensor subtract(const Tensor& a, const Tensor& b) { return binary<Subtract>(a, b); }
Tensor multiply(const Tensor& a, const Tensor& b) { return binary<Multiply>(a, b); }
Tensor divide(const Tensor& a, const Tensor& b) { return binary<Divide>(a, b); }
Tensor divide_no_nan(const Tensor& a, const Tensor& b) { return binary<DivideNoNan>(a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return binary<Maximum>(a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary<Minimum>(a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return binary<Pow>(a, b); }

Tensor scale(const Tensor& x, double factor) { return unary<Scale>(x, {factor}); }
Tensor shift(const Tensor& x, double offset) { return unary<Shift>(x, {offset}); }
Tensor negative(const Tensor& x) { return unary<Negative>(x); }
Tensor abs(const Tensor& x) { return unary<Abs>(x); }
Tensor sign(const Tensor& x) { return unary<Sign>(x); }
Tensor square(const Tensor& x) { return unary<Square>(x); }
Tensor sqrt(const Tensor& x) { return unary<Sqrt>(x); }
Tensor rsqrt(const Tensor& x) { return unary<Rsqrt>(x); }
Tensor exp(const Tensor& x) { return unary<Exp>(x); }
Tensor log(const Tensor& x) { return unary<Log>(x); }
Tensor log1p(const Tensor& x) { return unary<Log1p>(x); }
Tensor erf(const Tensor& x) { return unary<Erf>(x); }
Tensor tanh(const Tensor& x) { return unary<Tanh>(x); }
Tensor sigmoid(const Tensor& x) { return unary<Sigmoid>(x); }
Tensor softplus(const Tensor& x) { return unary<Softplus>(x); }
Tensor relu(const Tensor& x) { return unary<Relu>(x); }
Tensor floor(const Tensor& x) { return unary<Floor>(x); }

Tensor clip_by_value(const Tensor& x, double low, double high) {
  if (!(low <= high)) {
    throw ValueError("clip_by_value: low must not exceed high, received ", low, " and ", high);
  }
  return unary<Clip>(x, {low, high});
}

Tensor cast(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : dispatch1(Cast(dtype), {x});
}

}  // namespace ops
}  // namespace keel

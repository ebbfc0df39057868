#include <functional>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>

namespace keel {
namespace {

using ops::internal::BinaryLoop;
using ops::internal::BinaryLoops;
using ops::internal::Bits;
using ops::internal::BroadcastPlan;

constexpr Retain kNothing = {.inputs = 0, .outputs = 0};

// A comparison of two operands. `swapped`: the loops compare b with a, since a > b is b < a.
struct Comparison {
  const char *class_name, *name;
  bool any_dtype;
  BinaryLoops (*loops_of)(DType dtype);
  bool swapped = false;
};

// Computes the bool tensor f(a, b) with broadcasting.
class Compare final : public Op {
 public:
  explicit Compare(const Comparison& f) : Op(f.class_name), f_(f) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_same_dtype(f_.name, in[0], in[1]);
    if (!f_.any_dtype) ops::internal::check_numeric(f_.name, in[0]);
    return {{.shape = broadcast_shapes(in[0].shape, in[1].shape, f_.name), .dtype = DType::kBool}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor &a = in[f_.swapped ? 1 : 0], &b = in[f_.swapped ? 0 : 1];
    const Shape shape = broadcast_shapes(in[0].shape(), in[1].shape(), f_.name);
    const BroadcastPlan plan = ops::internal::plan_broadcast(shape, {a.shape(), b.shape()});
    Tensor y = Tensor::uninitialized(shape, DType::kBool);
    const DType dtype = a.dtype();
    ops::internal::map(f_.loops_of(dtype), nullptr, plan, elements_of(a), elements_of(b),
                       dtype == DType::kString ? sizeof(std::string) : size_of(dtype),
                       y.mutable_data<bool>().data(), sizeof(bool));
    return {y};
  }
  Retain retain() const override { return kNothing; }
  bool differentiable() const override { return false; }

 private:
  static const void* elements_of(const Tensor& x) {
    if (x.dtype() == DType::kString) return x.data<std::string>().data();
    return x.raw().data();
  }

  const Comparison f_;
};

// Computes out[i] = f(a[i * kStepA], b[i * kStepB]).
template <class F, class T, int64_t kStepA = 1, int64_t kStepB = 1>
void compare_loop(const void*, const void* a, const void* b, void* out, int64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  bool* __restrict to = static_cast<bool*>(out);
  if constexpr (std::same_as<T, std::string>) {
    for (int64_t i = 0; i < n; ++i) to[i] = F()(x[i * kStepA], y[i * kStepB]);
  } else {
    const T p = *x, q = *y;
    for (int64_t i = 0; i < n; ++i) to[i] = F()(kStepA == 0 ? p : x[i], kStepB == 0 ? q : y[i]);
  }
}

template <class F, class T>
constexpr BinaryLoops compare_loops() {
  return {.each = compare_loop<F, T>,
          .a_once = compare_loop<F, T, 0, 1>,
          .b_once = compare_loop<F, T, 1, 0>};
}

// Returns the loops of functions that compare elements as equal or not: integers of one size share
// them. Bools are bytes of 0 or 1.
template <class F>
BinaryLoops equality_loops(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {.each = compare_loop<F, float>, .b_once = compare_loop<F, float, 1, 0>};
    case DType::kFloat64:
      return {.each = compare_loop<F, double>};
    case DType::kInt32:
      return {.each = compare_loop<F, int32_t>, .b_once = compare_loop<F, int32_t, 1, 0>};
    case DType::kInt64:
      return {.each = compare_loop<F, int64_t>, .b_once = compare_loop<F, int64_t, 1, 0>};
    case DType::kString:
      return compare_loops<F, std::string>();
    case DType::kBool:
    case DType::kUint8:
    case DType::kInt8:
      break;
  }
  return {.each = compare_loop<F, uint8_t>};
}
template <class F>
BinaryLoops order_loops(DType dtype) {
  if (dtype == DType::kFloat32) return compare_loops<F, float>();
  return visit_numeric(dtype, "compare",
                       []<class T>(const T&) { return BinaryLoops{.each = compare_loop<F, T>}; });
}

Tensor compare(const Comparison& f, const Tensor& a, const Tensor& b) {
  return dispatch1(Compare(f), {a, b});
}

class LogicalNot final : public Op {
 public:
  LogicalNot() : Op("LogicalNot") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    if (in[0].dtype != DType::kBool) {
      throw TypeError("logical_not: the operand must be bool, received ", in[0].dtype);
    }
    return {in[0]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::uninitialized(in[0].shape(), DType::kBool);
    ops::internal::map(in[0].data<bool>(), y.mutable_data<bool>(), [](bool x) { return !x; });
    return {y};
  }
  bool differentiable() const override { return false; }
};

class IsNan final : public Op {
 public:
  IsNan() : Op("IsNan") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("is_nan", in[0]);
    return {{.shape = in[0].shape, .dtype = DType::kBool}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::uninitialized(in[0].shape(), DType::kBool);
    visit_floating(in[0].dtype(), "is_nan", [&]<class T>(const T&) {
      ops::internal::map(in[0].data<T>(), y.mutable_data<bool>(), [](T x) { return x != x; });
    });
    return {y};
  }
  bool differentiable() const override { return false; }
};

// The inputs are condition, a and b.
class Where final : public Op {
 public:
  Where() : Op("Where") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    if (in[0].dtype != DType::kBool) {
      throw TypeError("where: the condition must be bool, received ", in[0].dtype);
    }
    ops::internal::check_same_dtype("where", in[1], in[2]);
    const Shape values = broadcast_shapes(in[1].shape, in[2].shape, "where");
    return {{.shape = broadcast_shapes(in[0].shape, values, "where"), .dtype = in[1].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape values = broadcast_shapes(in[1].shape(), in[2].shape(), "where");
    const Shape shape = broadcast_shapes(in[0].shape(), values, "where");
    const BroadcastPlan plan =
        ops::internal::plan_broadcast(shape, {in[0].shape(), in[1].shape(), in[2].shape()});
    Tensor y = Tensor::uninitialized(shape, in[1].dtype());
    ops::internal::visit_bits(y.dtype(), [&]<class T>(const T&) {
      choose(plan, in[0].data<bool>().data(), ops::internal::elements<T>(in[1]),
             ops::internal::elements<T>(in[2]), ops::internal::mutable_elements<T>(y));
    });
    return {y};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor dy = args.output_gradients[0].dense();
    const Tensor zero = Tensor::zeros({}, dy.dtype());
    std::vector<Gradient> out(3);
    if (args.wants(1)) {
      out[1] = ops::sum_to(ops::where(args.inputs[0], dy, zero), args.input_specs[1].shape);
    }
    if (args.wants(2)) {
      out[2] = ops::sum_to(ops::where(args.inputs[0], zero, dy), args.input_specs[2].shape);
    }
    return out;
  }
  Retain retain() const override { return {.inputs = 1, .outputs = 0}; }

 private:
  // Selects by a mask: a branch would be mispredicted for every second element of a random
  // condition.
  template <class Unsigned>
  static void assign(Bits<Unsigned>& to, bool condition, Bits<Unsigned> x, Bits<Unsigned> z) {
    const auto mask = static_cast<Unsigned>(-static_cast<Unsigned>(condition));
    to.value = static_cast<Unsigned>((x.value & mask) | (z.value & ~mask));
  }
  static void assign(std::string& to, bool condition, const std::string& x, const std::string& z) {
    to = condition ? x : z;
  }

  template <class T>
  static void choose(const BroadcastPlan& plan, const bool* condition, const T* a, const T* b,
                     T* y) {
    ops::internal::for_each_piece(plan, [&](int64_t row, int64_t begin, int64_t end) {
      const int64_t c_step = plan.advances[0], x_step = plan.advances[1], z_step = plan.advances[2];
      const int64_t n = end - begin;
      const bool* c = condition + plan.offset(0, row) + begin * c_step;
      const T* x = a + plan.offset(1, row) + begin * x_step;
      const T* z = b + plan.offset(2, row) + begin * z_step;
      T* __restrict to = y + row * plan.inner + begin;
      if (c_step + x_step + z_step == 3) {
        for (int64_t i = 0; i < n; ++i) assign(to[i], c[i], x[i], z[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          assign(to[i], c[i * c_step], x[i * x_step], z[i * z_step]);
        }
      }
    });
  }
};

class StopGradient final : public Op {
 public:
  StopGradient() : Op("StopGradient") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {in[0].aliased()};
  }
  bool differentiable() const override { return false; }
};

class OnesLike final : public Op {
 public:
  OnesLike() : Op("OnesLike") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    if (in[0].dtype == DType::kString) {
      throw TypeError("ones_like: strings are not supported; pass a numeric or bool tensor");
    }
    return {in[0]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_any(y.dtype(), [&]<class T>(const T&) {
      if constexpr (!std::same_as<T, std::string>) std::ranges::fill(y.mutable_data<T>(), T{1});
    });
    return {y};
  }
  bool differentiable() const override { return false; }
};

class ZerosLike final : public Op {
 public:
  ZerosLike() : Op("ZerosLike") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {Tensor::zeros(in[0].shape(), in[0].dtype())};
  }
  bool differentiable() const override { return false; }
};

void check_bools(const char* caller, const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::kBool && b.dtype() == DType::kBool) return;
  throw TypeError(caller, ": operands must be bool, received ", a.dtype(), " and ", b.dtype());
}

}  // namespace

namespace ops {

Tensor equal(const Tensor& a, const Tensor& b) {
  return compare({"Equal", "equal", true, equality_loops<std::equal_to<>>}, a, b);
}
Tensor not_equal(const Tensor& a, const Tensor& b) {
  return compare({"NotEqual", "not_equal", true, equality_loops<std::not_equal_to<>>}, a, b);
}
Tensor greater(const Tensor& a, const Tensor& b) {
  return compare({"Greater", "greater", false, order_loops<std::less<>>, true}, a, b);
}
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compare({"GreaterEqual", "greater_equal", false, order_loops<std::less_equal<>>, true}, a,
                 b);
}
Tensor less(const Tensor& a, const Tensor& b) {
  return compare({"Less", "less", false, order_loops<std::less<>>}, a, b);
}
Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compare({"LessEqual", "less_equal", false, order_loops<std::less_equal<>>}, a, b);
}
Tensor logical_not(const Tensor& x) { return dispatch1(LogicalNot(), {x}); }
Tensor logical_and(const Tensor& a, const Tensor& b) {
  check_bools("logical_and", a, b);
  return where(a, b, a);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  check_bools("logical_or", a, b);
  return where(a, a, b);
}
Tensor is_nan(const Tensor& x) { return dispatch1(IsNan(), {x}); }
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return dispatch1(Where(), {condition, a, b});
}

Tensor stop_gradient(const Tensor& x) { return dispatch1(StopGradient(), {x}); }
Tensor ones_like(const Tensor& x) { return dispatch1(OnesLike(), {x}); }
Tensor zeros_like(const Tensor& x) { return dispatch1(ZerosLike(), {x}); }

}  // namespace ops
}  // namespace keel

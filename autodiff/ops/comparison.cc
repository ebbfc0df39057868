#include <cmath>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>

namespace keel {
namespace {

using ops::internal::BroadcastPlan;

constexpr Retain kNothing = {.inputs = 0, .outputs = 0};

// Computes the bool tensor f(a, b) with broadcasting.
template <class F>
class Compare final : public Op {
 public:
  Compare() : Op(F::kClass) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_same_dtype(F::kName, in[0], in[1]);
    if (!F::kAnyDtype) ops::internal::check_numeric(F::kName, in[0]);
    return {{.shape = broadcast_shapes(in[0].shape, in[1].shape, F::kName), .dtype = DType::kBool}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape shape = broadcast_shapes(in[0].shape(), in[1].shape(), F::kName);
    const BroadcastPlan plan = ops::internal::plan_broadcast(shape, {in[0].shape(), in[1].shape()});
    Tensor y = Tensor::uninitialized(shape, DType::kBool);
    const auto run = [&]<class T>(const T&) {
      ops::internal::map(plan, in[0].data<T>().data(), in[1].data<T>().data(),
                         y.mutable_data<bool>().data(),
                         [](const T& a, const T& b) { return F()(a, b); });
    };
    if constexpr (F::kAnyDtype) {
      visit_any(in[0].dtype(), run);
    } else {
      visit_numeric(in[0].dtype(), F::kName, run);
    }
    return {y};
  }
  Retain retain() const override { return kNothing; }
  bool differentiable() const override { return false; }
};

struct Equal {
  static constexpr char kClass[] = "Equal", kName[] = "equal";
  static constexpr bool kAnyDtype = true;
  bool operator()(const auto& a, const auto& b) const { return a == b; }
};
struct NotEqual {
  static constexpr char kClass[] = "NotEqual", kName[] = "not_equal";
  static constexpr bool kAnyDtype = true;
  bool operator()(const auto& a, const auto& b) const { return a != b; }
};
struct Greater {
  static constexpr char kClass[] = "Greater", kName[] = "greater";
  static constexpr bool kAnyDtype = false;
  bool operator()(auto a, auto b) const { return a > b; }
};
struct GreaterEqual {
  static constexpr char kClass[] = "GreaterEqual", kName[] = "greater_equal";
  static constexpr bool kAnyDtype = false;
  bool operator()(auto a, auto b) const { return a >= b; }
};
struct Less {
  static constexpr char kClass[] = "Less", kName[] = "less";
  static constexpr bool kAnyDtype = false;
  bool operator()(auto a, auto b) const { return a < b; }
};
struct LessEqual {
  static constexpr char kClass[] = "LessEqual", kName[] = "less_equal";
  static constexpr bool kAnyDtype = false;
  bool operator()(auto a, auto b) const { return a <= b; }
};

template <class F>
Tensor compare(const Tensor& a, const Tensor& b) {
  return dispatch1(Compare<F>(), {a, b});
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
    visit_any(y.dtype(), [&]<class T>(const T&) {
      choose(plan, in[0].data<bool>().data(), in[1].data<T>().data(), in[2].data<T>().data(),
             y.mutable_data<T>().data());
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
  template <class T>
  static void choose(const BroadcastPlan& plan, const bool* condition, const T* a, const T* b,
                     T* y) {
    const std::array<int64_t, 3> step = {plan.advances[0], plan.advances[1], plan.advances[2]};
    ops::internal::for_each_piece(plan, [&](int64_t row, int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      const bool* c = condition + plan.offset(0, row) + begin * step[0];
      const T* x = a + plan.offset(1, row) + begin * step[1];
      const T* z = b + plan.offset(2, row) + begin * step[2];
      T* __restrict to = y + row * plan.inner + begin;
      if (step[0] + step[1] + step[2] == 3) {
        for (int64_t i = 0; i < n; ++i) to[i] = c[i] ? x[i] : z[i];
      } else {
        for (int64_t i = 0; i < n; ++i) {
          to[i] = c[i * step[0]] ? x[i * step[1]] : z[i * step[2]];
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

Tensor equal(const Tensor& a, const Tensor& b) { return compare<Equal>(a, b); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return compare<NotEqual>(a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return compare<Greater>(a, b); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return compare<GreaterEqual>(a, b); }
Tensor less(const Tensor& a, const Tensor& b) { return compare<Less>(a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return compare<LessEqual>(a, b); }
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

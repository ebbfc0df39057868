#include <keel/autodiff/keras_ops/internal/function_op.h>

#include <algorithm>

#include <keel/autodiff/keras_ops/operand.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/exact_cast.h>

namespace keel::keras_ops::internal {
namespace {

class CalledFunction final : public Op {
 public:
  explicit CalledFunction(FunctionOp op) : Op(op.name), op_(std::move(op)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec>) const override { return op_.outputs; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override { return op_.compute(in); }
  std::vector<Gradient> vjp(const VjpArgs& args) const override { return op_.vjp(args); }
  bool differentiable() const override { return op_.vjp != nullptr; }

 private:
  const FunctionOp op_;
};

// An operand that was broadcast contributes to several results, so its gradients are summed.
Tensor gradient_of_operand(const Tensor& dy, const Tensor& slope, const Shape& shape) {
  return ops::sum_to(dy * slope, shape);
}

std::vector<Tensor> compute_binary(const BinaryFunction& f, const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), f.name);
  const auto plan = ops::internal::plan_broadcast(shape, {a.shape(), b.shape()});
  Tensor y = Tensor::uninitialized(shape, a.dtype());
  visit_any(a.dtype(), [&]<class T>(const T&) {
    if constexpr (!std::same_as<T, std::string>) {
      // Formulas exist for double and int64_t only. Results of narrower dtypes are rounded once.
      using Wide = std::conditional_t<std::floating_point<T>, double, int64_t>;
      Wide (*formula)(Wide, Wide) = nullptr;
      if constexpr (std::floating_point<T>) {
        formula = f.of_reals;
      } else {
        formula = f.of_integers;
      }
      ops::internal::map(
          plan, a.data<T>().data(), b.data<T>().data(), y.mutable_data<T>().data(),
          [formula](T p, T q) {
            return static_cast<T>(formula(static_cast<Wide>(p), static_cast<Wide>(q)));
          });
    }
  });
  return {y};
}

}  // namespace

std::vector<Tensor> call(FunctionOp op, std::vector<Tensor> inputs) {
  return dispatch(std::make_shared<const CalledFunction>(std::move(op)), std::move(inputs));
}

Tensor call1(FunctionOp op, std::vector<Tensor> inputs) {
  return call(std::move(op), std::move(inputs))[0];
}

Tensor apply(const UnaryFunction& f, const Tensor& x) {
  const Tensor in = floating(x);
  FunctionOp op = {.name = f.name, .outputs = {in.spec()}};
  op.compute = [value = f.value](std::span<const Tensor> inputs) {
    Tensor y = Tensor::uninitialized(inputs[0].shape(), inputs[0].dtype());
    visit_floating(y.dtype(), "keras_ops", [&]<class T>(const T&) {
      ops::internal::map(inputs[0].data<T>(), y.mutable_data<T>(),
                         [value](T v) { return static_cast<T>(value(v)); });
    });
    return std::vector<Tensor>{y};
  };
  if (f.slope != nullptr) {
    op.vjp = [slope = f.slope](const VjpArgs& args) {
      const Tensor dy = args.output_gradients[0].dense();
      return std::vector<Gradient>{dy * slope(args.inputs[0], args.outputs[0])};
    };
  }
  return call1(std::move(op), {in});
}

Tensor apply(const BinaryFunction& f, const Tensor& a, const Tensor& b) {
  ops::internal::check_same_dtype(f.name, a.spec(), b.spec());
  const bool defined = is_floating(a.dtype()) ? f.of_reals != nullptr : f.of_integers != nullptr;
  if (!defined || a.dtype() == DType::kString) {
    throw TypeError(f.name, ": not defined for ", a.dtype(),
                    "; cast the operands to another dtype");
  }
  FunctionOp op = {.name = f.name, .outputs = {a.spec()}};
  op.outputs[0].shape = broadcast_shapes(a.shape(), b.shape(), f.name);
  op.compute = [f](std::span<const Tensor> in) { return compute_binary(f, in[0], in[1]); };
  if (f.slope_a != nullptr || f.slope_b != nullptr) {
    op.vjp = [f](const VjpArgs& args) {
      const Tensor dy = args.output_gradients[0].dense();
      const Tensor &p = args.inputs[0], &q = args.inputs[1], &y = args.outputs[0];
      std::vector<Gradient> out(2);
      if (f.slope_a != nullptr && args.wants(0)) {
        out[0] = gradient_of_operand(dy, f.slope_a(p, q, y), p.shape());
      }
      if (f.slope_b != nullptr && args.wants(1)) {
        out[1] = gradient_of_operand(dy, f.slope_b(p, q, y), q.shape());
      }
      return out;
    };
  }
  return call1(std::move(op), {a, b});
}

Tensor test(const char* name, bool (*holds)(double x), const Tensor& x) {
  FunctionOp op = {.name = name, .outputs = {{.shape = x.shape(), .dtype = DType::kBool}}};
  op.compute = [holds](std::span<const Tensor> in) {
    Tensor y = Tensor::uninitialized(in[0].shape(), DType::kBool);
    const Tensor wide = in[0].cast(DType::kFloat64);
    ops::internal::map(wide.data<double>(), y.mutable_data<bool>(), holds);
    return std::vector<Tensor>{y};
  };
  return call1(std::move(op), {x});
}

Tensor take_flat(const Tensor& x, const std::vector<int64_t>& positions, const Shape& shape,
                 double fill) {
  Tensor flat = ops::reshape(x, {x.shape().size()});
  std::vector<int64_t> ids = positions;
  // The fill is an additional element, so that one gather and its gradient serve all ops that move
  // elements.
  if (std::ranges::find(ids, kFill) != ids.end()) {
    flat = ops::concat({flat, Tensor::full<double>({1}, fill).cast(x.dtype())}, 0);
    std::ranges::replace(ids, kFill, x.shape().size());
  }
  const Tensor taken = ops::gather(flat, Tensor::from(ids, {static_cast<int64_t>(ids.size())}));
  return ops::reshape(taken, shape);
}

Tensor remap(const Tensor& x, const Shape& shape, Source source, double fill) {
  std::vector<int64_t> positions;
  positions.reserve(shape.size());
  for_each_index(shape, [&](const auto& index) { positions.push_back(source(index)); });
  return take_flat(x, positions, shape, fill);
}

Tensor scatter_flat(const Tensor& x, const std::vector<int64_t>& positions, const Shape& shape) {
  const int64_t size = shape.size(), n = x.shape().size();
  std::vector<int64_t> ids = positions;
  std::ranges::replace(ids, kFill, size);  // summed into an element that is dropped
  // scatter_sum() is defined for floating dtypes. Sums of integers are exact below 2^53.
  const Tensor values = is_floating(x.dtype()) ? x : ops::cast(x, DType::kFloat64);
  const Tensor sums =
      ops::scatter_sum(Tensor::from(ids, {n}), ops::reshape(values, {n}), {size + 1});
  return ops::cast(ops::reshape(ops::slice(sums, 0, 0, size), shape), x.dtype());
}

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> out(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) out[i] = out[i + 1] * shape[i + 1];
  return out;
}

void for_each_index(const Shape& shape, FunctionRef<void(const std::vector<int64_t>&)> fn) {
  std::vector<int64_t> index(shape.rank());
  for (int64_t n = shape.size(); n > 0; --n) {
    fn(index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

std::vector<double> doubles_of(const Tensor& x) {
  return x.cast(DType::kFloat64).to_vector<double>();
}

std::vector<int64_t> integers_of(const std::string& caller, const Tensor& x) {
  return exact_cast(caller, x, DType::kInt64).to_vector<int64_t>();
}

Tensor ids_of(const char* caller, const Tensor& x) {
  if (!is_floating(x.dtype())) return ops::cast(x, DType::kInt64);
  FunctionOp op = {.name = "integer_ids",
                   .outputs = {{.shape = x.shape(), .dtype = DType::kInt64}}};
  op.compute = [caller](std::span<const Tensor> in) {
    return std::vector<Tensor>{integer_ids(caller, in[0])};
  };
  return call1(std::move(op), {x});
}

Tensor flatten_axes(const Tensor& x, const std::vector<int>& axes) {
  std::vector<int> order;
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (std::ranges::find(axes, i) != axes.end()) continue;
    order.push_back(i);
    dims.push_back(x.dim(i));
  }
  for (const int axis : axes) {
    order.push_back(axis);
    count *= x.dim(axis);
  }
  dims.push_back(count);
  // The listed axes are often the last ones already; then nothing is copied.
  const Tensor moved = std::ranges::is_sorted(order) ? x : ops::transpose(x, order);
  return ops::reshape(moved, Shape(dims));
}

Shape reduced(const Shape& x, const std::vector<int>& axes, bool keepdims) {
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const bool listed = std::ranges::find(axes, i) != axes.end();
    if (!listed) dims.push_back(x[i]);
    if (listed && keepdims) dims.push_back(1);
  }
  return Shape(dims);
}

}  // namespace keel::keras_ops::internal

#include <keel/framework/kernels/reduce.h>

#include <absl/container/inlined_vector.h>
#include <algorithm>
#include <concepts>
#include <cstring>
#include <limits>
#include <numeric>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/internal/greatest.h>

namespace keel {
namespace {

using ops::internal::kGrain;

// ---- Axes.

// Whether each axis is reduced. A shape has few axes, so these vectors need no memory of their own.
using AxisFlags = absl::InlinedVector<bool, Shape::kMaxRank>;

AxisFlags reduced_axes(const char* caller, const Shape& x, const std::vector<int>& axes) {
  AxisFlags reduced(x.rank(), axes.empty());
  for (int axis : axes) {
    if (axis < -x.rank() || axis >= x.rank()) {
      throw ValueError(caller, ": axis ", axis, " is out of range for shape ", x,
                       "; pass an axis in [-rank, rank)");
    }
    const int at = axis < 0 ? axis + x.rank() : axis;
    if (reduced[at]) {
      throw ValueError(caller, ": axis ", axis, " is listed twice; list each axis once");
    }
    reduced[at] = true;
  }
  return reduced;
}

Shape reduced_shape(const Shape& x, const AxisFlags& reduced, bool keepdims) {
  absl::InlinedVector<int64_t, Shape::kMaxRank> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) dims.push_back(x[i]);
    if (reduced[i] && keepdims) dims.push_back(1);
  }
  return Shape(dims);
}

// A tensor viewed as [outer, reduced, inner]; the middle dimension is reduced.
struct Layers {
  Tensor x;
  int64_t outer = 1, reduced = 1, inner = 1;
};

// Returns x in this form, transposed if its axes do not have the order outer, reduced, inner.
Layers layers_of(const Tensor& x, const AxisFlags& reduced) {
  enum { kOuter, kReduced, kInner, kOther } stage = kOuter;
  Layers out = {.x = x};
  for (int i = 0; i < x.rank() && stage != kOther; ++i) {
    if (x.dim(i) == 1) continue;
    if (reduced[i]) {
      stage = stage == kInner ? kOther : kReduced;
      out.reduced *= x.dim(i);
    } else {
      if (stage == kReduced) stage = kInner;
      (stage == kInner ? out.inner : out.outer) *= x.dim(i);
    }
  }
  if (stage != kOther) return out;
  absl::InlinedVector<int, Shape::kMaxRank> order(x.rank());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_partition(order, [&](int axis) { return !reduced[axis]; });
  out = {.x = ops::internal::transposed(x, order)};
  for (int i = 0; i < x.rank(); ++i) (reduced[i] ? out.reduced : out.outer) *= x.dim(i);
  return out;
}

// ---- Sums and extrema, by the reducers of framework/kernels/reduce.h.

using kernels::Greatest;
using kernels::Least;
using kernels::reduce_rows;
using kernels::reduce_run;
using kernels::Sum;

// The loops of a reducer for one element type. Partial results are of type R::Far.
struct Loops {
  size_t size, far_size;  // bytes of an element and of a partial result
  // Reduces `count` adjacent runs of n elements to one partial result each.
  void (*runs)(const void* x, int64_t count, int64_t n, void* far);
  // Reduces rows of `columns` elements, `stride` elements apart, to one partial result per column.
  void (*rows)(const void* x, int64_t rows, int64_t stride, int64_t columns, void* far);
  // Combines `parts` partial results, `step` results apart, in order, for each of n neighbors.
  void (*join)(const void* first, int64_t n, int64_t parts, int64_t step, void* far);
  // Writes the results of n totals, divided by `divisor`.
  void (*finish)(const void* far, int64_t n, double divisor, void* out);
};
template <class R, class T>
constexpr Loops kLoops = {
    .size = sizeof(T),
    .far_size = sizeof(typename R::Far),
    .runs =
        [](const void* x, int64_t count, int64_t n, void* far) {
          const T* from = static_cast<const T*>(x);
          auto* const totals = static_cast<typename R::Far*>(far);
          for (int64_t i = 0; i < count; ++i) totals[i] = reduce_run<R>(from + i * n, n);
        },
    .rows =
        [](const void* x, int64_t rows, int64_t stride, int64_t columns, void* far) {
          auto* const totals = static_cast<typename R::Far*>(far);
          std::fill_n(totals, columns, R::kInitial);
          reduce_rows<R>(static_cast<const T*>(x), rows, stride, columns, totals);
        },
    .join =
        [](const void* first, int64_t n, int64_t parts, int64_t step, void* far) {
          const auto* const part = static_cast<const typename R::Far*>(first);
          auto* const totals = static_cast<typename R::Far*>(far);
          for (int64_t i = 0; i < n; ++i) {
            typename R::Far total = part[i];
            for (int64_t p = 1; p < parts; ++p) total = R::join(total, part[i + p * step]);
            totals[i] = total;
          }
        },
    .finish =
        [](const void* far, int64_t n, double divisor, void* out) {
          const auto* const totals = static_cast<const typename R::Far*>(far);
          T* __restrict to = static_cast<T*>(out);
          if constexpr (std::floating_point<T> && std::same_as<R, Sum<T>>) {
            if (divisor != 1) {
              for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(totals[i] / divisor);
              return;
            }
          }
          for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(totals[i]);
        }};

const std::byte* at(const void* data, int64_t element, size_t size) {
  return static_cast<const std::byte*>(data) + element * static_cast<int64_t>(size);
}
std::byte* at(void* data, int64_t element, size_t size) {
  return static_cast<std::byte*>(data) + element * static_cast<int64_t>(size);
}

// Memory for n partial results.
std::vector<std::byte> partial_results(const Loops& loops, int64_t n) {
  return std::vector<std::byte>(n * static_cast<int64_t>(loops.far_size));
}

// Reduces the last dimension. Runs of kGrain elements are reduced independently, then combined in
// order.
void reduce_last(const Loops& loops, const Layers& layers, double divisor, void* out) {
  const void* x = layers.x.raw().data();
  const int64_t n = layers.reduced;
  const int64_t per_row = std::max<int64_t>(1, (n + kGrain - 1) / kGrain);
  std::vector<std::byte> memory = partial_results(loops, layers.outer * per_row);
  void* const parts = memory.data();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, std::min(n, kGrain)));
  parallel_for(layers.outer * per_row, grain, [&](int64_t first, int64_t last) {
    if (per_row == 1) {
      loops.runs(at(x, first * n, loops.size), last - first, n, at(parts, first, loops.far_size));
      return;
    }
    for (int64_t p = first; p < last; ++p) {
      const int64_t begin = p % per_row * kGrain;
      loops.runs(at(x, p / per_row * n + begin, loops.size), 1, std::min(kGrain, n - begin),
                 at(parts, p, loops.far_size));
    }
  });
  if (per_row > 1) {
    for (int64_t row = 0; row < layers.outer; ++row) {
      loops.join(at(parts, row * per_row, loops.far_size), 1, per_row, 1,
                 at(parts, row, loops.far_size));
    }
  }
  loops.finish(parts, layers.outer, divisor, out);
}

// Reduces the rows of [rows, inner] matrices. Blocks of rows are reduced independently, one strip
// of columns at a time, then combined in order. The strip keeps the totals in the cache.
void reduce_middle(const Loops& loops, const Layers& layers, double divisor, void* out) {
  constexpr int64_t kStrip = 1024;
  const int64_t outer = layers.outer, rows = layers.reduced, inner = layers.inner;
  const size_t far_size = loops.far_size;
  const void* from = layers.x.raw().data();
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  const int64_t block = std::max<int64_t>(128, kGrain / inner);
  const int64_t blocks = std::max<int64_t>(1, (rows + block - 1) / block);
  std::vector<std::byte> memory = partial_results(loops, blocks > 1 ? outer * blocks * inner : 0);
  void* const parts = memory.data();
  const int64_t work = std::max<int64_t>(1, std::min(block, rows) * std::min(inner, kStrip));
  parallel_for(outer * blocks * strips, std::max<int64_t>(1, kGrain / work),
               [&](int64_t first, int64_t last) {
                 alignas(64) std::byte totals[kStrip * sizeof(double)];
                 for (int64_t p = first; p < last; ++p) {
                   const int64_t o = p / (blocks * strips), b = p / strips % blocks;
                   const int64_t begin = p % strips * kStrip,
                                 columns = std::min(kStrip, inner - begin);
                   loops.rows(at(from, (o * rows + b * block) * inner + begin, loops.size),
                              std::min(block, rows - b * block), inner, columns, totals);
                   if (blocks > 1) {
                     std::memcpy(at(parts, (o * blocks + b) * inner + begin, far_size), totals,
                                 columns * far_size);
                   } else {
                     loops.finish(totals, columns, divisor, at(out, o * inner + begin, loops.size));
                   }
                 }
               });
  if (blocks == 1) return;
  parallel_for(outer * inner, std::max<int64_t>(64, kGrain / blocks),
               [&](int64_t first, int64_t last) {
                 alignas(64) std::byte totals[kStrip * sizeof(double)];
                 for (int64_t i = first, n; i < last; i += n) {
                   const int64_t column = i % inner;
                   n = std::min({kStrip, inner - column, last - i});
                   loops.join(at(parts, i / inner * blocks * inner + column, far_size), n, blocks,
                              inner, totals);
                   loops.finish(totals, n, divisor, at(out, i, loops.size));
                 }
               });
}

void reduce(const Loops& loops, const Tensor& x, const AxisFlags& reduced, Tensor& y,
            double divisor = 1) {
  if (y.size() == 0) return;
  const Layers layers = layers_of(x, reduced);
  if (layers.inner == 1) {
    reduce_last(loops, layers, divisor, y.mutable_raw().data());
  } else {
    reduce_middle(loops, layers, divisor, y.mutable_raw().data());
  }
}

template <template <class> class R>
const Loops& loops_of(DType dtype, const char* caller) {
  return visit_numeric(dtype, caller,
                       []<class T>(const T&) -> const Loops& { return kLoops<R<T>, T>; });
}

// ---- Ops.

class Reduction : public Op {
 public:
  Reduction(std::string class_name, const char* caller, std::vector<int> axes, bool keepdims)
      : Op(std::move(class_name)), caller_(caller), axes_(std::move(axes)), keepdims_(keepdims) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const final {
    check(in[0]);
    const AxisFlags reduced = reduced_axes(caller_, in[0].shape, axes_);
    return {{.shape = reduced_shape(in[0].shape, reduced, keepdims_), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const final {
    const AxisFlags reduced = reduced_axes(caller_, in[0].shape(), axes_);
    Tensor y =
        Tensor::uninitialized(reduced_shape(in[0].shape(), reduced, keepdims_), in[0].dtype());
    run(in[0], reduced, y);
    return {y};
  }

 protected:
  // Returns y reshaped to have the reduced axes as dimensions of size 1, so that it broadcasts to
  // x.
  Tensor with_axes(const Tensor& y, const Shape& x) const {
    return ops::reshape(y, reduced_shape(x, reduced_axes(caller_, x, axes_), true));
  }

  const char* const caller_;
  const std::vector<int> axes_;
  const bool keepdims_;

 private:
  virtual void check(const TensorSpec& x) const { ops::internal::check_numeric(caller_, x); }
  virtual void run(const Tensor& x, const AxisFlags& reduced, Tensor& y) const = 0;
};

class ReduceSum final : public Reduction {
 public:
  ReduceSum(const std::vector<int>& axes, bool keepdims)
      : Reduction("Sum", "sum", axes, keepdims) {}

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Shape& x = args.input_specs[0].shape;
    return {ops::broadcast_to(with_axes(args.output_gradients[0].dense(), x), x)};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  void run(const Tensor& x, const AxisFlags& reduced, Tensor& y) const override {
    reduce(loops_of<Sum>(x.dtype(), caller_), x, reduced, y);
  }
};

class Mean final : public Reduction {
 public:
  Mean(const std::vector<int>& axes, bool keepdims) : Reduction("Mean", "mean", axes, keepdims) {}

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Shape& x = args.input_specs[0].shape;
    const Tensor dy = args.output_gradients[0].dense();
    const double per_element = 1 / count(x, dy.size());
    return {ops::broadcast_to(with_axes(ops::scale(dy, per_element), x), x)};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  static double count(const Shape& x, int64_t results) {
    return results == 0 ? 1 : static_cast<double>(x.size()) / static_cast<double>(results);
  }
  void check(const TensorSpec& x) const override { ops::internal::check_floating(caller_, x); }
  void run(const Tensor& x, const AxisFlags& reduced, Tensor& y) const override {
    const double n = count(x.shape(), y.size());
    reduce(loops_of<Sum>(x.dtype(), caller_), x, reduced, y, n);
  }
};

// Computes max, or min if `least`.
class Extremum final : public Reduction {
 public:
  Extremum(bool least, const std::vector<int>& axes, bool keepdims)
      : Reduction(least ? "Min" : "Max", least ? "min" : "max", axes, keepdims), least_(least) {}

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor& x = args.inputs[0];
    const Tensor y = with_axes(args.outputs[0], x.shape());
    const Tensor dy = with_axes(args.output_gradients[0].dense(), x.shape());
    const Tensor chosen = ops::cast(ops::equal(x, y), x.dtype());
    return {chosen * ops::divide_no_nan(dy, ops::sum_to(chosen, y.shape()))};
  }

 private:
  void run(const Tensor& x, const AxisFlags& reduced, Tensor& y) const override {
    if (x.size() == 0 && y.size() > 0) {
      throw ValueError(caller_, ": requires at least one element, received shape ", x.shape());
    }
    reduce(least_ ? loops_of<Least>(x.dtype(), caller_) : loops_of<Greatest>(x.dtype(), caller_), x,
           reduced, y);
  }

  const bool least_;
};

class ArgMax final : public Op {
 public:
  explicit ArgMax(int axis) : Op("ArgMax"), axis_(axis) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_numeric("argmax", in[0]);
    const int64_t dim = in[0].shape[axis_];
    if (dim == 0) {
      throw ValueError("argmax: requires at least one element, received shape ", in[0].shape);
    }
    return {{.shape = in[0].shape.without(axis_), .dtype = DType::kInt64}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& shape = in[0].shape();
    AxisFlags along(shape.rank());
    along[shape.normalize_axis(axis_)] = true;
    const int64_t n = shape[axis_];
    absl::InlinedVector<int, Shape::kMaxRank> order(shape.rank());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_partition(order, [&](int axis) { return !along[axis]; });
    const Tensor x = ops::internal::transposed(in[0], order);
    Tensor y = Tensor::uninitialized(shape.without(axis_), DType::kInt64);
    int64_t* out = y.mutable_data<int64_t>().data();
    visit_numeric(x.dtype(), "argmax", [&]<class T>(const T&) {
      const T* from = x.data<T>().data();
      parallel_for(y.size(), std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          out[row] = position_of_greatest(from + row * n, n);
        }
      });
    });
    return {y};
  }
  bool differentiable() const override { return false; }

 private:
  const int axis_;
};

class SumTo final : public Op {
 public:
  explicit SumTo(const Shape& shape) : Op("SumTo"), shape_(shape) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_numeric("sum_to", in[0]);
    return {{.shape = target(in[0].shape), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& x = in[0].shape();
    const Shape shape = target(x);
    AxisFlags reduced(x.rank(), true);
    for (int i = 1; i <= shape.rank(); ++i) reduced[x.rank() - i] = shape[-i] != x[-i];
    Tensor y = Tensor::uninitialized(shape, in[0].dtype());
    reduce(loops_of<Sum>(y.dtype(), "sum_to"), in[0], reduced, y);
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {ops::broadcast_to(args.output_gradients[0].dense(), args.input_specs[0].shape)};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  // Replaces unknown dimensions of the target shape by those of x.
  Shape target(const Shape& x) const {
    Shape out = shape_;
    for (int i = 1; i <= x.rank() && i <= out.rank(); ++i) {
      if (out[-i] == kUnknown) out = out.with(-i, x[-i]);
    }
    const bool fits = out.rank() <= x.rank() && compatible(broadcast_shapes(out, x, "sum_to"), x);
    if (!fits) {
      throw ValueError("sum_to: shape ", x, " cannot result from broadcasting ", shape_,
                       "; pass a shape that broadcasts to it");
    }
    return out;
  }

  const Shape shape_;
};

}  // namespace

namespace ops {

Tensor sum(const Tensor& x, const std::vector<int>& axes, bool keepdims) {
  return dispatch1(ReduceSum(axes, keepdims), {x});
}
Tensor mean(const Tensor& x, const std::vector<int>& axes, bool keepdims) {
  return dispatch1(Mean(axes, keepdims), {x});
}
Tensor max(const Tensor& x, const std::vector<int>& axes, bool keepdims) {
  return dispatch1(Extremum(false, axes, keepdims), {x});
}
Tensor min(const Tensor& x, const std::vector<int>& axes, bool keepdims) {
  return dispatch1(Extremum(true, axes, keepdims), {x});
}
Tensor argmax(const Tensor& x, int axis) { return dispatch1(ArgMax(axis), {x}); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape && shape.fully_defined()) return x;
  return dispatch1(SumTo(shape), {x});
}

}  // namespace ops
}  // namespace keel

#include <absl/container/inlined_vector.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <numeric>
#include <span>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>

namespace keel {
namespace {

constexpr Retain kNothing = {.inputs = 0, .outputs = 0};

// A shape has few axes, so these vectors need no memory of their own.
using Axes = absl::InlinedVector<int, Shape::kMaxRank>;
using Dims = absl::InlinedVector<int64_t, Shape::kMaxRank>;

// ---- Ops that change the shape but not the bytes. Subclasses compute the shape.

class Reshaping : public Op {
 public:
  using Op::Op;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const final {
    return {{.shape = target(in[0].shape), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const final {
    return {in[0].reshaped(target(in[0].shape()))};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const final {
    return {ops::reshape(args.output_gradients[0].dense(), args.input_specs[0].shape)};
  }
  Retain retain() const final { return kNothing; }

 private:
  virtual Shape target(const Shape& x) const = 0;
};

class Reshape final : public Reshaping {
 public:
  explicit Reshape(const Shape& shape) : Reshaping("Reshape"), shape_(shape) {
    if (std::ranges::count(shape.dims(), kUnknown) > 1) {
      throw ValueError("reshape: at most one dimension must be -1, received ", shape);
    }
  }

 private:
  Shape target(const Shape& x) const override {
    if (shape_.fully_defined()) {
      if (x.fully_defined() && x.size() != shape_.size()) throw_incompatible(x);
      return shape_;
    }
    if (!x.fully_defined()) return shape_;
    int64_t known = 1;
    int axis = 0;
    for (int i = 0; i < shape_.rank(); ++i) {
      if (shape_[i] == kUnknown) {
        axis = i;
      } else {
        known *= shape_[i];
      }
    }
    if (known == 0 || x.size() % known != 0) throw_incompatible(x);
    return shape_.with(axis, x.size() / known);
  }
  [[noreturn]] void throw_incompatible(const Shape& x) const {
    throw ValueError("reshape: cannot reshape ", x, " to ", shape_, "; the sizes must be equal");
  }

  const Shape shape_;
};

class ExpandDims final : public Reshaping {
 public:
  explicit ExpandDims(int axis) : Reshaping("ExpandDims"), axis_(axis) {}

 private:
  Shape target(const Shape& x) const override {
    const int at = axis_ < 0 ? axis_ + x.rank() + 1 : axis_;
    if (at < 0 || at > x.rank()) {
      throw ValueError("expand_dims: axis ", axis_, " is out of range for shape ", x,
                       "; pass an axis in [-rank - 1, rank]");
    }
    return x.inserted(at, 1);
  }

  const int axis_;
};

class Squeeze final : public Reshaping {
 public:
  explicit Squeeze(int axis) : Reshaping("Squeeze"), axis_(axis) {}

 private:
  Shape target(const Shape& x) const override {
    const int64_t dim = x[axis_];
    if (dim != 1 && dim != kUnknown) {
      throw ValueError("squeeze: axis ", axis_, " must have size 1, received shape ", x);
    }
    return x.without(axis_);
  }

  const int axis_;
};

// ---- Transposition and broadcasting.

// Fills `out` of dimensions `dims` from elements of x that are `strides` apart along each
// dimension.
struct StridedCopy {
  std::span<const int64_t> dims, strides;  // at least two dimensions

  // Returns the position in x of the given slice of out, where a slice spans the last `axes` axes.
  int64_t offset(int64_t slice, int axes) const {
    int64_t out = 0;
    for (int i = static_cast<int>(dims.size()) - axes - 1; i >= 0; --i) {
      out += slice % dims[i] * strides[i];
      slice /= dims[i];
    }
    return out;
  }
  int64_t slices(int axes) const {
    return std::accumulate(dims.begin(), dims.end() - axes, int64_t{1}, std::multiplies());
  }

  template <class T>
  void run(const T* x, T* out) const {
    if (slices(0) == 0) return;
    if (strides.back() == 1) {
      const int64_t n = dims.back();
      const int64_t grain = std::max<int64_t>(1, ops::internal::kGrain / n);
      parallel_for(slices(1), grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          std::copy_n(x + offset(row, 1), n, out + row * n);
        }
      });
    } else {
      copy_tiles(x, out);
    }
  }

  template <class T>
  static void copy_tile(const T* from, int64_t row_step, int64_t column_step, T* __restrict to,
                        int64_t to_step, int64_t rows, int64_t columns) {
    using ops::internal::value_of;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        value_of(to[i * to_step + j]) = value_of(from[i * row_step + j * column_step]);
      }
    }
  }

  // Transposes the matrices in the last two axes in tiles that fit in the cache in both orders.
  template <class T>
  void copy_tiles(const T* x, T* out) const {
    constexpr int64_t kTile = 32;
    const int64_t rows = dims.end()[-2], columns = dims.back();
    const int64_t row_step = strides.end()[-2], column_step = strides.back();
    const int64_t bands = (rows + kTile - 1) / kTile;
    const int64_t grain = std::max<int64_t>(1, ops::internal::kGrain / (kTile * columns));
    parallel_for(slices(2) * bands, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* from = x + offset(p / bands, 2);
        T* to = out + p / bands * rows * columns;
        const int64_t first = p % bands * kTile, last = std::min(first + kTile, rows);
        for (int64_t c = 0; c < columns; c += kTile) {
          copy_tile(from + first * row_step + c * column_step, row_step, column_step,
                    to + first * columns + c, columns, last - first, std::min(kTile, columns - c));
        }
      }
    });
  }
};

Axes normalized_permutation(const Shape& x, std::span<const int> permutation) {
  Axes out;
  for (int axis : permutation) {
    if (axis >= -x.rank() && axis < x.rank()) out.push_back(axis < 0 ? axis + x.rank() : axis);
  }
  Axes sorted = out;
  std::ranges::sort(sorted);
  Axes all(x.rank());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    throw ValueError("transpose: requires a permutation of the axes of ", x, ", received {",
                     absl::StrJoin(permutation, ", "), "}");
  }
  return out;
}

class Transpose final : public Op {
 public:
  explicit Transpose(std::vector<int> permutation)
      : Op("Transpose"), permutation_(std::move(permutation)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    Dims dims;
    for (int axis : permutation_of(in[0].shape)) dims.push_back(in[0].shape[axis]);
    return {{.shape = Shape(dims), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {ops::internal::transposed(in[0], permutation_of(in[0].shape()))};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Axes forward = permutation_of(args.input_specs[0].shape);
    std::vector<int> back(forward.size());
    for (size_t i = 0; i < forward.size(); ++i) back[forward[i]] = static_cast<int>(i);
    return {ops::transpose(args.output_gradients[0].dense(), back)};
  }
  Retain retain() const override { return kNothing; }

 private:
  Axes permutation_of(const Shape& x) const {
    if (!permutation_.empty()) return normalized_permutation(x, permutation_);
    Axes reversed(x.rank());
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return reversed;
  }

  const std::vector<int> permutation_;
};

class BroadcastTo final : public Op {
 public:
  explicit BroadcastTo(const Shape& shape) : Op("BroadcastTo"), shape_(shape) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = target(in[0].shape), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape shape = target(in[0].shape());
    const auto plan = ops::internal::plan_broadcast(shape, {in[0].shape()});
    Tensor y = Tensor::uninitialized(shape, in[0].dtype());
    ops::internal::visit_bits(y.dtype(), [&]<class T>(const T&) {
      const T* x = ops::internal::elements<T>(in[0]);
      T* out = ops::internal::mutable_elements<T>(y);
      ops::internal::for_each_piece(plan, [&](int64_t row, int64_t begin, int64_t end) {
        const T* from = x + plan.offset(0, row);
        T* to = out + row * plan.inner + begin;
        if (plan.advances[0]) {
          std::copy_n(from + begin, end - begin, to);
        } else {
          const T value = *from;
          const int64_t n = end - begin;
          for (int64_t i = 0; i < n; ++i) {
            ops::internal::value_of(to[i]) = ops::internal::value_of(value);
          }
        }
      });
    });
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {ops::sum_to(args.output_gradients[0].dense(), args.input_specs[0].shape)};
  }
  Retain retain() const override { return kNothing; }

 private:
  // Replaces unknown dimensions of the target shape by those of x.
  Shape target(const Shape& x) const {
    Shape out = shape_;
    for (int i = 1; i <= x.rank() && i <= out.rank(); ++i) {
      if (out[-i] == kUnknown) out = out.with(-i, x[-i]);
    }
    const bool fits =
        x.rank() <= out.rank() && compatible(broadcast_shapes(x, out, "broadcast_to"), out);
    if (!fits) {
      throw ValueError("broadcast_to: cannot broadcast ", x, " to ", shape_,
                       "; each dimension must be equal or 1");
    }
    return out;
  }

  const Shape shape_;
};

// ---- Concatenation, slicing and padding.

// The dimensions of a shape as [outer, the axis, inner].
struct AroundAxis {
  int64_t outer, dim, inner;
};
AroundAxis around(const Shape& shape, int axis) {
  const int at = shape.normalize_axis(axis);
  return {.outer = shape.slice(0, at).size(),
          .dim = shape[at],
          .inner = shape.slice(at + 1, shape.rank()).size()};
}

// Copies `width` elements per row between buffers of different row strides, in parallel.
template <class T>
void copy_elements(int64_t rows, int64_t width, const T* from, int64_t from_stride, T* to,
                   int64_t to_stride) {
  if (width == 0) return;
  if (rows == 1) {
    parallel_for(width, ops::internal::kGrain, [&](int64_t begin, int64_t end) {
      std::copy_n(from + begin, end - begin, to + begin);
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, ops::internal::kGrain / width);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(from + r * from_stride, width, to + r * to_stride);
    }
  });
}
// Copies from element `from` of x to element `to` of y.
void copy_rows(int64_t rows, int64_t width, const Tensor& x, int64_t from, int64_t from_stride,
               Tensor& y, int64_t to, int64_t to_stride) {
  ops::internal::visit_bits(y.dtype(), [&]<class T>(const T&) {
    copy_elements(rows, width, ops::internal::elements<T>(x) + from, from_stride,
                  ops::internal::mutable_elements<T>(y) + to, to_stride);
  });
}

class Concat final : public Op {
 public:
  explicit Concat(int axis) : Op("Concat"), axis_(axis) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const Shape& first = in[0].shape;
    const int axis = first.normalize_axis(axis_);
    Shape out = first;
    for (const TensorSpec& part : in.subspan(1)) {
      ops::internal::check_same_dtype("concat", in[0], part);
      if (!compatible(part.shape.rank() == first.rank() ? part.shape.with(axis, kUnknown) : Shape(),
                      first.with(axis, kUnknown))) {
        throw ValueError("concat: shapes ", first, " and ", part.shape,
                         " differ in more than axis ", axis_, "; only this axis may differ");
      }
      for (int i = 0; i < out.rank(); ++i) {
        const int64_t dim = part.shape[i];
        if (i != axis) {
          if (out[i] == kUnknown) out = out.with(i, dim);
        } else {
          const bool known = out[i] != kUnknown && dim != kUnknown;
          out = out.with(i, known ? out[i] + dim : kUnknown);
        }
      }
    }
    return {{.shape = out, .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    std::vector<TensorSpec> specs;
    for (const Tensor& t : in) specs.push_back(t.spec());
    const Shape shape = infer(specs)[0].shape;
    Tensor y = Tensor::uninitialized(shape, in[0].dtype());
    const AroundAxis whole = around(shape, axis_);
    int64_t to = 0;
    for (const Tensor& part : in) {
      const int64_t width = around(part.shape(), axis_).dim * whole.inner;
      copy_rows(whole.outer, width, part, 0, width, y, to, whole.dim * whole.inner);
      to += width;
    }
    return {y};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor dy = args.output_gradients[0].dense();
    std::vector<Gradient> out;
    int64_t begin = 0;
    for (size_t i = 0; i < args.input_specs.size(); ++i) {
      const int64_t size = args.input_specs[i].shape[axis_];
      out.push_back(args.wants(i) ? Gradient(ops::slice(dy, axis_, begin, size)) : Gradient());
      begin += size;
    }
    return out;
  }
  Retain retain() const override { return kNothing; }

 private:
  const int axis_;
};

class Slice final : public Op {
 public:
  Slice(int axis, int64_t begin, int64_t size)
      : Op("Slice"), axis_(axis), begin_(begin), size_(size) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = in[0].shape.with(axis_, taken(in[0].shape)), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape shape = in[0].shape().with(axis_, taken(in[0].shape()));
    Tensor y = Tensor::uninitialized(shape, in[0].dtype());
    const AroundAxis x = around(in[0].shape(), axis_);
    const int64_t width = shape[axis_] * x.inner;
    copy_rows(x.outer, width, in[0], begin_ * x.inner, x.dim * x.inner, y, 0, width);
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const int64_t after =
        args.input_specs[0].shape[axis_] - begin_ - args.output_specs[0].shape[axis_];
    return {ops::pad(args.output_gradients[0].dense(), axis_, begin_, after)};
  }
  Retain retain() const override { return kNothing; }

 private:
  int64_t taken(const Shape& x) const {
    const int64_t dim = x[axis_];
    const bool fits = begin_ >= 0 && size_ >= kUnknown &&
                      (dim == kUnknown || begin_ + std::max<int64_t>(size_, 0) <= dim);
    if (!fits) {
      throw ValueError("slice: ", size_, " elements from ", begin_, " are out of bounds of axis ",
                       axis_, " of ", x, "; pass a range within the axis");
    }
    if (size_ != kUnknown) return size_;
    return dim == kUnknown ? kUnknown : dim - begin_;
  }

  const int axis_;
  const int64_t begin_, size_;
};

class Pad final : public Op {
 public:
  Pad(int axis, int64_t before, int64_t after)
      : Op("Pad"), axis_(axis), before_(before), after_(after) {
    if (before < 0 || after < 0) {
      throw ValueError("pad: widths must not be negative, received ", before, " and ", after);
    }
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = padded(in[0].shape), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::zeros(padded(in[0].shape()), in[0].dtype());
    const AroundAxis x = around(in[0].shape(), axis_);
    const int64_t width = x.dim * x.inner;
    copy_rows(x.outer, width, in[0], 0, width, y, before_ * x.inner,
              width + (before_ + after_) * x.inner);
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {ops::slice(args.output_gradients[0].dense(), axis_, before_,
                       args.input_specs[0].shape[axis_])};
  }
  Retain retain() const override { return kNothing; }

 private:
  Shape padded(const Shape& x) const {
    const int64_t dim = x[axis_];
    return x.with(axis_, dim == kUnknown ? kUnknown : before_ + dim + after_);
  }

  const int axis_;
  const int64_t before_, after_;
};

class Split final : public Op {
 public:
  Split(int64_t parts, int axis) : Op("Split"), parts_(parts), axis_(axis) {
    if (parts < 1) throw ValueError("split: requires at least one part, received ", parts);
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const int64_t dim = in[0].shape[axis_];
    if (dim != kUnknown && dim % parts_ != 0) {
      throw ValueError("split: the length of axis ", axis_, " of ", in[0].shape,
                       " must be a multiple of the number of parts, received ", parts_);
    }
    const Shape part = in[0].shape.with(axis_, dim == kUnknown ? kUnknown : dim / parts_);
    return std::vector<TensorSpec>(parts_, {.shape = part, .dtype = in[0].dtype});
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const AroundAxis x = around(in[0].shape(), axis_);
    const Shape part = in[0].shape().with(axis_, x.dim / parts_);
    const int64_t width = x.dim / parts_ * x.inner;
    std::vector<Tensor> out;
    for (int64_t i = 0; i < parts_; ++i) {
      Tensor& y = out.emplace_back(Tensor::uninitialized(part, in[0].dtype()));
      copy_rows(x.outer, width, in[0], i * width, x.dim * x.inner, y, 0, width);
    }
    return out;
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    std::vector<Tensor> parts;
    for (size_t i = 0; i < args.output_specs.size(); ++i) {
      const TensorSpec& spec = args.output_specs[i];
      const Gradient& dy = args.output_gradients[i];
      parts.push_back(dy ? dy.dense() : Tensor::zeros(spec.shape, spec.dtype));
    }
    return {ops::concat(parts, axis_)};
  }
  Retain retain() const override { return kNothing; }

 private:
  const int64_t parts_;
  const int axis_;
};

}  // namespace

namespace ops {

// Adjacent axes that remain adjacent in the result are copied as one.
Tensor internal::transposed(const Tensor& x, std::span<const int> permutation) {
  const int rank = x.rank();
  Dims strides(rank, 1), shape;
  for (int i = rank - 2; i >= 0; --i) strides[i] = strides[i + 1] * x.dim(i + 1);
  Dims dims, steps;  // of the copy
  for (int axis : permutation) {
    const int64_t n = x.dim(axis);
    shape.push_back(n);
    if (n == 1) continue;
    if (!dims.empty() && steps.back() == strides[axis] * n) {
      dims.back() *= n;
      steps.back() = strides[axis];
    } else {
      dims.push_back(n);
      steps.push_back(strides[axis]);
    }
  }
  if (dims.size() <= 1) return x.reshaped(Shape(shape));
  Tensor y = Tensor::uninitialized(Shape(shape), x.dtype());
  const StridedCopy copy = {.dims = dims, .strides = steps};
  internal::visit_bits(x.dtype(), [&]<class T>(const T&) {
    copy.run(internal::elements<T>(x), internal::mutable_elements<T>(y));
  });
  return y;
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape && shape.fully_defined()) return x;
  return dispatch1(Reshape(shape), {x});
}
Tensor expand_dims(const Tensor& x, int axis) { return dispatch1(ExpandDims(axis), {x}); }
Tensor squeeze(const Tensor& x, int axis) { return dispatch1(Squeeze(axis), {x}); }
Tensor transpose(const Tensor& x, const std::vector<int>& permutation) {
  return dispatch1(Transpose(permutation), {x});
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape && shape.fully_defined()) return x;
  return dispatch1(BroadcastTo(shape), {x});
}

Tensor concat(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw ValueError("concat: requires at least one tensor, received none");
  if (parts.size() == 1) {
    parts[0].shape().normalize_axis(axis);
    return parts[0];
  }
  return dispatch1(Concat(axis), parts);
}

Tensor stack(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw ValueError("stack: requires at least one tensor, received none");
  std::vector<Tensor> expanded;
  for (const Tensor& part : parts) {
    if (!compatible(part.shape(), parts[0].shape())) {
      throw ValueError("stack: tensors must have the same shape, received ", parts[0].shape(),
                       " and ", part.shape());
    }
    expanded.push_back(expand_dims(part, axis));
  }
  return concat(expanded, axis);
}

Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t size) {
  return dispatch1(Slice(axis, begin, size), {x});
}
Tensor pad(const Tensor& x, int axis, int64_t before, int64_t after) {
  return dispatch1(Pad(axis, before, after), {x});
}
std::vector<Tensor> split(const Tensor& x, int64_t parts, int axis) {
  return dispatch(std::make_shared<const Split>(parts, axis), {x});
}

}  // namespace ops
}  // namespace keel

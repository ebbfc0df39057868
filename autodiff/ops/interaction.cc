#include <algorithm>

#include "autodiff/operation.h"
#include "autodiff/ops.h"
#include "autodiff/ops/internal.h"

namespace keel {
namespace {

constexpr int64_t kStrip = 16;  // sums made side by side

// The features of one sample, [features, dim], and which pairs of them are multiplied.
struct Sample {
  int64_t features, dim;
  bool self;

  int64_t pairs() const { return features * (features + (self ? 1 : -1)) / 2; }
  // Partners of feature i: all before it, and itself if self.
  int64_t partners(int64_t i) const { return self ? i + 1 : i; }
  // Length of a row of `transposed`: whole strips.
  int64_t padded() const { return (features + kStrip - 1) / kStrip * kStrip; }
};

// out[l] = sum over k < n of factors[k] * rows[k * stride + l], l < kStrip. Not inlined: GCC 12
// would vectorize over k instead, at a fifth of the speed.
template <class T>
[[gnu::noinline]] void strip_sums(const T* factors, int64_t n, const T* rows, int64_t stride,
                                  T* out) {
  T sums[kStrip] = {};
  for (int64_t k = 0; k < n; ++k) {
    const T factor = factors[k];
    const T* row = rows + k * stride;
    for (int64_t l = 0; l < kStrip; ++l) sums[l] += factor * row[l];
  }
  std::copy_n(sums, kStrip, out);
}

// x [features, dim] as [dim, padded]; the padding keeps what it holds.
template <class T>
void transpose(const Sample& s, const T* x, T* transposed) {
  for (int64_t i = 0; i < s.features; ++i) {
    for (int64_t d = 0; d < s.dim; ++d) transposed[d * s.padded() + i] = x[i * s.dim + d];
  }
}

// out[pair (i, j)] = x_i . y_j, added to what is there if `add`; y comes transposed.
template <class T>
void multiply_pairs(const Sample& s, const T* x, const T* y, bool add, T* out) {
  for (int64_t i = 0; i < s.features; ++i) {
    const int64_t partners = s.partners(i);
    for (int64_t j = 0; j < partners; j += kStrip) {
      T sums[kStrip];
      strip_sums(x + i * s.dim, s.dim, y + j, s.padded(), sums);
      const int64_t n = std::min(kStrip, partners - j);
      if (add) {
        for (int64_t l = 0; l < n; ++l) out[j + l] += sums[l];
      } else {
        std::copy_n(sums, n, out + j);
      }
    }
    out += partners;
  }
}

// dx_i = sum over pairs with i of dy[pair] times the other one: the product of the symmetric
// matrix of dy, made in `factors` [features, features], with x. A pair (i, i) counts twice.
template <class T>
void multiply_back(const Sample& s, const T* x, const T* dy, T* factors, T* dx) {
  const int64_t n = s.features, dim = s.dim;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t partners = s.partners(i);
    for (int64_t j = 0; j < partners; ++j) factors[i * n + j] = factors[j * n + i] = dy[j];
    factors[i * n + i] = s.self ? 2 * dy[i] : T{0};
    dy += partners;
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = 0;
    for (; d + kStrip <= dim; d += kStrip) {
      strip_sums(factors + i * n, n, x + d, dim, dx + i * dim + d);
    }
    for (; d < dim; ++d) {
      T total = 0;
      for (int64_t j = 0; j < n; ++j) total += factors[i * n + j] * x[j * dim + d];
      dx[i * dim + d] = total;
    }
  }
}

// fn(sample, scratch) for all samples of x, in parallel; scratch holds `size` elements.
template <class T, class Fn>
void for_each_sample(int64_t batch, const Sample& s, int64_t size, const Fn& fn) {
  constexpr int64_t kBlockWork = 1 << 19;  // multiplications of one block
  const int64_t work = std::max<int64_t>(1, s.features * s.features * s.dim);
  parallel_for(batch, std::max<int64_t>(1, kBlockWork / work), [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(size);
    for (int64_t b = begin; b < end; ++b) fn(b, scratch.data());
  });
}

Sample sample_of(const Shape& x, bool self) {
  return {.features = x[1], .dim = x[2], .self = self};
}

TensorSpec pairs_spec(const TensorSpec& x, bool self) {
  ops::internal::check_floating("dot_interaction", x);
  if (x.shape.rank() != 3) {
    throw ValueError("dot_interaction: needs [batch, features, dim], received ", x.shape);
  }
  const int64_t pairs = x.shape[1] == kUnknown ? kUnknown : sample_of(x.shape, self).pairs();
  return {.shape = {x.shape[0], pairs}, .dtype = x.dtype};
}

Tensor dot_interaction_gradient(const Tensor& x, const Tensor& dy, bool self);

// x_i . y_j + y_i . x_j of the pairs: the derivative of dot_interaction at x in direction y.
class DotInteractionCross final : public Op {
 public:
  explicit DotInteractionCross(bool self) : Op("DotInteractionCross"), self_(self) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {pairs_spec(in[0], self_)};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Sample s = sample_of(in[0].shape(), self_);
    const int64_t size = s.features * s.dim, half = s.dim * s.padded();
    Tensor out = Tensor::uninitialized({in[0].dim(0), s.pairs()}, in[0].dtype());
    visit_floating(out.dtype(), "dot_interaction", [&]<class T>(const T&) {
      const T *x = in[0].data<T>().data(), *y = in[1].data<T>().data();
      T* to = out.mutable_data<T>().data();
      for_each_sample<T>(in[0].dim(0), s, 2 * half, [&](int64_t b, T* scratch) {
        transpose(s, x + b * size, scratch);
        transpose(s, y + b * size, scratch + half);
        multiply_pairs(s, x + b * size, scratch + half, false, to + b * s.pairs());
        multiply_pairs(s, y + b * size, scratch, true, to + b * s.pairs());
      });
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor dy = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) out[0] = dot_interaction_gradient(args.inputs[1], dy, self_);
    if (args.wants(1)) out[1] = dot_interaction_gradient(args.inputs[0], dy, self_);
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }

 private:
  const bool self_;
};

// Of x and the gradient of dot_interaction(x); linear in each.
class DotInteractionGradient final : public Op {
 public:
  explicit DotInteractionGradient(bool self) : Op("DotInteractionGradient"), self_(self) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Sample s = sample_of(in[0].shape(), self_);
    const int64_t size = s.features * s.dim;
    Tensor dx = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(dx.dtype(), "dot_interaction", [&]<class T>(const T&) {
      const T *x = in[0].data<T>().data(), *dy = in[1].data<T>().data();
      T* to = dx.mutable_data<T>().data();
      for_each_sample<T>(in[0].dim(0), s, s.features * s.features, [&](int64_t b, T* scratch) {
        multiply_back(s, x + b * size, dy + b * s.pairs(), scratch, to + b * size);
      });
    });
    return {dx};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor g = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) out[0] = dot_interaction_gradient(g, args.inputs[1], self_);
    if (args.wants(1)) out[1] = dispatch1(DotInteractionCross(self_), {args.inputs[0], g});
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }

 private:
  const bool self_;
};

Tensor dot_interaction_gradient(const Tensor& x, const Tensor& dy, bool self) {
  return dispatch1(DotInteractionGradient(self), {x, dy});
}

class DotInteraction final : public Op {
 public:
  explicit DotInteraction(bool self) : Op("DotInteraction"), self_(self) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {pairs_spec(in[0], self_)};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Sample s = sample_of(in[0].shape(), self_);
    const int64_t size = s.features * s.dim;
    Tensor out = Tensor::uninitialized({in[0].dim(0), s.pairs()}, in[0].dtype());
    visit_floating(out.dtype(), "dot_interaction", [&]<class T>(const T&) {
      const T* x = in[0].data<T>().data();
      T* to = out.mutable_data<T>().data();
      for_each_sample<T>(in[0].dim(0), s, s.dim * s.padded(), [&](int64_t b, T* scratch) {
        transpose(s, x + b * size, scratch);
        multiply_pairs(s, x + b * size, scratch, false, to + b * s.pairs());
      });
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {dot_interaction_gradient(args.inputs[0], args.output_gradients[0].dense(), self_)};
  }
  Retain retain() const override { return {.inputs = 1, .outputs = 0}; }

 private:
  const bool self_;
};

}  // namespace

Tensor ops::dot_interaction(const Tensor& x, bool self_interaction) {
  return dispatch1(DotInteraction(self_interaction), {x});
}

}  // namespace keel

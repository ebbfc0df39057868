#include <keel/framework/kernels/embedding/interaction.h>

#include <algorithm>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>

namespace keel {
namespace {

using kernels::FeaturePairs;
using kernels::FeatureRows;

// The features are either one tensor [batch, features, dim] or one tensor [batch, dim] per feature.
FeaturePairs pairs_of(std::span<const Tensor> x, bool self) {
  const Shape& shape = x[0].shape();
  const bool stacked = shape.rank() == 3;
  return {.features = stacked ? shape[1] : static_cast<int64_t>(x.size()),
          .dim = shape[-1],
          .self = self};
}

// The addresses of feature rows. FeatureRows refers to `first`, which must outlive it.
template <class T>
struct Places {
  std::vector<T*> first;
  int64_t stride = 0;

  FeatureRows<T> rows() const { return {.first = first, .stride = stride}; }
};

// Returns the row addresses of `tensors` tensors; data(i) is the data pointer of tensor i.
template <class T, class Data>
Places<T> places(const FeaturePairs& pairs, size_t tensors, bool stacked, const Data& data) {
  Places<T> out = {.first = {}, .stride = pairs.dim};
  for (size_t i = 0; i < tensors; ++i) out.first.push_back(data(i));
  if (!stacked) return out;
  out.stride *= pairs.features;
  for (int64_t f = 1; f < pairs.features; ++f) out.first.push_back(out.first[0] + f * pairs.dim);
  out.first.resize(pairs.features);
  return out;
}

template <class T>
Places<const T> places_of(const FeaturePairs& pairs, std::span<const Tensor> x) {
  return places<const T>(pairs, x.size(), x[0].rank() == 3,
                         [&](size_t i) { return x[i].data<T>().data(); });
}

TensorSpec pairs_spec(std::span<const TensorSpec> x, bool self) {
  for (const TensorSpec& feature : x) {
    ops::internal::check_floating("dot_interaction", feature);
    ops::internal::check_same_dtype("dot_interaction", x[0], feature);
  }
  Shape shape = x[0].shape;
  if (shape.rank() == 3 && x.size() == 1) {
    const FeaturePairs pairs = {.features = shape[1], .dim = shape[2], .self = self};
    return {.shape = {shape[0], shape[1] == kUnknown ? kUnknown : pairs.count()},
            .dtype = x[0].dtype};
  }
  for (const TensorSpec& feature : x) {
    if (feature.shape.rank() != 2 || !compatible(feature.shape, shape)) {
      throw ValueError("dot_interaction: requires [batch, features, dim], or tensors of equal ",
                       "shape [batch, dim], received ", x[0].shape, " and ", feature.shape);
    }
    if (shape[0] == kUnknown) shape = shape.with(0, feature.shape[0]);
  }
  const FeaturePairs pairs = {
      .features = static_cast<int64_t>(x.size()), .dim = shape[1], .self = self};
  return {.shape = {shape[0], pairs.count()}, .dtype = x[0].dtype};
}

// Converts gradients to tensors. Missing gradients become zeros.
std::vector<Tensor> tensors_of(std::span<const Gradient> gradients,
                               std::span<const TensorSpec> specs) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < gradients.size(); ++i) {
    out.push_back(gradients[i] ? gradients[i].dense()
                               : Tensor::zeros(specs[i].shape, specs[i].dtype));
  }
  return out;
}

std::vector<Tensor> dot_interaction_gradients(std::vector<Tensor> x, const Tensor& dy, bool self);

// Computes x_i . y_j + y_i . x_j for all pairs: the derivative of dot_interaction at x in direction
// y. The inputs are all x, then all y.
class DotInteractionCross final : public Op {
 public:
  explicit DotInteractionCross(bool self) : Op("DotInteractionCross"), self_(self) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {pairs_spec(in.first(in.size() / 2), self_)};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const auto x = in.first(in.size() / 2), y = in.last(in.size() / 2);
    const FeaturePairs pairs = pairs_of(x, self_);
    Tensor out = Tensor::uninitialized({x[0].dim(0), pairs.count()}, x[0].dtype());
    visit_floating(out.dtype(), "dot_interaction", [&]<class T>(const T&) {
      const Places<const T> of_x = places_of<T>(pairs, x), of_y = places_of<T>(pairs, y);
      kernels::dot_pairs_along(pairs, out.dim(0), of_x.rows(), of_y.rows(),
                               out.mutable_data<T>().data());
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor dy = args.output_gradients[0].dense();
    const auto middle = args.inputs.begin() + static_cast<int64_t>(args.inputs.size() / 2);
    const std::vector<Tensor> x(args.inputs.begin(), middle), y(middle, args.inputs.end());
    std::vector<Tensor> out = dot_interaction_gradients(y, dy, self_);
    std::ranges::copy(dot_interaction_gradients(x, dy, self_), std::back_inserter(out));
    return {out.begin(), out.end()};
  }
  Retain retain() const override { return {.inputs = ~0u, .outputs = 0}; }

 private:
  const bool self_;
};

// Computes the gradients of all x. The inputs are all x, then the gradient of dot_interaction(x).
// The op is linear in each of the two.
class DotInteractionGradient final : public Op {
 public:
  explicit DotInteractionGradient(bool self) : Op("DotInteractionGradient"), self_(self) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {in.begin(), in.end() - 1};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const auto x = in.first(in.size() - 1);
    const FeaturePairs pairs = pairs_of(x, self_);
    std::vector<Tensor> dx;
    for (const Tensor& t : x) dx.push_back(Tensor::uninitialized(t.shape(), t.dtype()));
    visit_floating(x[0].dtype(), "dot_interaction", [&]<class T>(const T&) {
      const Places<const T> of_x = places_of<T>(pairs, x);
      const Places<T> of_dx = places<T>(pairs, dx.size(), x[0].rank() == 3,
                                        [&](size_t i) { return dx[i].mutable_data<T>().data(); });
      kernels::dot_pairs_back(pairs, x[0].dim(0), of_x.rows(), in.back().data<T>().data(),
                              of_dx.rows());
    });
    return dx;
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const size_t features = args.output_specs.size();
    const std::vector<Tensor> g = tensors_of(args.output_gradients, args.output_specs);
    const std::vector<Tensor> of_x = dot_interaction_gradients(g, args.inputs[features], self_);
    std::vector<Gradient> out(of_x.begin(), of_x.end());
    out.emplace_back();
    if (args.wants(features)) {
      std::vector<Tensor> both(args.inputs.begin(), args.inputs.end() - 1);
      both.insert(both.end(), g.begin(), g.end());
      out.back() = dispatch1(DotInteractionCross(self_), std::move(both));
    }
    return out;
  }
  Retain retain() const override { return {.inputs = ~0u, .outputs = 0}; }

 private:
  const bool self_;
};

std::vector<Tensor> dot_interaction_gradients(std::vector<Tensor> x, const Tensor& dy, bool self) {
  x.push_back(dy);
  return dispatch(std::make_shared<const DotInteractionGradient>(self), std::move(x));
}

class DotInteraction final : public Op {
 public:
  explicit DotInteraction(bool self) : Op("DotInteraction"), self_(self) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {pairs_spec(in, self_)};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const FeaturePairs pairs = pairs_of(in, self_);
    Tensor out = Tensor::uninitialized({in[0].dim(0), pairs.count()}, in[0].dtype());
    visit_floating(out.dtype(), "dot_interaction", [&]<class T>(const T&) {
      const Places<const T> of_x = places_of<T>(pairs, in);
      kernels::dot_pairs(pairs, out.dim(0), of_x.rows(), out.mutable_data<T>().data());
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const std::vector<Tensor> x(args.inputs.begin(), args.inputs.end());
    const std::vector<Tensor> dx =
        dot_interaction_gradients(x, args.output_gradients[0].dense(), self_);
    return {dx.begin(), dx.end()};
  }
  Retain retain() const override { return {.inputs = ~0u, .outputs = 0}; }

 private:
  const bool self_;
};

}  // namespace

Tensor ops::dot_interaction(const Tensor& x, bool self_interaction) {
  if (x.rank() != 3) {
    throw ValueError("dot_interaction: requires [batch, features, dim], received ", x.shape());
  }
  return dispatch1(DotInteraction(self_interaction), {x});
}

Tensor ops::dot_interaction(const std::vector<Tensor>& features, bool self_interaction) {
  if (features.empty()) {
    throw ValueError("dot_interaction: requires at least one feature, received none");
  }
  return dispatch1(DotInteraction(self_interaction), features);
}

}  // namespace keel

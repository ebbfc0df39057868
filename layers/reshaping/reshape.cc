#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

// Returns the target shape for samples of this shape, with -1 replaced.
Shape resolve(const std::string& caller, const Shape& target, const Shape& sample) {
  int64_t known = 1;
  int open = -1;
  for (int i = 0; i < target.rank(); ++i) {
    if (target[i] == kUnknown) {
      open = i;
    } else {
      known *= target[i];
    }
  }
  const int64_t values = sample.size();
  if (open < 0 ? known != values : known == 0 || values % known != 0) {
    throw ValueError(caller, ": samples of shape ", sample, " cannot be reshaped to ", target,
                     "; the sizes must be equal");
  }
  return open < 0 ? target : target.with(open, values / known);
}

}  // namespace

ReshapeLayer::ReshapeLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  const auto& target = options_.target_shape;
  if (std::ranges::count(target, -1) > 1 ||
      std::ranges::any_of(target, [](int64_t dim) { return dim < -1; })) {
    throw ValueError("Reshape ", name(),
                     ": dimensions of target_shape must not be negative, except one -1, received ",
                     Shape(target));
  }
}

Tensor ReshapeLayer::call(const Tensor& x, const CallContext&) {
  const std::string caller = "Reshape " + name();
  if (x.rank() == 0) throw ValueError(caller, ": input must have a batch dimension");
  const Shape sample = x.shape().without(0);
  const Shape target(options_.target_shape);
  const bool known = sample.fully_defined();
  const Shape shape = Shape{x.dim(0)} + (known ? resolve(caller, target, sample) : target);
  if (x.is_symbolic()) return Tensor::symbolic({.shape = shape, .dtype = x.dtype()});
  return ops::reshape(x, shape);
}

std::optional<PlanValues> ReshapeLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const auto x = planner.rows(inputs);
  if (!x) return {};
  const Shape row = planner.row_shape((*x)[0]);
  return planner.reshaped((*x)[0], resolve("Reshape " + name(), Shape(options_.target_shape), row));
}

KEEL_REGISTER(Layer, ReshapeLayer, .package = "keras")

}  // namespace keel

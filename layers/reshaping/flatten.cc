#include <keel/autodiff/ops.h>
#include <keel/layers/internal/data_format.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

FlattenLayer::FlattenLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  is_channels_last(options_.data_format, "Flatten " + name());  // throws for another name
}

Tensor FlattenLayer::call(const Tensor& x, const CallContext&) {
  if (x.rank() == 0) throw ValueError("Flatten ", name(), ": input must have a batch dimension");
  const Shape row = x.shape().without(0);
  const Shape flat = {x.dim(0), row.fully_defined() ? row.size() : kUnknown};
  // ops::reshape infers at most one unknown dimension, but a spec may have two.
  if (x.is_symbolic()) return Tensor::symbolic({.shape = flat, .dtype = x.dtype()});
  if (options_.data_format == "channels_last" || x.rank() < 3) return ops::reshape(x, flat);
  std::vector<int> permutation = {0};
  for (int i = 2; i < x.rank(); ++i) permutation.push_back(i);
  permutation.push_back(1);
  return ops::reshape(ops::transpose(x, permutation), flat);
}

std::optional<PlanValues> FlattenLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const auto x = planner.rows(inputs);
  if (!x) return {};
  const Shape row = planner.row_shape((*x)[0]);
  if (options_.data_format != "channels_last" && row.rank() > 1) return {};
  return planner.reshaped((*x)[0], {row.size()});
}

KEEL_REGISTER(Layer, FlattenLayer, .package = "keras")

}  // namespace keel

#include <keel/layers/metrics/correlation.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

Tensor centered(const Tensor& x, int axis) { return x - ops::mean(x, {axis}, true); }

Tensor standardized(const Tensor& x, int axis) {
  const Tensor shifted = centered(x, axis);
  return shifted / ops::sqrt(ops::mean(ops::square(shifted), {axis}, true));
}

}  // namespace

Tensor PearsonCorrelationMetric::values(const MetricBatch& batch) const {
  const int axis = options_.axis;
  return ops::mean(standardized(batch.y_true, axis) * standardized(batch.y_pred, axis), {axis});
}

Tensor ConcordanceCorrelationMetric::values(const MetricBatch& batch) const {
  const int axis = options_.axis;
  const Tensor y = centered(batch.y_true, axis);
  const Tensor p = centered(batch.y_pred, axis);
  const Tensor distance = ops::mean(batch.y_true - batch.y_pred, {axis});
  const Tensor spread =
      ops::mean(ops::square(y), {axis}) + ops::mean(ops::square(p), {axis}) + ops::square(distance);
  return ops::scale(ops::mean(y * p, {axis}), 2) / ops::shift(spread, kEpsilon);
}

KEEL_REGISTER(Metric, ConcordanceCorrelationMetric)
KEEL_REGISTER(Metric, PearsonCorrelationMetric)

}  // namespace keel

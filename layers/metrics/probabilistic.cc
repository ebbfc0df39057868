#include <keel/layers/metrics/probabilistic.h>

#include <keel/framework/config/registry.h>
#include <keel/layers/losses/probabilistic.h>

namespace keel {

Tensor KLDivergenceMetric::values(const MetricBatch& batch) const {
  return losses::kl_divergence(batch.y_true, batch.y_pred);
}

Tensor PoissonMetric::values(const MetricBatch& batch) const {
  return losses::poisson(batch.y_true, batch.y_pred);
}

KEEL_REGISTER(Metric, KLDivergenceMetric)
KEEL_REGISTER(Metric, PoissonMetric)

}  // namespace keel

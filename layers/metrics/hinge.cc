#include <keel/layers/metrics/hinge.h>

#include <keel/framework/config/registry.h>
#include <keel/layers/losses/hinge.h>

namespace keel {

Tensor HingeMetric::values(const MetricBatch& batch) const {
  return losses::hinge(batch.y_true, batch.y_pred);
}

Tensor SquaredHingeMetric::values(const MetricBatch& batch) const {
  return losses::squared_hinge(batch.y_true, batch.y_pred);
}

Tensor CategoricalHingeMetric::values(const MetricBatch& batch) const {
  return losses::categorical_hinge(batch.y_true, batch.y_pred);
}

KEEL_REGISTER(Metric, CategoricalHingeMetric)
KEEL_REGISTER(Metric, HingeMetric)
KEEL_REGISTER(Metric, SquaredHingeMetric)

}  // namespace keel

#include <keel/layers/metrics/crossentropy.h>

#include <keel/framework/config/registry.h>
#include <keel/layers/losses/crossentropy.h>

namespace keel {

Tensor BinaryCrossentropyMetric::values(const MetricBatch& batch) const {
  return losses::binary_crossentropy(batch.y_true, batch.y_pred, options_.from_logits,
                                     options_.label_smoothing);
}

Tensor CategoricalCrossentropyMetric::values(const MetricBatch& batch) const {
  return losses::categorical_crossentropy(batch.y_true, batch.y_pred, options_.from_logits,
                                          options_.label_smoothing, options_.axis);
}

Tensor SparseCategoricalCrossentropyMetric::values(const MetricBatch& batch) const {
  return losses::sparse_categorical_crossentropy(batch.y_true, batch.y_pred, options_.from_logits,
                                                 options_.ignore_class, options_.axis);
}

bool AutoCrossentropyMetric::sparse_labels(const Tensor& y_true, const Tensor& y_pred) const {
  return label_kind(y_true, y_pred) == LabelKind::kSparseCategorical;
}

Tensor AutoCrossentropyMetric::values(const MetricBatch& batch) const {
  return AutoCrossentropyLoss({}).per_sample(batch.y_true, batch.y_pred);
}

KEEL_REGISTER(Metric, AutoCrossentropyMetric)
KEEL_REGISTER(Metric, BinaryCrossentropyMetric)
KEEL_REGISTER(Metric, CategoricalCrossentropyMetric)
KEEL_REGISTER(Metric, SparseCategoricalCrossentropyMetric)

}  // namespace keel

#include "layers/metrics/accuracy.h"

#include <algorithm>

namespace keel {
namespace {

Tensor binary_hits(const MetricBatch& batch, double threshold) {
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  Tensor out = Tensor::uninitialized(batch.y_pred.shape(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  const auto bound = static_cast<float>(threshold);
  for (size_t i = 0; i < hit.size(); ++i) {
    hit[i] = label[i] == static_cast<float>(prediction[i] > bound) ? 1.0f : 0.0f;
  }
  return out;
}

int64_t greatest(std::span<const float> row) { return std::ranges::max_element(row) - row.begin(); }

Tensor categorical_hits(const MetricBatch& batch) {
  const int64_t classes = batch.y_pred.dim(-1);
  Tensor out = Tensor::uninitialized(batch.y_pred.shape().drop_last(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto label = batch.y_true.data<float>().subspan(i * classes, classes);
    const auto prediction = batch.y_pred.data<float>().subspan(i * classes, classes);
    hit[i] = greatest(label) == greatest(prediction) ? 1.0f : 0.0f;
  }
  return out;
}

Tensor sparse_hits(const std::string& who, const MetricBatch& batch) {
  const int64_t classes = batch.y_pred.dim(-1);
  const Shape samples = batch.y_pred.shape().drop_last();
  if (batch.y_true.shape() != samples && batch.y_true.shape() != samples + Shape({1})) {
    throw ValueError(who, ": labels of shape ", batch.y_true.shape(),
                     " do not fit predictions of shape ", batch.y_pred.shape());
  }
  const Tensor labels = batch.y_true.cast(DType::kInt64);
  Tensor out = Tensor::uninitialized(samples, DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto prediction = batch.y_pred.data<float>().subspan(i * classes, classes);
    hit[i] = labels.data<int64_t>()[i] == greatest(prediction) ? 1.0f : 0.0f;
  }
  return out;
}

bool has_one_column(const Tensor& prediction) {
  return prediction.rank() < 2 || prediction.dim(-1) == 1;
}

}  // namespace

BinaryAccuracyMetric::BinaryAccuracyMetric(Options options)
    : MeanOfSamples(kClassName, options), options_(std::move(options)) {
  if (!(options_.threshold > 0 && options_.threshold < 1)) {
    throw ValueError("BinaryAccuracy: threshold must be in (0, 1), received ", options_.threshold);
  }
}

Tensor BinaryAccuracyMetric::values(const MetricBatch& batch) const {
  return binary_hits(batch, options_.threshold);
}

Tensor CategoricalAccuracyMetric::values(const MetricBatch& batch) const {
  return categorical_hits(batch);
}

Tensor SparseCategoricalAccuracyMetric::values(const MetricBatch& batch) const {
  return sparse_hits(name(), batch);
}

bool AutoAccuracyMetric::sparse_labels(const Tensor& y_true, const Tensor& y_pred) const {
  if (has_one_column(y_pred)) return false;
  return y_true.rank() < y_pred.rank() || y_true.dim(-1) == 1;
}

Tensor AutoAccuracyMetric::values(const MetricBatch& batch) const {
  if (has_one_column(batch.y_pred)) return binary_hits(batch, 0.5);
  return sparse_labels(batch.y_true, batch.y_pred) ? sparse_hits(name(), batch)
                                                   : categorical_hits(batch);
}

}  // namespace keel

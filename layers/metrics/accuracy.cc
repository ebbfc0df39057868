#include <keel/layers/metrics/accuracy.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/config/registry.h>

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

// Returns the index of the first maximum.
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

// Returns y_true as int64, checked against the predictions' shape without the class axis.
Tensor class_numbers(const std::string& caller, const MetricBatch& batch) {
  const Shape samples = batch.y_pred.shape().drop_last();
  if (batch.y_true.shape() != samples && batch.y_true.shape() != samples + Shape({1})) {
    throw ValueError(caller, ": labels of shape ", batch.y_true.shape(),
                     " do not match predictions of shape ", batch.y_pred.shape());
  }
  return batch.y_true.cast(DType::kInt64);
}

Tensor sparse_hits(const std::string& caller, const MetricBatch& batch) {
  const int64_t classes = batch.y_pred.dim(-1);
  const Tensor labels = class_numbers(caller, batch);
  Tensor out = Tensor::uninitialized(batch.y_pred.shape().drop_last(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto prediction = batch.y_pred.data<float>().subspan(i * classes, classes);
    hit[i] = labels.data<int64_t>()[i] == greatest(prediction) ? 1.0f : 0.0f;
  }
  return out;
}

// Returns 1 where fewer than k predictions are greater than that of the class class_of(row).
template <class ClassOf>
Tensor top_k_hits(const MetricBatch& batch, int64_t k, const ClassOf& class_of) {
  const int64_t classes = batch.y_pred.dim(-1);
  Tensor out = Tensor::uninitialized(batch.y_pred.shape().drop_last(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto row = batch.y_pred.data<float>().subspan(i * classes, classes);
    const int64_t label = class_of(i);
    const bool is_class = label >= 0 && label < classes;
    const auto is_greater = [&](float p) { return p > row[label]; };
    hit[i] = is_class && std::ranges::count_if(row, is_greater) < k ? 1.0f : 0.0f;
  }
  return out;
}

void check_k(const char* caller, int64_t k) {
  if (k < 1) throw ValueError(caller, ": k must be positive, received ", k);
}

}  // namespace

Tensor AccuracyMetric::values(const MetricBatch& batch) const {
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  Tensor out = Tensor::uninitialized(batch.y_pred.shape(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (size_t i = 0; i < hit.size(); ++i) hit[i] = label[i] == prediction[i] ? 1.0f : 0.0f;
  return out;
}

BinaryAccuracyMetric::BinaryAccuracyMetric(Options options)
    : MeanOfSamples(kClassName, options), options_(std::move(options)) {
  if (!std::isfinite(options_.threshold)) {
    throw ValueError("BinaryAccuracy: threshold must be finite, received ", options_.threshold);
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
  return label_kind(y_true, y_pred) == LabelKind::kSparseCategorical;
}

Tensor AutoAccuracyMetric::values(const MetricBatch& batch) const {
  switch (label_kind(batch.y_true, batch.y_pred)) {
    case LabelKind::kBinary:
      return binary_hits(batch, 0.5);
    case LabelKind::kSparseCategorical:
      return sparse_hits(name(), batch);
    default:
      return categorical_hits(batch);
  }
}

TopKCategoricalAccuracyMetric::TopKCategoricalAccuracyMetric(Options options)
    : MeanOfSamples(kClassName, options), options_(std::move(options)) {
  check_k(kClassName, options_.k);
}

Tensor TopKCategoricalAccuracyMetric::values(const MetricBatch& batch) const {
  const int64_t classes = batch.y_pred.dim(-1);
  return top_k_hits(batch, options_.k, [&](int64_t row) {
    return greatest(batch.y_true.data<float>().subspan(row * classes, classes));
  });
}

SparseTopKCategoricalAccuracyMetric::SparseTopKCategoricalAccuracyMetric(Options options)
    : MeanOfSamples(kClassName, options), options_(std::move(options)) {
  check_k(kClassName, options_.k);
}

Tensor SparseTopKCategoricalAccuracyMetric::values(const MetricBatch& batch) const {
  const Tensor labels = class_numbers(name(), batch);
  return top_k_hits(batch, options_.k, [&](int64_t row) { return labels.data<int64_t>()[row]; });
}

KEEL_REGISTER(Metric, AccuracyMetric)
KEEL_REGISTER(Metric, AutoAccuracyMetric)
KEEL_REGISTER(Metric, BinaryAccuracyMetric)
KEEL_REGISTER(Metric, CategoricalAccuracyMetric)
KEEL_REGISTER(Metric, SparseCategoricalAccuracyMetric)
KEEL_REGISTER(Metric, SparseTopKCategoricalAccuracyMetric)
KEEL_REGISTER(Metric, TopKCategoricalAccuracyMetric)

}  // namespace keel

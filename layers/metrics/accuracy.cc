#include <keel/layers/metrics/accuracy.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/config/registry.h>
#include <keel/framework/exact_cast.h>
#include <keel/framework/internal/greatest.h>

namespace keel {
namespace {

int64_t greatest(std::span<const float> row) {
  return row.empty() ? 0 : position_of_greatest(row.data(), std::ssize(row));
}

// Returns y_true as int64, checked against the predictions' shape without the class axis.
Tensor class_numbers(const std::string& caller, const Tensor& y_true, const Tensor& y_pred) {
  const Shape samples = y_pred.shape().drop_last();
  if (y_true.shape() != samples && y_true.shape() != samples + Shape({1})) {
    throw ValueError(caller, ": labels of shape ", y_true.shape(),
                     " do not match predictions of shape ", y_pred.shape(),
                     "; both must have the same shape");
  }
  return integer_ids(caller, y_true);
}

// Returns 1 where is_hit(element) is true for an element of y_pred, and 0 elsewhere.
template <class IsHit>
Tensor hits_of_elements(const Tensor& y_pred, const IsHit& is_hit) {
  Tensor out = Tensor::uninitialized(y_pred.shape(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (size_t i = 0; i < hit.size(); ++i) hit[i] = is_hit(i) ? 1.0f : 0.0f;
  return out;
}

// Returns 1 where is_hit(row, number) is true for a row of y_pred along its last axis, and 0
// elsewhere.
template <class IsHit>
Tensor hits_of_rows(const Tensor& y_pred, const IsHit& is_hit) {
  const int64_t classes = y_pred.dim(-1);
  Tensor out = Tensor::uninitialized(y_pred.shape().drop_last(), DType::kFloat32);
  const auto hit = out.mutable_data<float>();
  for (int64_t i = 0; i < out.size(); ++i) {
    hit[i] = is_hit(y_pred.data<float>().subspan(i * classes, classes), i) ? 1.0f : 0.0f;
  }
  return out;
}

// Returns true if fewer than k predictions of the row are greater than that of the class.
bool is_in_top_k(std::span<const float> row, int64_t class_number, int64_t k) {
  if (class_number < 0 || class_number >= std::ssize(row)) return false;
  return std::ranges::count_if(row, [&](float p) { return p > row[class_number]; }) < k;
}

}  // namespace

namespace metrics {

Tensor accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const auto label = y_true.data<float>();
  const auto prediction = y_pred.data<float>();
  return hits_of_elements(y_pred, [&](size_t i) { return label[i] == prediction[i]; });
}

Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, double threshold) {
  const auto label = y_true.data<float>();
  const auto prediction = y_pred.data<float>();
  const auto bound = static_cast<float>(threshold);
  return hits_of_elements(
      y_pred, [&](size_t i) { return label[i] == static_cast<float>(prediction[i] > bound); });
}

Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  return hits_of_rows(y_pred, [&](std::span<const float> row, int64_t i) {
    return greatest(y_true.data<float>().subspan(i * row.size(), row.size())) == greatest(row);
  });
}

Tensor sparse_categorical_accuracy(const std::string& caller, const Tensor& y_true,
                                   const Tensor& y_pred) {
  const Tensor labels = class_numbers(caller, y_true, y_pred);
  return hits_of_rows(y_pred, [&](std::span<const float> row, int64_t i) {
    return labels.data<int64_t>()[i] == greatest(row);
  });
}

Tensor top_k_categorical_accuracy(const std::string&, const Tensor& y_true, const Tensor& y_pred,
                                  int64_t k) {
  return hits_of_rows(y_pred, [&](std::span<const float> row, int64_t i) {
    const auto label = y_true.data<float>().subspan(i * row.size(), row.size());
    return is_in_top_k(row, greatest(label), k);
  });
}

Tensor sparse_top_k_categorical_accuracy(const std::string& caller, const Tensor& y_true,
                                         const Tensor& y_pred, int64_t k, bool from_sorted_ids) {
  const Tensor labels = class_numbers(caller, y_true, y_pred);
  return hits_of_rows(y_pred, [&](std::span<const float> row, int64_t i) {
    if (from_sorted_ids) {
      const auto best = row.first(std::min<size_t>(row.size(), k));
      const auto label = static_cast<float>(labels.data<int64_t>()[i]);
      return std::ranges::find(best, label) != best.end();
    }
    return is_in_top_k(row, labels.data<int64_t>()[i], k);
  });
}

}  // namespace metrics

void internal::check_k(const char* caller, int64_t k) {
  if (k < 1) throw ValueError(caller, ": k must be positive, received ", k);
}

void BinaryAccuracyMetricOptions::check(const char* caller) const {
  if (!std::isfinite(threshold)) {
    throw ValueError(caller, ": threshold must be finite, received ", threshold);
  }
}

bool AutoAccuracyMetricOptions::sparse_labels(const Tensor& y_true, const Tensor& y_pred) const {
  return label_kind(y_true, y_pred) == LabelKind::kSparseCategorical;
}

Tensor AutoAccuracyMetricOptions::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  switch (label_kind(y_true, y_pred)) {
    case LabelKind::kBinary:
      return metrics::binary_accuracy(y_true, y_pred);
    case LabelKind::kSparseCategorical:
      return metrics::sparse_categorical_accuracy(name, y_true, y_pred);
    default:
      return metrics::categorical_accuracy(y_true, y_pred);
  }
}

KEEL_REGISTER_ALL(Metric, accuracy_metrics) {
  registry.add_all<AccuracyMetric, BinaryAccuracyMetric, CategoricalAccuracyMetric,
                   SparseCategoricalAccuracyMetric, SparseTopKCategoricalAccuracyMetric,
                   TopKCategoricalAccuracyMetric>({.package = "keras"});
  registry.add_all<AutoAccuracyMetric>({.package = "keel"});
}

}  // namespace keel

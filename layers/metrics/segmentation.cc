#include <keel/layers/metrics/segmentation.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <keel/framework/config/registry.h>
#include <keel/framework/internal/greatest.h>

namespace keel {
namespace {

constexpr double kEpsilonOfRatio = 1e-7;

std::vector<int64_t> all_classes(int64_t num_classes) {
  std::vector<int64_t> out(std::max<int64_t>(num_classes, 0));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

IoUMetricOptions checked_classes(const char* caller, IoUMetricOptions options) {
  if (options.num_classes < 1) {
    throw ValueError(caller, ": num_classes must be positive, received ", options.num_classes);
  }
  for (const int64_t id : options.target_class_ids) {
    if (id >= 0 && id < options.num_classes) continue;
    throw ValueError(caller, ": target_class_ids must be in [0, ", options.num_classes,
                     "), received ", id);
  }
  return options;
}

// Returns the index of the greatest score along `axis` for each of the other positions.
std::vector<int64_t> greatest_along(const Tensor& scores, int axis) {
  const int at = scores.shape().normalize_axis(axis);
  const int64_t classes = scores.dim(at);
  const int64_t inner = scores.shape().slice(at + 1, scores.rank()).size();
  const int64_t outer = scores.shape().slice(0, at).size();
  const auto values = scores.data<float>();
  std::vector<int64_t> out(outer * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const float* first = values.data() + o * classes * inner + i;
      out[o * inner + i] = position_of_greatest(first, classes, inner);
    }
  }
  return out;
}

std::vector<int64_t> class_numbers_of(const Tensor& values, bool sparse, int axis) {
  if (!sparse) return greatest_along(values.cast(DType::kFloat32), axis);
  return values.cast(DType::kInt64).to_vector<int64_t>();
}

std::vector<int64_t> at_least(const Tensor& values, double threshold) {
  const float bound = static_cast<float>(threshold);
  std::vector<int64_t> out;
  for (const float x : values.data<float>()) out.push_back(x >= bound ? 1 : 0);
  return out;
}

}  // namespace

IoUMetricOptions MeanIoUMetricOptions::counts() const {
  return {.name = name,
          .dtype = dtype,
          .num_classes = num_classes,
          .target_class_ids = all_classes(num_classes),
          .ignore_class = ignore_class,
          .sparse_y_true = sparse_y_true,
          .sparse_y_pred = sparse_y_pred,
          .axis = axis};
}

IoUMetricOptions OneHotIoUMetricOptions::counts() const {
  return {.name = name,
          .dtype = dtype,
          .num_classes = num_classes,
          .target_class_ids = target_class_ids,
          .ignore_class = ignore_class,
          .sparse_y_true = false,
          .sparse_y_pred = sparse_y_pred,
          .axis = axis};
}

IoUMetricOptions OneHotMeanIoUMetricOptions::counts() const {
  return {.name = name,
          .dtype = dtype,
          .num_classes = num_classes,
          .target_class_ids = all_classes(num_classes),
          .ignore_class = ignore_class,
          .sparse_y_true = false,
          .sparse_y_pred = sparse_y_pred,
          .axis = axis};
}

IoUMetricOptions BinaryIoUMetricOptions::counts() const {
  return {.name = name, .dtype = dtype, .num_classes = 2, .target_class_ids = target_class_ids};
}

IoUCounts::IoUCounts(const char* class_name, IoUMetricOptions options,
                     std::optional<double> threshold)
    : Metric(class_name, options, options.num_classes * options.num_classes),
      options_(checked_classes(class_name, std::move(options))),
      threshold_(threshold) {}

void IoUCounts::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const int64_t classes = options_.num_classes;
  const std::vector<int64_t> labels =
      class_numbers_of(batch.y_true, options_.sparse_y_true, options_.axis);
  const std::vector<int64_t> predictions =
      threshold_ ? at_least(batch.y_pred, *threshold_)
                 : class_numbers_of(batch.y_pred, options_.sparse_y_pred, options_.axis);
  if (labels.size() != predictions.size()) {
    throw ValueError(name(), ": labels of shape ", batch.y_true.shape(),
                     " do not match predictions of shape ", batch.y_pred.shape(),
                     "; both must have the same pixels");
  }
  const auto weights = batch.weights_of(static_cast<int64_t>(predictions.size()));
  const bool cuts = is_integer(options_.dtype);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == options_.ignore_class) continue;
    for (const int64_t number : {labels[i], predictions[i]}) {
      if (number >= 0 && number < classes) continue;
      throw ValueError(name(), ": class numbers must be in [0, ", classes, "), received ", number,
                       " at position ", i, "; set num_classes or ignore_class");
    }
    const double weight = weights[static_cast<int64_t>(i)];
    state[labels[i] * classes + predictions[i]] += cuts ? std::trunc(weight) : weight;
  }
}

Tensor IoUCounts::compute(std::span<const double> state) const {
  const int64_t classes = options_.num_classes;
  double sum = 0;
  int64_t present = 0;
  for (const int64_t id : options_.target_class_ids) {
    double either = -state[id * classes + id];
    for (int64_t c = 0; c < classes; ++c) {
      either += state[id * classes + c] + state[c * classes + id];
    }
    if (!(either > 1e-9)) continue;
    ++present;
    sum += state[id * classes + id] / (either + kEpsilonOfRatio);
  }
  return Tensor::scalar(present == 0 ? 0.0 : sum / static_cast<double>(present));
}

KEEL_REGISTER_ALL(Metric, segmentation_metrics) {
  registry.add_all<BinaryIoUMetric, IoUMetric, MeanIoUMetric, OneHotIoUMetric, OneHotMeanIoUMetric>(
      {.package = "keras"});
}

}  // namespace keel

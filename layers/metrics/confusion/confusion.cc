#include <keel/layers/metrics/confusion/confusion.h>

#include <algorithm>
#include <numeric>

#include <keel/framework/config/registry.h>
#include <keel/layers/metrics/confusion/internal/threshold_histogram.h>

namespace keel {
namespace {

// The value of predictions outside of the top k. It does not exceed the default threshold of top_k.
constexpr double kBelowAll = -1e10;

template <class Options>
Options checked(const char* caller, Options options) {
  if (!options.thresholds) return options;
  for (const double threshold : options.thresholds->values()) {
    if (!(threshold >= 0 && threshold <= 1)) {
      throw ValueError(caller, ": thresholds must be in [0, 1], received ", threshold);
    }
  }
  if (options.thresholds->values().empty()) {
    throw ValueError(caller, ": thresholds is empty; pass at least one value or leave it unset");
  }
  return options;
}

template <class Options>
Options named(Options options, const std::string& name) {
  options.name = name;
  return options;
}

std::vector<double> values_of(const std::optional<ScalarOrList>& thresholds, double otherwise) {
  return thresholds ? thresholds->values() : std::vector<double>{otherwise};
}

// Finds the positions of the k greatest elements. Of equal elements, the first are taken.
void find_greatest(std::span<const float> row, int64_t k, std::vector<int64_t>& positions) {
  positions.resize(row.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::ranges::partial_sort(positions, positions.begin() + k, [&](int64_t a, int64_t b) {
    return row[a] != row[b] ? row[a] > row[b] : a < b;
  });
  positions.resize(k);
}

// Replaces all elements of a row except its k greatest by kBelowAll.
Tensor only_greatest(const Tensor& prediction, int64_t k) {
  const int64_t columns = prediction.dim(-1);
  Tensor out = Tensor::full<float>(prediction.shape(), static_cast<float>(kBelowAll));
  const auto to = out.mutable_data<float>();
  std::vector<int64_t> greatest;
  for (int64_t begin = 0; begin < prediction.size(); begin += columns) {
    const auto row = prediction.data<float>().subspan(begin, columns);
    find_greatest(row, k, greatest);
    for (const int64_t i : greatest) to[begin + i] = row[i];
  }
  return out;
}

}  // namespace

ConfusionMetric::ConfusionMetric(const char* class_name, const std::string& name,
                                 const std::vector<double>& thresholds, Selection selection)
    : ConfusionMetric(class_name, name, std::make_shared<ThresholdHistogram>(thresholds),
                      selection) {}

ConfusionMetric::ConfusionMetric(const char* class_name, const std::string& name,
                                 std::shared_ptr<const ThresholdHistogram> histogram,
                                 Selection selection)
    : Metric(std::string(class_name), name, histogram->state_size()),
      histogram_(std::move(histogram)),
      selection_(selection) {}

ConfusionCounts ConfusionMetric::counts(std::span<const double> state) const {
  return histogram_->counts(state);
}

void ConfusionMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const int64_t columns = batch.y_pred.dim(-1);
  const auto check = [&](const char* option, const std::optional<int64_t>& value, int64_t low,
                         int64_t high) {
    if (!value || (*value >= low && *value <= high)) return;
    throw ValueError(name(), ": ", option, " must be in [", low, ", ", high,
                     "] for predictions of shape ", batch.y_pred.shape(), ", received ", *value);
  };
  check("class_id", selection_.class_id, 0, columns - 1);
  check("top_k", selection_.top_k, 1, columns);
  const Tensor prediction =
      selection_.top_k ? only_greatest(batch.y_pred, *selection_.top_k) : batch.y_pred;
  const auto predicted = prediction.data<float>();
  const auto label = batch.y_true.data<float>();
  const auto weights = batch.weights_of(prediction.size());
  const int64_t step = selection_.class_id ? columns : 1;
  for (int64_t i = selection_.class_id.value_or(0); i < prediction.size(); i += step) {
    histogram_->add(state, predicted[i], label[i] != 0, weights[i]);
  }
}

Tensor ConfusionMetric::by_threshold(const std::vector<double>& values) {
  if (values.size() == 1) return Tensor::scalar(values[0]);
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

ThresholdMetric::ThresholdMetric(const char* class_name, Other other, Options options)
    : ConfusionMetric(class_name, checked(class_name, options).name,
                      values_of(options.thresholds, options.top_k ? kBelowAll : 0.5),
                      {.top_k = options.top_k, .class_id = options.class_id}),
      other_(other),
      options_(named(std::move(options), name())) {}

Tensor ThresholdMetric::compute(std::span<const double> state) const {
  const ConfusionCounts c = counts(state);
  const std::vector<double>& missed = other_ == Other::kPrediction ? c.fp : c.fn;
  std::vector<double> out;
  for (size_t i = 0; i < missed.size(); ++i) out.push_back(ratio(c.tp[i], c.tp[i] + missed[i]));
  return by_threshold(out);
}

ConfusionCountMetric::ConfusionCountMetric(const char* class_name, ConfusionCount count,
                                           Options options)
    : ConfusionMetric(class_name, checked(class_name, options).name,
                      values_of(options.thresholds, 0.5), {}),
      count_(count),
      options_(named(std::move(options), name())) {}

Tensor ConfusionCountMetric::compute(std::span<const double> state) const {
  const ConfusionCounts c = counts(state);
  switch (count_) {
    case ConfusionCount::kTruePositives:
      return by_threshold(c.tp);
    case ConfusionCount::kTrueNegatives:
      return by_threshold(c.tn);
    case ConfusionCount::kFalsePositives:
      return by_threshold(c.fp);
    default:
      return by_threshold(c.fn);
  }
}

KEEL_REGISTER_ALL(Metric, confusion_metrics) {
  registry.add_all<FalseNegativesMetric, FalsePositivesMetric, PrecisionMetric, RecallMetric,
                   TrueNegativesMetric, TruePositivesMetric>({.package = "keras"});
}

}  // namespace keel

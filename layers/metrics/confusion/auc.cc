#include <keel/layers/metrics/confusion/auc.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/config/registry.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/metrics/confusion/internal/threshold_histogram.h>

namespace keel {
namespace {

// The tolerance for predictions outside of [0, 1] due to rounding in a model's last layer.
constexpr float kSlack = 1e-5f;

void check_labels(const AUCMetricOptions& options) {
  if (options.num_labels && !options.multi_label) {
    throw ValueError(
        "AUC: num_labels requires multi_label; set multi_label or leave num_labels unset");
  }
  if (options.num_labels && *options.num_labels < 1) {
    throw ValueError("AUC: num_labels must be positive, received ", *options.num_labels);
  }
  for (const double weight : options.label_weights.value_or(std::vector<double>())) {
    if (!(weight >= 0)) {
      throw ValueError("AUC: label_weights must not be negative, received ", weight);
    }
  }
}

AUCMetricOptions checked(AUCMetricOptions options) {
  if (options.curve == "roc" || options.curve == "pr") {
    options.curve = options.curve == "pr" ? "PR" : "ROC";
  }
  if (options.curve != "ROC" && options.curve != "PR") {
    throw ValueError("AUC: curve must be 'ROC' or 'PR', received '", options.curve, "'");
  }
  const std::string& method = options.summation_method;
  if (method != "interpolation" && method != "minoring" && method != "majoring") {
    throw ValueError(
        "AUC: summation_method must be 'interpolation', 'minoring' or 'majoring', received '",
        method, "'");
  }
  if (options.thresholds) {
    for (const double t : *options.thresholds) {
      if (!(t >= 0 && t <= 1)) throw ValueError("AUC: thresholds must be in [0, 1], received ", t);
    }
    std::ranges::sort(*options.thresholds);
    options.num_thresholds = static_cast<int64_t>(options.thresholds->size()) + 2;
  }
  if (options.num_thresholds < 2) {
    throw ValueError("AUC: num_thresholds must be at least 2, received ", options.num_thresholds);
  }
  check_labels(options);
  return options;
}

std::shared_ptr<const ThresholdHistogram> histogram_of(const AUCMetricOptions& options) {
  return std::make_shared<ThresholdHistogram>(
      options.thresholds ? ThresholdHistogram::around_unit_interval(*options.thresholds)
                         : ThresholdHistogram::around_unit_interval(options.num_thresholds));
}

int64_t state_size(const AUCMetricOptions& options) {
  const int64_t of_one = 2 * (options.num_thresholds + 1);
  if (!options.multi_label) return of_one;
  return options.num_labels ? *options.num_labels * of_one : kUnknown;
}

// Returns the area of the precision-recall curve between two thresholds, where the counts fall from
// `high` to `low`. True positives are interpolated linearly in the number of positive predictions
// (Davis and Goadrich, 2006).
double precision_recall_piece(double tp_high, double tp_low, double fp_high, double fp_low,
                              double positives) {
  const double all_high = tp_high + fp_high, all_low = tp_low + fp_low;
  const double slope = ratio(tp_high - tp_low, std::max(all_high - all_low, 0.0));
  const double intercept = tp_low - slope * all_low;
  const double growth = all_high > 0 && all_low > 0 ? all_high / all_low : 1;
  return ratio(slope * (tp_high - tp_low + intercept * math::log(growth)), positives);
}

}  // namespace

AUCMetric::AUCMetric(Options options)
    : Metric(kClassName, options, state_size(checked(options))),
      options_(checked(std::move(options))),
      histogram_(histogram_of(options_)) {}

Config AUCMetric::get_config() const {
  Config out = to_config(options_);
  if (!options_.thresholds) out.erase("thresholds");  // Keras does not write unset thresholds
  return out;
}

void AUCMetric::check_columns(const Tensor& prediction) const {
  const auto check = [&](bool fits, const char* what) {
    if (!fits) {
      throw ValueError(name(), ": predictions must be [batch, ", what, "], received shape ",
                       prediction.shape());
    }
  };
  if (options_.multi_label) {
    check(prediction.rank() == 2, "labels");
    check(!options_.num_labels || prediction.dim(1) == *options_.num_labels, "num_labels");
  }
  check(!options_.label_weights || prediction.dim(-1) == std::ssize(*options_.label_weights),
        "label_weights");
}

int64_t AUCMetric::state_size_of(const MetricBatch& batch) const {
  check_columns(batch.y_pred);
  return batch.y_pred.dim(1) * histogram_->state_size();
}

void AUCMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  check_columns(batch.y_pred);
  const int64_t columns = batch.y_pred.dim(-1);
  const double* label_weights = options_.label_weights ? options_.label_weights->data() : nullptr;
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  const auto weights = batch.weights_of(batch.y_pred.size());
  for (int64_t i = 0; i < batch.y_pred.size(); ++i) {
    float p = prediction[i];
    if (options_.from_logits) p = math::sigmoid(p);
    if (!(p >= -kSlack && p <= 1 + kSlack)) {
      throw ValueError(
          name(), ": predictions must be in [0, 1] (set from_logits for logits), received ", p);
    }
    const int64_t column = i % columns;
    double weight = weights[i];
    std::span<double> sums = state;
    if (options_.multi_label) {
      sums = state.subspan(column * histogram_->state_size(), histogram_->state_size());
    } else if (label_weights != nullptr) {
      weight *= label_weights[column];
    }
    histogram_->add(sums, std::clamp(p, 0.0f, 1.0f), label[i] != 0, weight);
  }
}

double AUCMetric::area(const ConfusionCounts& c) const {
  const double positives = c.tp[0] + c.fn[0], negatives = c.fp[0] + c.tn[0];
  const bool roc = options_.curve == "ROC";
  const bool interpolate = options_.summation_method == "interpolation";
  double out = 0;
  for (size_t i = 0; i + 1 < c.tp.size(); ++i) {
    if (!roc && interpolate) {
      out += precision_recall_piece(c.tp[i], c.tp[i + 1], c.fp[i], c.fp[i + 1], positives);
      continue;
    }
    const auto x = [&](size_t k) {
      return roc ? ratio(c.fp[k], negatives) : ratio(c.tp[k], positives);
    };
    const auto y = [&](size_t k) {
      return roc ? ratio(c.tp[k], positives) : ratio(c.tp[k], c.tp[k] + c.fp[k]);
    };
    const double a = y(i), b = y(i + 1);
    const double height = interpolate                               ? (a + b) / 2
                          : options_.summation_method == "minoring" ? std::min(a, b)
                                                                    : std::max(a, b);
    out += (x(i) - x(i + 1)) * height;
  }
  return out;
}

Tensor AUCMetric::compute(std::span<const double> state) const {
  const auto size = static_cast<size_t>(histogram_->state_size());
  const bool weighs_curves = options_.multi_label && options_.label_weights;
  double sum = 0, all = 0;
  for (size_t begin = 0; begin < state.size(); begin += size) {
    const double weight = weighs_curves ? (*options_.label_weights)[begin / size] : 1;
    sum += weight * area(histogram_->counts(state.subspan(begin, size)));
    all += weight;
  }
  return Tensor::scalar(ratio(sum, all));
}

KEEL_REGISTER_ALL(Metric, auc_metrics) { registry.add_all<AUCMetric>({.package = "keras"}); }

}  // namespace keel

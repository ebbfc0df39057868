#include <algorithm>
#include <cmath>

#include <keel/framework/config/registry.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/layers/metrics/confusion/internal/scored_examples.h>

namespace keel {
namespace {

struct Example {
  int64_t group = 0;
  float score = 0, weight = 0;  // in the form of ScoredExamples
};

std::vector<Example> sorted(const ScoredExamples& from) {
  std::vector<Example> out(from.scores.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = {.group = from.groups.empty() ? 0 : from.groups[i],
              .score = from.scores[i],
              .weight = from.weights[i]};
  }
  // The sort is stable, so that weights are summed in a fixed order.
  std::ranges::stable_sort(out, [](const Example& a, const Example& b) {
    return a.group != b.group ? a.group < b.group : a.score < b.score;
  });
  return out;
}

struct Area {
  double area = 0;                    // area under one curve; 0 unless defined()
  double positive = 0, negative = 0;  // sums of weights
  bool defined() const { return positive > 0 && negative > 0; }
};

// Computes the area of examples in ascending order of their scores.
Area area_of(std::span<const Example> examples) {
  Area out;
  double pairs = 0;
  for (size_t begin = 0; begin < examples.size();) {
    double positive = 0, negative = 0;
    size_t end = begin;
    for (; end < examples.size() && examples[end].score == examples[begin].score; ++end) {
      (examples[end].weight > 0 ? positive : negative) += std::abs(double{examples[end].weight});
    }
    pairs += positive * (out.negative + negative / 2);
    out.positive += positive;
    out.negative += negative;
    begin = end;
  }
  if (out.defined()) out.area = pairs / (out.positive * out.negative);
  return out;
}

Shape without_last_one(const Shape& shape) {
  return shape.rank() > 1 && shape[-1] == 1 ? shape.drop_last() : shape;
}

template <class T>
bool is_whole(T x) {
  if constexpr (std::floating_point<T>) return x == std::floor(x) && std::abs(x) < T{0x1p63};
  return true;
}

// Returns the second column of [n, 2].
template <class T>
std::vector<int64_t> users_of(const std::string& caller, std::span<const T> pairs) {
  std::vector<int64_t> out;
  for (size_t i = 1; i < pairs.size(); i += 2) {
    if (!is_whole(pairs[i])) {
      throw ValueError(caller, ": users must be integers, received ", pairs[i], " at position ",
                       i / 2);
    }
    out.push_back(static_cast<int64_t>(pairs[i]));
  }
  return out;
}

}  // namespace

ScoredMetric::ScoredMetric(const char* class_name, const Options& options)
    : Metric(class_name, options, 0),
      options_{name(), options.dtype},
      examples_(std::make_unique<ReplicaExamples>()) {}

ScoredMetric::~ScoredMetric() = default;

void ScoredMetric::reset_state() {
  Metric::reset_state();
  examples_->clear();
}

void ScoredMetric::rebuild() {
  Metric::rebuild();
  *examples_ = ReplicaExamples();
}

void ScoredMetric::keep(const MetricBatch& batch, const std::vector<bool>& positive,
                        std::span<const int64_t> group) const {
  const auto scores = batch.y_pred.data<float>();
  const auto weights = batch.weights_of(batch.y_pred.size());
  // All weights are checked first, so that an error leaves the stored examples unchanged.
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(weights[i] >= 0)) {
      throw ValueError(name(), ": weights must not be negative, received ", weights[i]);
    }
  }
  ScoredExamples& mine = examples_->mine(name());
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto weight = static_cast<float>(weights[i]);
    if (weight == 0) continue;
    mine.scores.push_back(scores[i]);
    mine.weights.push_back(positive[i] ? weight : -weight);
    if (!group.empty()) mine.groups.push_back(group[i]);
  }
}

Tensor ScoredMetric::compute(std::span<const double>) const {
  return Tensor::scalar(area(examples_->all()));
}

void ExactAUCMetric::accumulate(const MetricBatch& batch, std::span<double>) const {
  std::vector<bool> positive;
  for (const float y : batch.y_true.data<float>()) positive.push_back(y != 0);
  keep(batch, positive, {});
}

double ExactAUCMetric::area(const ScoredExamples& examples) const {
  return area_of(sorted(examples)).area;
}

void GAUCMetric::accumulate(const MetricBatch& batch, std::span<double>) const {
  const Tensor& y = batch.y_true;
  if (y.rank() < 2 || y.dim(-1) != 2 ||
      without_last_one(y.shape().drop_last()) != without_last_one(batch.y_pred.shape())) {
    throw ValueError(name(),
                     ": y_true must hold the label and the user of each prediction of shape ",
                     batch.y_pred.shape(), " along its last axis, received shape ", y.shape());
  }
  std::vector<bool> positive;
  std::vector<int64_t> users;
  visit_numeric(y.dtype(), kClassName, [&]<class T>(const T&) {
    const auto pairs = y.data<T>();
    for (size_t i = 0; i < pairs.size(); i += 2) positive.push_back(pairs[i] != 0);
    users = users_of<T>(name(), pairs);
  });
  keep(batch, positive, users);
}

double GAUCMetric::area(const ScoredExamples& examples) const {
  const std::vector<Example> all = sorted(examples);
  double sum = 0, impressions = 0;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::ranges::find_if(
        begin, all.end(), [&](const Example& e) { return e.group != begin->group; });
    const Area user = area_of({begin, end});
    if (user.defined()) {
      sum += (user.positive + user.negative) * user.area;
      impressions += user.positive + user.negative;
    }
    begin = end;
  }
  return impressions > 0 ? sum / impressions : 0;
}

namespace metrics {

Tensor labels_of_users(const Tensor& labels, const Tensor& users) {
  const Shape shape = without_last_one(labels.shape());
  if (without_last_one(users.shape()) != shape) {
    throw ValueError("labels_of_users: labels and users must have the same shape, received ",
                     labels.shape(), " and ", users.shape());
  }
  const Tensor y = labels.cast(DType::kFloat64), u = users.cast(DType::kFloat64);
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.push_back(2);
  Tensor out = Tensor::uninitialized(Shape(dims), DType::kFloat64);
  const auto pairs = out.mutable_data<double>();
  for (int64_t i = 0; i < y.size(); ++i) {
    pairs[2 * i] = y.data<double>()[i];
    pairs[2 * i + 1] = u.data<double>()[i];
  }
  return out;
}

}  // namespace metrics

KEEL_REGISTER_ALL(Metric, exact_auc_metrics) {
  registry.add_all<ExactAUCMetric, GAUCMetric>({.package = "keel"});
}

}  // namespace keel

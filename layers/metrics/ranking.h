// Metrics of ranked lists (keras_rs.metrics).
//
// y_true and y_pred are [batch, items], or [items] for one list. The items of a list are ranked by
// their predictions, the greatest first. If k is given, only the first k count. An item is excluded
// if its label is negative, if its weight is not positive, or if the mask of y_true or y_pred
// excludes it: {"labels": y, "mask": m} in keras_rs corresponds to y.with_mask(m) here. An item is
// relevant if its label is at least 1. Sample weights may be per list or per item.
//
// The result is the mean over the lists. Each list is weighted by the mean weight of its relevant
// items (for DCG and NDCG: of all items, weighted by their gains). A list without relevant items
// has the value 0 and the mean weight of the lists that have some. keras_rs computes this mean
// weight over one batch. Here it is computed over all batches, so that results do not depend on the
// batch size.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <keel/framework/random.h>
#include <keel/layers/metrics/mean.h>

namespace keel {

namespace internal {

struct RankedItem;
struct RankedList;

// Return the value of a list with at least one relevant item.
double reciprocal_rank(const RankedList& list);
double precision_at_k(const RankedList& list);
double recall_at_k(const RankedList& list);
double average_precision(const RankedList& list);

}  // namespace internal

// The options of the ranking metrics other than DCG and NDCG.
struct RankingMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only
  std::optional<int64_t> k = {};  // > 0
  // Orders items with equal predictions randomly, as a function of the seed, the replica and the
  // number of lists that the replica has processed since the last reset. If false, they keep their
  // order.
  bool shuffle_ties = true;
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
    field("shuffle_ties", self.shuffle_ties);
    field("seed", self.seed);
  }
};

// A function of one number that a config stores by its name.
class NamedFunction {
 public:
  // Takes the name that configs contain, and the function.
  NamedFunction(std::string name, std::function<double(double)> function)
      : name_(std::move(name)), function_(std::move(function)) {}
  // Calls the function.
  double operator()(double x) const { return function_(x); }
  // Returns the name.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::function<double(double)> function_;
};
NamedFunction default_gain_fn();           // returns the function 2^label - 1
NamedFunction default_rank_discount_fn();  // returns the function 1 / log2(rank + 1)

// The options of DCG and NDCG. Files of keras_rs do not contain the functions. A config contains
// the name of a function that is not the default, and from_config then throws ValueError, because a
// name does not identify the function.
struct DCGMetricOptions {
  std::string name = {};             // empty: the class name in snake case
  DType dtype = DType::kFloat32;     // kept for files only
  std::optional<int64_t> k = {};     // > 0
  bool shuffle_ties = true;          // see RankingMetricOptions
  std::optional<int64_t> seed = {};  // see RankingMetricOptions
  // Maps labels to gains, which must not be negative.
  NamedFunction gain_fn = default_gain_fn();
  // Maps ranks, which start at 1, to the factors of the gains.
  NamedFunction rank_discount_fn = default_rank_discount_fn();

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
    field("shuffle_ties", self.shuffle_ties);
    field("seed", self.seed);
    field("gain_fn", self.gain_fn);
    field("rank_discount_fn", self.rank_discount_fn);
  }
};
// Encodes a function as its name.
Config encode(const NamedFunction& function);
// Decodes the default functions by their names in keras_rs. Throws ValueError for other names.
void decode(const Config& config, NamedFunction& function);

// Base class of the metrics below. The constructor throws ValueError for k < 1, and updates throw
// it for shapes other than the above.
class RankingMetric : public Metric {
 public:
  using Options = RankingMetricOptions;  // the options of the constructor
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 protected:
  // For a class of this name.
  RankingMetric(const char* class_name, Options options);
  // Returns those items of a ranked list that are among the first k.
  std::span<const internal::RankedItem> first_k(std::span<const internal::RankedItem> items) const;

 private:
  // Returns the value of a list with at least one relevant item.
  virtual double value(const internal::RankedList& list) const = 0;
  // Returns the factor of an item in the weight of its list.
  virtual double relevance(const internal::RankedItem& item) const;

  void accumulate(const MetricBatch& batch, std::span<double> state) const final;
  Tensor compute(std::span<const double> state) const final;
  bool sparse_labels(const Tensor&, const Tensor&) const final { return true; }
  bool uses_mask() const final { return true; }
  void rank(std::vector<internal::RankedItem>& items, int64_t number) const;
  void add_list(std::span<const internal::RankedItem> ranked, std::span<double> state) const;

  const Options options_;
  const RandomStream random_;
};

// A ranking metric whose value of a list is kValue(list).
template <ClassName kName, auto kValue>
class ListMetric final : public RankingMetric {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  explicit ListMetric(Options options) : RankingMetric(kClassName, std::move(options)) {}

 private:
  double value(const internal::RankedList& list) const override { return kValue(list); }
};

// The reciprocal rank of the first relevant item: 1 / rank, or 0 if it is not among the first k.
using MeanReciprocalRankMetric = ListMetric<"MeanReciprocalRank", internal::reciprocal_rank>;
// The number of relevant items among the first k, divided by k, or by the number of items if that
// is less.
using PrecisionAtKMetric = ListMetric<"PrecisionAtK", internal::precision_at_k>;
// The fraction of the relevant items that are among the first k.
using RecallAtKMetric = ListMetric<"RecallAtK", internal::recall_at_k>;
// Average precision: the sum over the relevant ranks r <= k of w_r precision(r), divided by the sum
// of w over all relevant items. precision(r) is the fraction of relevant items among the first r.
using MeanAveragePrecisionMetric = ListMetric<"MeanAveragePrecision", internal::average_precision>;

// Discounted cumulative gain: the sum over the ranks r <= k of w_r gain_r discount_r (Burges et al.
// 2005, after Jarvelin and Kekalainen 2002). It is divided by the weight of the list, because the
// mean multiplies by that weight.
class DCGMetric : public RankingMetric {
 public:
  static constexpr char kClassName[] = "DCG";  // the name in configs and files
  using Options = DCGMetricOptions;            // the options of the constructor
  explicit DCGMetric(Options options) : DCGMetric(kClassName, std::move(options)) {}
  Config get_config() const final;

 protected:
  // For a class of this name.
  DCGMetric(const char* class_name, Options options);
  double value(const internal::RankedList& list) const override;
  double relevance(const internal::RankedItem& item) const final;
  // Returns the sum over the ranks r of w_r gain_r discount_r.
  double discounted_gains(std::span<const internal::RankedItem> items) const;

 private:
  const Options gains_;
};

// Normalized DCG: the DCG divided by its value for the ideal order, in which w gain is descending.
class NDCGMetric final : public DCGMetric {
 public:
  static constexpr char kClassName[] = "NDCG";  // the name in configs and files
  explicit NDCGMetric(Options options) : DCGMetric(kClassName, std::move(options)) {}

 private:
  double value(const internal::RankedList& list) const override;
};

namespace metrics {
// Handles to the metrics, under the names of keras_rs.
using MeanReciprocalRank = Handle<MeanReciprocalRankMetric>;
using PrecisionAtK = Handle<PrecisionAtKMetric>;
using RecallAtK = Handle<RecallAtKMetric>;
using MeanAveragePrecision = Handle<MeanAveragePrecisionMetric>;
using DCG = Handle<DCGMetric>;
using NDCG = Handle<NDCGMetric>;
}  // namespace metrics

}  // namespace keel

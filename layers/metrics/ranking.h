// Metrics of ranked lists (keras_rs.metrics).
//
// y_true and y_pred are [batch, items], or [items] for one list. The items of a list are ranked by
// their predictions, the greatest first; only the first k count if k is given. An item is left out
// if its label is negative, its weight is not positive, or the mask of y_true or of y_pred leaves
// it out: what keras_rs takes as {"labels": y, "mask": m} is y.with_mask(m) here. Items are
// relevant if their label is at least 1. Sample weights are of lists or of items.
//
// The result is the mean over the lists, each of them weighted by the mean weight of its relevant
// items (for DCG and NDCG: of all, by their gains); a list without any has the value 0 and the mean
// weight of the lists that have. Where keras_rs takes that mean over one batch, it is here over all
// of them, so that results do not depend on how lists are batched.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <keel/framework/random.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

struct RankingMetricOptions {
  std::string name = {};  // empty: the class in snake case
  DType dtype = DType::kFloat32;
  std::optional<int64_t> k = {};  // > 0
  // Items of equal predictions come in a random order, drawn from the seed, the replica and the
  // number of lists it has seen since the last reset; else in the order they are in.
  bool shuffle_ties = true;
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
    field("shuffle_ties", self.shuffle_ties);
    field("seed", self.seed);
  }
};

// A function of one number that a config knows by its name.
class NamedFunction {
 public:
  NamedFunction(std::string name, std::function<double(double)> function)
      : name_(std::move(name)), function_(std::move(function)) {}
  double operator()(double x) const { return function_(x); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::function<double(double)> function_;
};
NamedFunction default_gain_fn();           // 2^label - 1
NamedFunction default_rank_discount_fn();  // 1 / log2(rank + 1)

// Options of DCG and NDCG. gain_fn maps labels to gains, which must not be negative;
// rank_discount_fn maps ranks, from 1, to the factors of gains. Files of keras_rs do not hold them:
// a config has the name of a function that is not the default, and from_config refuses it
// (ValueError), because the function cannot be found by it.
struct DCGMetricOptions {
  std::string name = {};  // empty: the class in snake case
  DType dtype = DType::kFloat32;
  std::optional<int64_t> k = {};     // > 0
  bool shuffle_ties = true;          // as in RankingMetricOptions
  std::optional<int64_t> seed = {};  // idem
  NamedFunction gain_fn = default_gain_fn();
  NamedFunction rank_discount_fn = default_rank_discount_fn();

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
    field("shuffle_ties", self.shuffle_ties);
    field("seed", self.seed);
    field("gain_fn", self.gain_fn);
    field("rank_discount_fn", self.rank_discount_fn);
  }
};
Config encode(const NamedFunction& function);
// The default functions, by their names in keras_rs. ValueError for others.
void decode(const Config& config, NamedFunction& function);

// Base of the metrics below. ValueError for k < 1; when updated, for other shapes.
class RankingMetric : public Metric {
 public:
  using Options = RankingMetricOptions;
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 protected:
  struct Item {
    float score = 0;
    double label = 0, weight = 1;
    int64_t position = 0;  // in the list
  };
  // The items of one list that count, in the order of their ranks.
  struct RankedList {
    std::span<const Item> all, top;  // `top` are the first k
    double weight = 0;               // of the list, > 0
  };
  RankingMetric(const char* class_name, Options options);

  // Of a list with a relevant item.
  virtual double value(const RankedList& list) const = 0;
  // How much an item counts in the weight of its list.
  virtual double relevance(const Item& item) const;
  std::span<const Item> first_k(std::span<const Item> items) const;

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;
  Tensor compute(std::span<const double> state) const final;
  bool sparse_labels(const Tensor&, const Tensor&) const final { return true; }
  bool uses_mask() const final { return true; }
  void rank(std::vector<Item>& items, int64_t number) const;
  void add_list(std::span<const Item> ranked, std::span<double> state) const;

  const Options options_;
  const RandomStream random_;
};

// 1 / rank of the first relevant item, 0 if it is not among the first k.
class MeanReciprocalRankMetric final : public RankingMetric {
 public:
  static constexpr char kClassName[] = "MeanReciprocalRank";
  explicit MeanReciprocalRankMetric(Options options)
      : RankingMetric(kClassName, std::move(options)) {}

 private:
  double value(const RankedList& list) const override;
};

// How many of the first k items are relevant, divided by k, or by the items if they are fewer.
class PrecisionAtKMetric final : public RankingMetric {
 public:
  static constexpr char kClassName[] = "PrecisionAtK";
  explicit PrecisionAtKMetric(Options options) : RankingMetric(kClassName, std::move(options)) {}

 private:
  double value(const RankedList& list) const override;
};

// Which part of the relevant items is among the first k.
class RecallAtKMetric final : public RankingMetric {
 public:
  static constexpr char kClassName[] = "RecallAtK";
  explicit RecallAtKMetric(Options options) : RankingMetric(kClassName, std::move(options)) {}

 private:
  double value(const RankedList& list) const override;
};

// sum over the relevant ranks r <= k of w_r precision(r) / sum over all relevant items of w, where
// precision(r) is the part of the first r items that is relevant.
class MeanAveragePrecisionMetric final : public RankingMetric {
 public:
  static constexpr char kClassName[] = "MeanAveragePrecision";
  explicit MeanAveragePrecisionMetric(Options options)
      : RankingMetric(kClassName, std::move(options)) {}

 private:
  double value(const RankedList& list) const override;
};

// Base of DCG and NDCG.
class GainMetric : public RankingMetric {
 public:
  using Options = DCGMetricOptions;
  Config get_config() const final;

 protected:
  GainMetric(const char* class_name, Options options);
  double relevance(const Item& item) const final { return gains_.gain_fn(item.label); }
  // w_r gain_r discount_r, added up over the ranks r.
  double discounted_gains(std::span<const Item> items) const;

 private:
  const Options gains_;
};

// sum over ranks r <= k of w_r gain_r discount_r (Burges et al. 2005, after Jarvelin and Kekalainen
// 2002), divided by the weight of the list, which the mean multiplies by.
class DCGMetric final : public GainMetric {
 public:
  static constexpr char kClassName[] = "DCG";
  explicit DCGMetric(Options options) : GainMetric(kClassName, std::move(options)) {}

 private:
  double value(const RankedList& list) const override;
};

// That sum divided by what it is where the greatest w gain come first.
class NDCGMetric final : public GainMetric {
 public:
  static constexpr char kClassName[] = "NDCG";
  explicit NDCGMetric(Options options) : GainMetric(kClassName, std::move(options)) {}

 private:
  double value(const RankedList& list) const override;
};

namespace metrics {
using MeanReciprocalRank = Handle<MeanReciprocalRankMetric>;
using PrecisionAtK = Handle<PrecisionAtKMetric>;
using RecallAtK = Handle<RecallAtKMetric>;
using MeanAveragePrecision = Handle<MeanAveragePrecisionMetric>;
using DCG = Handle<DCGMetric>;
using NDCG = Handle<NDCGMetric>;
}  // namespace metrics

}  // namespace keel

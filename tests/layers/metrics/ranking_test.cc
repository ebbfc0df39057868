#include <keel/layers/metrics/ranking.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>

namespace keel::ranking_test {

using Numbers = std::vector<float>;

double result(const MetricHandle& metric, const Tensor& y, const Tensor& p,
              const Tensor& weight = {}) {
  metric->reset_state();
  metric->update_state(y, p, weight);
  return metric->result();
}

// Relevance in ranked order: 1 0 0 0; 0 1 1 1 (the first relevant item has rank 2); none; 1 0 0 1.
Tensor labels() {
  return Tensor::from<float>({0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 2, 0}, {4, 4});
}
Tensor scores() {
  return Tensor::from<float>(
      {.1f, .2f, .9f, .3f, .8f, .7f, .1f, .2f, .4f, .3f, .2f, .1f, .9f, .2f, .1f, .3f}, {4, 4});
}

TEST(RankingTest, ValuesOfListsAreAveraged) {
  EXPECT_NEAR(result(metrics::MeanReciprocalRank({}), labels(), scores()), (1 + .5 + 0 + 1) / 4,
              1e-9);
  EXPECT_NEAR(result(metrics::MeanAveragePrecision({}), labels(), scores()),
              (1 + (.5 + 2. / 3 + .75) / 3 + 0 + (1 + .5) / 2) / 4, 1e-9);
  EXPECT_NEAR(result(metrics::PrecisionAtK({.k = 3}), labels(), scores()),
              (1. / 3 + 2. / 3 + 0 + 1. / 3) / 4, 1e-9);
  EXPECT_NEAR(result(metrics::RecallAtK({.k = 3}), labels(), scores()),
              (1 + 2. / 3 + 0 + 1. / 2) / 4, 1e-9);
  const double dcg2 = 1 / std::log2(3) + 1 / std::log2(4) + 1 / std::log2(5);
  const double ideal2 = 1 + 1 / std::log2(3) + 1 / std::log2(4);
  const double dcg4 = 1 + 3 / std::log2(5), ideal4 = 3 + 1 / std::log2(3);
  EXPECT_NEAR(result(metrics::DCG({}), labels(), scores()), (1 + dcg2 + 0 + dcg4) / 4, 1e-9);
  EXPECT_NEAR(result(metrics::NDCG({}), labels(), scores()),
              (1 + dcg2 / ideal2 + 0 + dcg4 / ideal4) / 4, 1e-9);
}

// In keras_rs, DCG is the sum of gain_fn(label) rank_discount_fn(rank). With gain = label and
// discount = 1 / rank, the lists of labels 1 0 0 0, 0 1 1 1, none and 1 0 0 2 have the sums 1, 1 /
// 2 + 1 / 3 + 1 / 4, 0 and 1 + 2 / 4. The sums of the ideal orders are 1, 1 + 1 / 2 + 1 / 3, 0 and
// 2 + 1 / 2.
TEST(RankingTest, GainsAndDiscountsMayBeFunctions) {
  const NamedFunction linear("linear", [](double label) { return label; });
  const NamedFunction harmonic("harmonic", [](double rank) { return 1 / rank; });
  const double sum2 = 1 / 2. + 1 / 3. + 1 / 4.;
  EXPECT_NEAR(
      result(metrics::DCG({.gain_fn = linear, .rank_discount_fn = harmonic}), labels(), scores()),
      (1 + sum2 + 0 + 1.5) / 4, 1e-9);
  EXPECT_NEAR(
      result(metrics::NDCG({.gain_fn = linear, .rank_discount_fn = harmonic}), labels(), scores()),
      (1 + sum2 / (1 + 1 / 2. + 1 / 3.) + 0 + 1.5 / 2.5) / 4, 1e-9);
  EXPECT_EQ(metrics::NDCG({.gain_fn = linear})->get_config()["gain_fn"], Config("linear"));
  const Config config = metrics::NDCG({.k = 3})->get_config();
  EXPECT_EQ(config.find("gain_fn"), nullptr) << "keras_rs reads no function";
  const auto read = [](const char* text) {
    return metrics::deserialize(
        Config::dict({{"class_name", "NDCG"}, {"config", parse_json(text)}}));
  };
  EXPECT_NO_THROW(read(R"({"k": 3, "gain_fn": null, "rank_discount_fn": {"class_name": "function",
      "config": "keras_rs>default_rank_discount_fn", "registered_name": "function"}})"));
  EXPECT_THROW(read(R"({"gain_fn": "linear"})"), ValueError);
}

TEST(RankingTest, OnlyTheFirstKCount) {
  EXPECT_NEAR(result(metrics::MeanReciprocalRank({.k = 1}), labels(), scores()), .5, 1e-9);
  EXPECT_NEAR(result(metrics::MeanAveragePrecision({.k = 2}), labels(), scores()),
              (1 + .5 / 3 + 0 + .5) / 4, 1e-9);
  EXPECT_NEAR(result(metrics::DCG({.k = 2}), labels(), scores()),
              (1 + 1 / std::log2(3) + 0 + 1) / 4, 1e-9);
  EXPECT_NEAR(result(metrics::NDCG({.k = 2}), labels(), scores()),
              (1 + 1 / std::log2(3) / (1 + 1 / std::log2(3)) + 1 / (3 + 1 / std::log2(3))) / 4,
              1e-9);
  EXPECT_NEAR(result(metrics::PrecisionAtK({.k = 9}), labels(), scores()), (1 + 3 + 0 + 2) / 16.,
              1e-9);
}

TEST(RankingTest, WeightsApplyToLists) {
  const Tensor weight = Tensor::from<float>({1, .5f, 2, 1}, {4});
  // The list without relevant items has the mean weight of the others.
  const double mean = 2.5 / 3;
  EXPECT_NEAR(result(metrics::MeanReciprocalRank({}), labels(), scores(), weight),
              (1 + .5 * .5 + 1) / (2.5 + mean), 1e-9);
  EXPECT_NEAR(result(metrics::RecallAtK({.k = 3}), labels(), scores(), weight),
              (1 + .5 * 2 / 3 + .5) / (2.5 + mean), 1e-9);
  EXPECT_EQ(result(metrics::DCG({}), labels(), scores(), Tensor::scalar(0.0f)), 0);
}

TEST(RankingTest, ItemWeightsDetermineListWeights) {
  const Tensor y = Tensor::from<float>({1, 0, 1, 0}, {1, 4});
  const Tensor p = Tensor::from<float>({.9f, .2f, .1f, .3f}, {1, 4});
  const Tensor weight = Tensor::from<float>({2, 1, 3, 0}, {1, 4});
  // The last item is excluded, so the ranks are 1, 2 and 3.
  EXPECT_NEAR(result(metrics::MeanAveragePrecision({}), y, p, weight), (2 + 3 * 2. / 3) / 5, 1e-9);
  EXPECT_NEAR(result(metrics::PrecisionAtK({}), y, p, weight), 2. / 3, 1e-9);
  EXPECT_NEAR(result(metrics::DCG({}), y, p, weight), (2 + 3 / std::log2(4)) / 2.5, 1e-9);
  EXPECT_NEAR(result(metrics::NDCG({}), y, p, weight),
              (2 + 3 / std::log2(4)) / (3 + 2 / std::log2(3)), 1e-9);
  const metrics::MeanReciprocalRank two({});
  two->update_state(y, p, weight);
  two->update_state(Tensor::from<float>({1, 0}, {1, 2}), Tensor::from<float>({0, 1}, {1, 2}));
  EXPECT_NEAR(two->result(), (2.5 * 1 + 1 * .5) / 3.5, 1e-9);
}

TEST(RankingTest, MasksAndNegativeLabelsLeaveItemsOut) {
  const Tensor y = Tensor::from<float>({0, 1, 1}, {1, 3}),
               p = Tensor::from<float>({3, 2, 1}, {1, 3});
  const Tensor mask = Tensor::from<bool>({false, true, true}, {1, 3});
  const Tensor padded = Tensor::from<float>({-1, 1, 1}, {1, 3});
  for (const char* name : {"MeanReciprocalRank", "PrecisionAtK", "MeanAveragePrecision", "NDCG"}) {
    const MetricHandle metric = metrics::get(name);
    EXPECT_LT(result(metric, y, p), 1) << name;
    EXPECT_NEAR(result(metric, y.with_mask(mask), p), 1, 1e-9) << name;
    EXPECT_NEAR(result(metric, y, p.with_mask(mask)), 1, 1e-9) << name;
    EXPECT_NEAR(result(metric, padded, p), 1, 1e-9) << name;
    EXPECT_NEAR(result(metric, y, p, mask.cast(DType::kFloat32)), 1, 1e-9) << name;
    EXPECT_EQ(result(metric, y.with_mask(Tensor::from<bool>({false}, {1})), p), 0) << name;
  }
}

TEST(RankingTest, OneListNeedsNoBatch) {
  const Tensor y = Tensor::from<int32_t>({0, 1}, {2}), p = Tensor::from<float>({1, 0}, {2});
  EXPECT_EQ(result(metrics::MeanReciprocalRank({}), y, p), .5);
}

TEST(RankingTest, TiesKeepTheirOrderOnRequest) {
  const Tensor p = Tensor::zeros({1, 4});
  for (int64_t at = 0; at < 4; ++at) {
    Tensor y = Tensor::zeros({1, 4});
    y.mutable_data<float>()[at] = 1;
    EXPECT_EQ(result(metrics::MeanReciprocalRank({.shuffle_ties = false}), y, p),
              1 / static_cast<double>(at + 1));
  }
}

TEST(RankingTest, TiesAreShuffledBySeed) {
  // The only relevant item has each rank equally often.
  constexpr int64_t kLists = 4000;
  Tensor y = Tensor::zeros({kLists, 4});
  for (int64_t i = 0; i < kLists; ++i) y.mutable_data<float>()[4 * i] = 1;
  const Tensor p = Tensor::zeros({kLists, 4});
  const metrics::MeanReciprocalRank metric({.seed = 7});
  const double first = result(metric, y, p);
  EXPECT_NEAR(first, (1 + 1. / 2 + 1. / 3 + 1. / 4) / 4, .015);
  EXPECT_EQ(result(metric, y, p), first);  // a reset restarts the sequence
  EXPECT_EQ(result(metrics::MeanReciprocalRank({.seed = 7}), y, p), first);
  EXPECT_NE(result(metrics::MeanReciprocalRank({.seed = 8}), y, p), first);
  // The result does not depend on how lists are batched.
  metric->reset_state();
  for (int part = 0; part < 2; ++part) {
    metric->update_state(
        Tensor::from(y.data<float>().subspan(part * kLists * 2, kLists * 2), {kLists / 2, 4}),
        Tensor::zeros({kLists / 2, 4}));
  }
  EXPECT_NEAR(metric->result(), first, 1e-12);
}

TEST(RankingTest, ReplicasShuffleTiesDifferently) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const metrics::MeanReciprocalRank metric({.seed = 7});
  Tensor y = Tensor::zeros({1, 1000});
  y.mutable_data<float>()[0] = 1;
  const auto numbers = strategy.distribute_values_from_function([](int r) { return r; });
  strategy.run([&](int) { metric->update_state(y, Tensor::zeros({1, 1000})); }, numbers);
  const metrics::MeanReciprocalRank alone({.seed = 7});
  EXPECT_NE(metric->result(), result(alone, y, Tensor::zeros({1, 1000})));
}

TEST(RankingTest, IncompatibleArgumentsIsRejected) {
  EXPECT_THROW(metrics::NDCG({.k = 0}), ValueError);
  EXPECT_THROW(metrics::DCG({.k = -5}), ValueError);
  const metrics::NDCG metric({});
  const Tensor deep = Tensor::zeros({2, 3, 4}), flat = Tensor::zeros({2, 3});
  EXPECT_THROW(metric->update_state(deep, deep), ValueError);
  EXPECT_THROW(metric->update_state(Tensor::zeros({2}), flat), ValueError);
  EXPECT_THROW(metric->update_state(flat, flat, Tensor::zeros({3})), ValueError);
}

TEST(RankingTest, ConfigsHaveTheKeysOfKerasRs) {
  EXPECT_EQ(to_json(metrics::PrecisionAtK({.k = 3, .seed = 5})->get_config()),
            R"({"name": "precision_at_k", "dtype": "float32", "k": 3, "shuffle_ties": true, )"
            R"("seed": 5})");
  EXPECT_EQ(metrics::NDCG({})->name(), "ndcg");
}

}  // namespace keel::ranking_test

#include <keel/layers/metrics/accuracy.h>

#include <cmath>

#include <gtest/gtest.h>

namespace keel::accuracy_test {

TEST(AccuracyMetricTest, DependsOnTheShapes) {
  const MetricHandle binary = metrics::get("accuracy");
  binary->update_state(Tensor::from<float>({1, 0}, {2}), Tensor::from<float>({0.9f, 0.8f}, {2, 1}));
  EXPECT_EQ(binary->result(), 0.5);
  const MetricHandle sparse = metrics::get("acc");
  sparse->update_state(Tensor::from<int64_t>({1, 0}, {2, 1}),
                       Tensor::from<float>({0.1f, 0.9f, 0.4f, 0.6f}, {2, 2}));
  EXPECT_EQ(sparse->result(), 0.5);
  const MetricHandle categorical = metrics::get("accuracy");
  categorical->update_state(Tensor::from<float>({0, 1, 1, 0}, {2, 2}),
                            Tensor::from<float>({0.1f, 0.9f, 0.4f, 0.6f}, {2, 2}));
  EXPECT_EQ(categorical->result(), 0.5);
}

TEST(AccuracyMetricTest, TheAccuracyClassComparesValues) {
  const metrics::Accuracy metric({});
  metric->update_state(Tensor::from<int32_t>({1, 2, 3}, {3}), Tensor::from<float>({1, 2, 4}, {3}));
  EXPECT_NEAR(metric->result(), 2 / 3.0, 1e-12);
}

TEST(AccuracyMetricTest, TopKCountsGreaterPredictions) {
  const Tensor p = Tensor::from<float>({.1f, .4f, .3f, .2f, .4f, .4f, .1f, .1f}, {2, 4});
  const auto result = [&](int64_t k, int32_t first, int32_t second) {
    const metrics::SparseTopKCategoricalAccuracy metric({.k = k});
    metric->update_state(Tensor::from<int32_t>({first, second}, {2, 1}), p);
    return metric->result();
  };
  EXPECT_EQ(result(1, 1, 1), 1);  // equal predictions share a rank
  EXPECT_EQ(result(2, 2, 2), .5);
  EXPECT_EQ(result(3, 2, 2), 1);
  EXPECT_EQ(result(9, 0, 7), .5);  // 7 is not a class
  const metrics::TopKCategoricalAccuracy metric({.k = 2});
  metric->update_state(Tensor::from<float>({0, 0, 1, 0, 0, 0, 0, 1}, {2, 4}), p);
  EXPECT_EQ(metric->result(), .5);
}

TEST(AccuracyMetricTest, SortedClassNumbersAreSearchedForTheLabel) {
  const metrics::SparseTopKCategoricalAccuracy metric({.k = 2, .from_sorted_ids = true});
  metric->update_state(Tensor::from<float>({7, 3, 9, 1}, {4, 1}),
                       Tensor::from<float>({7, 1, 2, 0, 3, 8, 4, 5, 9, 6, 2, 0}, {4, 3}));
  EXPECT_EQ(metric->result(), .5) << "9 is the third of its row, 1 is absent";
  EXPECT_TRUE(metric->get_config()["from_sorted_ids"].boolean());
  EXPECT_EQ(metrics::SparseTopKCategoricalAccuracy({})->get_config().find("from_sorted_ids"),
            nullptr);
}

// For logits the decision threshold is 0.
TEST(AccuracyMetricTest, TheThresholdOfLogitsIsZero) {
  const metrics::BinaryAccuracy metric({.threshold = 0});
  metric->update_state(Tensor::from<float>({1, 0, 1, 0}, {4, 1}),
                       Tensor::from<float>({.1F, -.1F, -2, 3}, {4, 1}));
  EXPECT_EQ(metric->result(), .5);
}

TEST(AccuracyMetricTest, InvalidOptionsAndShapesAreRejected) {
  EXPECT_THROW(metrics::BinaryAccuracy({.threshold = NAN}), ValueError);
  EXPECT_THROW(metrics::TopKCategoricalAccuracy({.k = 0}), ValueError);
  EXPECT_THROW(metrics::SparseTopKCategoricalAccuracy({.k = 0}), ValueError);
  const metrics::SparseCategoricalAccuracy sparse({});
  EXPECT_THROW(sparse->update_state(Tensor::zeros({3}), Tensor::zeros({2, 4})), ValueError);
}

TEST(AccuracyMetricTest, NanIsTheGreatestScore) {
  // Like numpy.argmax: the class of the row is 1.
  const Tensor scores = Tensor::from<float>({3, std::nanf(""), 5}, {1, 3});
  const Tensor one = Tensor::from<float>({0, 1, 0}, {1, 3});
  EXPECT_EQ(metrics::categorical_accuracy(one, scores).item<float>(), 1);
}

}  // namespace keel::accuracy_test

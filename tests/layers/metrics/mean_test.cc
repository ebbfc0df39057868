#include <keel/layers/metrics/mean.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/losses/regression.h>
#include <keel/layers/metrics/probabilistic.h>
#include <keel/layers/metrics/regression.h>

namespace keel::mean_test {

TEST(MeanMetricTest, TakesValuesAlone) {
  const metrics::Mean mean({});
  const metrics::Sum sum({});
  for (const Tensor& values : {Tensor::from<float>({1, 2}, {2}), Tensor::from<float>({6}, {1})}) {
    mean->update_state(values);
    sum->update_state(values);
  }
  EXPECT_EQ(mean->result(), 3);
  EXPECT_EQ(sum->result(), 9);
}

TEST(MeanMetricTest, WrapsAnyLoss) {
  const metrics::MeanMetricWrapper metric({.fn = losses::Huber({.delta = 2, .reduction = "sum"})});
  EXPECT_EQ(metric->name(), "huber_loss");
  metric->update_state(Tensor::zeros({2}), Tensor::from<float>({1, 4}, {2}));
  EXPECT_EQ(metric->result(), (.5 + 6) / 2);
  EXPECT_THROW(metrics::MeanMetricWrapper({}), ValueError);
}

TEST(MeanMetricTest, AMaskOfThePredictionsLeavesSamplesOut) {
  const Tensor y = Tensor::zeros({2, 2, 1});
  const Tensor p = Tensor::from<float>({1, 2, 3, 4}, {2, 2, 1})
                       .with_mask(Tensor::from<bool>({true, false, true, false}, {2, 2}));
  const metrics::MeanSquaredError metric({});
  metric->update_state(y, p);
  EXPECT_EQ(metric->result(), 5);
  metric->reset_state();
  metric->update_state(y, p, Tensor::from<float>({1, 3}, {2}));
  EXPECT_EQ(metric->result(), 7);
  metric->reset_state();
  metric->update_state(y, p, Tensor::from<float>({1, 1, 3, 1}, {2, 2}));
  EXPECT_EQ(metric->result(), 7);
  const metrics::MeanMetricWrapper wrapper({.fn = "mse"});
  wrapper->update_state(y, p);
  EXPECT_EQ(wrapper->result(), 5);
}

TEST(MeanMetricTest, IgnoredSamplesAreOutWhereThereAreWeights) {
  const metrics::SparseCategoricalCrossentropy metric({.from_logits = true, .ignore_class = 9});
  const Tensor y = Tensor::from<int32_t>({0, 9}, {2});
  metric->update_state(y, Tensor::zeros({2, 2}), Tensor::from<float>({1, 1}, {2}));
  EXPECT_NEAR(metric->result(), std::log(2.0), 1e-6);
  metric->reset_state();
  metric->update_state(y, Tensor::zeros({2, 2}));
  EXPECT_NEAR(metric->result(), std::log(2.0) / 2, 1e-6);
}

TEST(MeanMetricTest, TheRootIsOfTheMeanOfAllBatches) {
  const metrics::RootMeanSquaredError metric({});
  metric->update_state(Tensor::zeros({1}), Tensor::full<float>({1}, 1));
  metric->update_state(Tensor::zeros({1}), Tensor::full<float>({1}, 7));
  EXPECT_EQ(metric->result(), 5);
}

TEST(MeanMetricTest, CosineSimilarityGrowsWithLikeness) {
  const metrics::CosineSimilarity metric({});
  const Tensor p = Tensor::from<float>({3, 4}, {1, 2});
  metric->update_state(p, p);
  EXPECT_NEAR(metric->result(), 1, 1e-6);
  EXPECT_EQ(metric->get_config().find("axis"), nullptr);
  EXPECT_EQ(metrics::CosineSimilarity({.axis = 0})->get_config()["axis"], Config(0));
}

TEST(MeanMetricTest, CrossentropyChoosesByTheShapes) {
  const MetricHandle metric = metrics::get("crossentropy");
  metric->update_state(Tensor::from<int32_t>({1}, {1}), Tensor::from<float>({.75f, .25f}, {1, 2}));
  EXPECT_NEAR(metric->result(), std::log(4.0), 1e-6);
}

}  // namespace keel::mean_test

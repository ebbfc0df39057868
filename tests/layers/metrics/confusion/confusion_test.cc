// Tests layers/metrics/confusion/operating_point.cc.
#include <keel/layers/metrics/confusion/confusion.h>

#include <gtest/gtest.h>

#include <keel/layers/metrics/confusion/operating_point.h>

namespace keel::confusion_test {

// Scores .1 .4 .35 .8 with labels 0 0 1 1.
void update(const MetricHandle& metric) {
  metric->update_state(Tensor::from<int32_t>({0, 0, 1, 1}, {4}),
                       Tensor::from<float>({.1f, .4f, .35f, .8f}, {4, 1}));
}

std::vector<double> numbers(const MetricHandle& metric) {
  update(metric);
  return metric->result_tensor().to_vector<double>();
}

TEST(ConfusionMetricTest, EachThresholdHasAResultInOrder) {
  EXPECT_EQ(numbers(metrics::Precision({.thresholds = ScalarOrList{.9, .3, 0}})),
            (std::vector<double>{0, 2 / 3.0, .5}));
  EXPECT_EQ(numbers(metrics::Recall({.thresholds = ScalarOrList{.9, .3, .5}})),
            (std::vector<double>{0, 1, .5}));
  const metrics::Recall recall({.thresholds = ScalarOrList{.9, .3, .5}});
  update(recall);
  EXPECT_EQ(recall->result(), .5);  // the mean
}

TEST(ConfusionMetricTest, CountsArePerThreshold) {
  EXPECT_EQ(numbers(metrics::TruePositives({.thresholds = ScalarOrList{.3, .5}})),
            (std::vector<double>{2, 1}));
  EXPECT_EQ(numbers(metrics::FalsePositives({.thresholds = ScalarOrList{.3, .5}})),
            (std::vector<double>{1, 0}));
  EXPECT_EQ(numbers(metrics::TrueNegatives({.thresholds = ScalarOrList{.3, .5}})),
            (std::vector<double>{1, 2}));
  EXPECT_EQ(numbers(metrics::FalseNegatives({.thresholds = ScalarOrList{.3, .5}})),
            (std::vector<double>{0, 1}));
  const metrics::TruePositives one({});
  update(one);
  EXPECT_EQ(one->result_tensor().rank(), 0);
  EXPECT_EQ(one->name(), "true_positives");
}

TEST(ConfusionMetricTest, ValuesAtAThresholdAreNotAboveIt) {
  const Tensor y = Tensor::from<float>({1, 1, 1}, {3});
  const Tensor p = Tensor::from<float>({0, .5f, 1}, {3});
  // Evenly spaced thresholds and others.
  for (const std::vector<double>& thresholds :
       {std::vector<double>{0, .5, 1}, std::vector<double>{0, .5, 1, 1}}) {
    const metrics::TruePositives metric({.thresholds = ScalarOrList(thresholds)});
    metric->update_state(y, p);
    const Tensor found = metric->result_tensor();
    EXPECT_EQ(found.data<double>()[0], 2);
    EXPECT_EQ(found.data<double>()[1], 1);
    EXPECT_EQ(found.data<double>()[2], 0);
  }
}

TEST(ConfusionMetricTest, TopKAndClassSelectColumns) {
  const Tensor y = Tensor::from<float>({1, 0, 1, 0, 1, 0}, {2, 3});
  const Tensor p = Tensor::from<float>({.1f, .2f, .3f, .9f, .9f, .9f}, {2, 3});
  const auto precision = [&](const ThresholdMetricOptions& options) {
    const metrics::Precision metric(options);
    metric->update_state(y, p);
    return metric->result();
  };
  EXPECT_EQ(precision({.top_k = 1}), .5);  // the first of equal predictions is taken
  EXPECT_EQ(precision({.top_k = 2}), .5);
  EXPECT_EQ(precision({.top_k = 3}), .5);
  EXPECT_EQ(precision({.thresholds = .5, .top_k = 1}), 0);
  EXPECT_EQ(precision({.class_id = 1}), 1);
  EXPECT_EQ(precision({.top_k = 2, .class_id = 2}), 1);
}

TEST(ConfusionMetricTest, OperatingPointsMaximizeUnderTheConstraint) {
  const auto result = [](const MetricHandle& metric) {
    update(metric);
    return metric->result();
  };
  EXPECT_EQ(result(metrics::SensitivityAtSpecificity({.specificity = 1})), .5);
  EXPECT_EQ(result(metrics::SensitivityAtSpecificity({.specificity = .5})), 1);
  EXPECT_EQ(result(metrics::SpecificityAtSensitivity({.sensitivity = 1})), .5);
  EXPECT_EQ(result(metrics::PrecisionAtRecall({.recall = 1})), 2 / 3.0);
  EXPECT_EQ(result(metrics::PrecisionAtRecall({.recall = .5})), 1);
  EXPECT_EQ(result(metrics::RecallAtPrecision({.precision = .9})), .5);
  EXPECT_EQ(result(metrics::RecallAtPrecision({.precision = .9, .num_thresholds = 1})), .5);
  // There is no positive label, so precision is 0 at all thresholds.
  const metrics::RecallAtPrecision none({.precision = .9});
  none->update_state(Tensor::from<int32_t>({0}, {1}), Tensor::from<float>({.5f}, {1}));
  EXPECT_EQ(none->result(), 0);
}

TEST(ConfusionMetricTest, InvalidOptionsAreRejected) {
  EXPECT_THROW(metrics::Precision({.thresholds = 2.0}), ValueError);
  EXPECT_THROW(metrics::Precision({.thresholds = ScalarOrList{.5, -1}}), ValueError);
  EXPECT_THROW(metrics::TruePositives({.thresholds = ScalarOrList(std::vector<double>())}),
               ValueError);
  EXPECT_THROW(metrics::PrecisionAtRecall({.recall = 1.5}), ValueError);
  EXPECT_THROW(metrics::RecallAtPrecision({.num_thresholds = 0}), ValueError);
}

TEST(ConfusionMetricTest, ColumnsOutOfRangeAreRejected) {
  const Tensor two = Tensor::zeros({1, 2});
  EXPECT_THROW(metrics::Precision({.class_id = 2})->update_state(two, two), ValueError);
  EXPECT_THROW(metrics::Recall({.top_k = 3})->update_state(two, two), ValueError);
  EXPECT_THROW(metrics::Recall({.top_k = 0})->update_state(two, two), ValueError);
}

TEST(ConfusionMetricTest, ConfigsDistinguishNumbersAndLists) {
  EXPECT_EQ(to_json(metrics::Precision({.thresholds = .25})->get_config()),
            R"({"name": "precision", "dtype": "float32", "thresholds": 0.25, "top_k": null, )"
            R"("class_id": null})");
  EXPECT_EQ(to_json(metrics::Recall({.thresholds = ScalarOrList{.25}})->get_config()["thresholds"]),
            "[0.25]");
  EXPECT_TRUE(metrics::Recall({})->get_config()["thresholds"].is_null());
}

}  // namespace keel::confusion_test

// Tests layers/metrics/class_axis.h.
#include <keel/layers/metrics/segmentation.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::segmentation_metrics_test {

using testing::HasSubstr;
using testing_support::message_of;

Tensor classes(std::vector<int32_t> numbers) {
  const auto n = std::ssize(numbers);
  return Tensor::from(numbers, {n});
}

double result(const MetricHandle& metric, const Tensor& y_true, const Tensor& y_pred,
              const Tensor& weight = {}) {
  metric->update_state(y_true, y_pred, weight);
  return metric->result();
}

// Pairs of classes: (0, 0), (0, 1), (1, 1), (1, 1), (2, 0).
const std::vector<int32_t> kLabels = {0, 0, 1, 1, 2}, kPredictions = {0, 1, 1, 1, 0};

TEST(IoUTest, IsTheMeanRatioOfTheTargets) {
  const auto of = [](std::vector<int64_t> targets) {
    return result(metrics::IoU({.num_classes = 3, .target_class_ids = std::move(targets)}),
                  classes(kLabels), classes(kPredictions));
  };
  EXPECT_NEAR(of({0}), 1 / 3.0, 1e-6);
  EXPECT_NEAR(of({1}), 2 / 3.0, 1e-6);
  EXPECT_NEAR(of({2}), 0, 1e-6);
  EXPECT_NEAR(of({0, 1}), 0.5, 1e-6);
  EXPECT_NEAR(result(metrics::MeanIoU({.num_classes = 3}), classes(kLabels), classes(kPredictions)),
              1 / 3.0, 1e-6);
}

TEST(IoUTest, AbsentClassesDoNotCount) {
  EXPECT_NEAR(result(metrics::MeanIoU({.num_classes = 5}), classes(kLabels), classes(kPredictions)),
              1 / 3.0, 1e-6);
  EXPECT_EQ(metrics::MeanIoU({.num_classes = 5})->result(), 0);
}

TEST(IoUTest, PositionsWithTheIgnoredLabelDoNotCount) {
  EXPECT_NEAR(result(metrics::MeanIoU({.num_classes = 2, .ignore_class = -1}), classes({-1, 0, 1}),
                     classes({7, 0, 1})),
              1, 1e-6);
}

TEST(IoUTest, WeightsAreCutToIntegersUnlessTheDtypeIsFloat) {
  const Tensor weight = Tensor::from<float>({1, 0.5F, 1, 1, 1}, {5});
  EXPECT_NEAR(
      result(metrics::IoU({.num_classes = 3}), classes(kLabels), classes(kPredictions), weight),
      1 / 2.0, 1e-6);
  EXPECT_NEAR(result(metrics::IoU({.dtype = DType::kFloat32, .num_classes = 3}), classes(kLabels),
                     classes(kPredictions), weight),
              1 / 2.5, 1e-6);
}

TEST(IoUTest, ScoresAreReducedAlongTheirAxis) {
  const Tensor labels = Tensor::from<float>({1, 0, 0, 1, 0, 1}, {3, 2});
  const Tensor scores = Tensor::from<float>({.9F, .1F, .6F, .4F, .2F, .8F}, {3, 2});
  // The pairs are (0, 0), (1, 0), (1, 1).
  EXPECT_NEAR(result(metrics::OneHotMeanIoU({.num_classes = 2}), labels, scores), 0.5, 1e-6);
  EXPECT_NEAR(
      result(metrics::OneHotIoU({.num_classes = 2, .target_class_ids = {1}}), labels, scores), 0.5,
      1e-6);
  const Tensor across = Tensor::from<float>({.9F, .6F, .2F, .1F, .4F, .8F}, {2, 3});
  const Tensor true_across = Tensor::from<float>({1, 0, 0, 0, 1, 1}, {2, 3});
  EXPECT_NEAR(result(metrics::OneHotMeanIoU({.num_classes = 2, .axis = 0}), true_across, across,
                     Tensor::from<float>({1, 0, 1}, {3})),
              1, 1e-6);
  EXPECT_NEAR(result(metrics::OneHotMeanIoU({.num_classes = 2, .sparse_y_pred = true}), labels,
                     classes({0, 1, 1})),
              1, 1e-6);
}

TEST(IoUTest, BinaryPredictionsAreComparedWithTheThreshold) {
  const Tensor labels = Tensor::from<float>({0, 1, 1, 0}, {4, 1});
  const Tensor scores = Tensor::from<float>({.1F, .5F, .4F, .3F}, {4, 1});
  // Label 1 occurs twice and is predicted once.
  EXPECT_NEAR(result(metrics::BinaryIoU({.target_class_ids = {1}}), labels, scores), 0.5, 1e-6);
  EXPECT_NEAR(result(metrics::BinaryIoU({}), labels, scores), (0.5 + 2 / 3.0) / 2, 1e-6);
  EXPECT_NEAR(result(metrics::BinaryIoU({.threshold = 0.35}), labels, scores), 1, 1e-6);
}

TEST(IoUTest, RejectsInvalidOptionsAndClasses) {
  EXPECT_THROW(metrics::MeanIoU({.num_classes = 0}), ValueError);
  EXPECT_THROW(metrics::IoU({.num_classes = 2, .target_class_ids = {2}}), ValueError);
  EXPECT_THROW(metrics::BinaryIoU({.target_class_ids = {-1}}), ValueError);
  const metrics::MeanIoU metric({.num_classes = 2});
  EXPECT_THAT(
      message_of<ValueError>([&] { metric->update_state(classes({0, 1}), classes({0, 2})); }),
      HasSubstr("received 2 at position 1"));
  EXPECT_THROW(metric->update_state(classes({0, 1}), classes({0})), ValueError);
  EXPECT_EQ(metric->result(), 0);
}

}  // namespace keel::segmentation_metrics_test

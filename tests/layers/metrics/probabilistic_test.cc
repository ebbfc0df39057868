#include <keel/layers/metrics/probabilistic.h>

#include <cmath>

#include <gtest/gtest.h>

namespace keel::probabilistic_metrics_test {

Tensor labels() { return Tensor::from<float>({1, 0, 0, 1}, {4}); }
Tensor predictions() { return Tensor::from<float>({.75f, .25f, .5f, .5f}, {4}); }
Tensor logits() {
  const auto odds = static_cast<float>(std::log(3));
  return Tensor::from<float>({odds, -odds, 0, 0}, {4});
}

TEST(NormalizedEntropyTest, DividesByTheEntropyOfTheMeanLabel) {
  const double loss = -(2 * std::log(.75) + 2 * std::log(.5)) / 4;
  const metrics::NormalizedEntropy metric({});
  metric->update_state(labels(), predictions());
  EXPECT_NEAR(metric->result(), loss / std::log(2), 1e-6);
  const metrics::NormalizedEntropy by_logits({.from_logits = true});
  by_logits->update_state(labels(), logits());
  EXPECT_NEAR(by_logits->result(), loss / std::log(2), 1e-6);
}

TEST(NormalizedEntropyTest, PredictingTheMeanLabelIsOne) {
  const metrics::NormalizedEntropy metric({});
  metric->update_state(Tensor::from<float>({1, 0, 0, 0}, {4}), Tensor::full<float>({4}, .25f));
  EXPECT_NEAR(metric->result(), 1, 1e-9);
}

TEST(NormalizedEntropyTest, WeightsAndMasksSelectSamples) {
  const metrics::NormalizedEntropy metric({});
  metric->update_state(labels(), predictions(), Tensor::from<float>({1, 3, 0, 0}, {4}));
  const double entropy = -(.25 * std::log(.25) + .75 * std::log(.75));
  EXPECT_NEAR(metric->result(), -std::log(.75) / entropy, 1e-6);
  metric->reset_state();
  const Tensor mask = Tensor::from<bool>({true, true, false, false}, {4});
  metric->update_state(labels(), predictions().with_mask(mask));
  EXPECT_NEAR(metric->result(), -std::log(.75) / std::log(2), 1e-6);
}

TEST(NormalizedEntropyTest, CertainMistakesAreFiniteAndOneClassGivesZero) {
  const metrics::NormalizedEntropy metric({});
  metric->update_state(Tensor::from<float>({1, 0}, {2}), Tensor::from<float>({0, 1}, {2}));
  EXPECT_NEAR(metric->result(), -std::log(1e-7) / std::log(2), 1e-6);
  metric->reset_state();
  metric->update_state(Tensor::full<float>({2}, 1), Tensor::full<float>({2}, .5f));
  EXPECT_EQ(metric->result(), 0);
  const metrics::NormalizedEntropy by_logits({.from_logits = true});
  by_logits->update_state(Tensor::from<float>({1, 0}, {2}), Tensor::from<float>({-800, 0}, {2}));
  EXPECT_NEAR(by_logits->result(), (800 + std::log(2)) / 2 / std::log(2), 1e-6);
}

TEST(CalibrationTest, IsTheMeanPredictionOverTheMeanLabel) {
  const metrics::Calibration metric({});
  metric->update_state(labels(), predictions());
  EXPECT_NEAR(metric->result(), 1, 1e-9);
  metric->update_state(Tensor::zeros({2}), Tensor::full<float>({2}, .5f));
  EXPECT_NEAR(metric->result(), 1.5, 1e-9);
  metric->reset_state();
  metric->update_state(labels(), predictions(), Tensor::from<float>({1, 3, 0, 0}, {4}));
  EXPECT_NEAR(metric->result(), 1.5, 1e-9);
  const metrics::Calibration by_logits({.from_logits = true});
  by_logits->update_state(labels(), logits());
  EXPECT_NEAR(by_logits->result(), 1, 1e-6);
}

TEST(CalibrationTest, WithoutClicksItIsZero) {
  const metrics::Calibration metric({});
  metric->update_state(Tensor::zeros({2}), Tensor::full<float>({2}, .5f));
  EXPECT_EQ(metric->result(), 0);
}

}  // namespace keel::probabilistic_metrics_test

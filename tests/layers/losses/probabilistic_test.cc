#include <keel/layers/losses/probabilistic.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/losses/crossentropy.h>

namespace keel::probabilistic_losses_test {

TEST(ProbabilisticLossTest, KLDivergenceIsZeroBetweenEquals) {
  const Tensor p = Tensor::from<double>({.5, .5, 0}, {1, 3});
  EXPECT_EQ(losses::kl_divergence(p, p).item<double>(), 0);
  const Tensor q = Tensor::from<double>({.25, .75, 0}, {1, 3});
  EXPECT_NEAR(losses::kl_divergence(p, q).item<double>(),
              .5 * std::log(2.0) + .5 * std::log(2.0 / 3), 1e-12);
  const Tensor never = Tensor::from<double>({0, 1, 0}, {1, 3});
  EXPECT_TRUE(std::isfinite(losses::kl_divergence(p, never).item<double>()));
}

TEST(ProbabilisticLossTest, PoissonMatchesItsFormula) {
  const Tensor y = Tensor::from<double>({0, 3}, {1, 2});
  const Tensor p = Tensor::from<double>({1, 2}, {1, 2});
  EXPECT_NEAR(losses::poisson(y, p).item<double>(), (1 + 2 - 3 * std::log(2.0)) / 2, 1e-6);
}

const std::vector<double> kProbabilities = {.75, .25};
Tensor labels() { return Tensor::from<double>({1, 0}, {1, 2}); }
Tensor predictions() { return Tensor::from(kProbabilities, {1, 2}); }

TEST(FocalLossTest, IsTheCrossentropyWithoutFocus) {
  EXPECT_NEAR(
      losses::binary_focal_crossentropy(labels(), predictions(), false, .25, 0).item<double>(),
      losses::binary_crossentropy(labels(), predictions()).item<double>(), 1e-12);
  EXPECT_NEAR(losses::categorical_focal_crossentropy(labels(), predictions(), 1, 0).item<double>(),
              losses::categorical_crossentropy(labels(), predictions()).item<double>(), 1e-12);
}

TEST(FocalLossTest, WeighsByThePartThatIsWrong) {
  EXPECT_NEAR(losses::binary_focal_crossentropy(labels(), predictions()).item<double>(),
              -.0625 * std::log(.75), 1e-12);
  EXPECT_NEAR(losses::binary_focal_crossentropy(labels(), predictions(), true).item<double>(),
              -.0625 * std::log(.75) / 2, 1e-12);
  EXPECT_NEAR(losses::categorical_focal_crossentropy(labels(), predictions()).item<double>(),
              -.25 * .0625 * std::log(.75), 1e-12);
}

TEST(FocalLossTest, AlphaMayBeOfEachClass) {
  const losses::CategoricalFocalCrossentropy loss({.alpha = {2, 5}});
  EXPECT_NEAR(loss->call(labels(), predictions()).item<double>(), -2 * .0625 * std::log(.75),
              1e-12);
  const Config config = losses::serialize(*loss);
  EXPECT_EQ(to_json(config["config"]["alpha"]), "[2.0, 5.0]");
  EXPECT_EQ(losses::serialize(*losses::deserialize(config)), config);
  const losses::CategoricalFocalCrossentropy three({.alpha = {1, 1, 1}});
  EXPECT_THROW(three->call(labels(), predictions()), ValueError);
}

TEST(FocalLossTest, LogitsMeanTheSameAsTheirProbabilities) {
  const Tensor z = Tensor::from<double>({std::log(3.0), -std::log(3.0)}, {1, 2});
  EXPECT_NEAR(losses::binary_focal_crossentropy(labels(), z, false, .25, 2, true).item<double>(),
              losses::binary_focal_crossentropy(labels(), predictions()).item<double>(), 1e-12);
}

TEST(FocalLossTest, BadOptionsAreRefused) {
  EXPECT_THROW(losses::BinaryFocalCrossentropy({.label_smoothing = 2}), ValueError);
  EXPECT_THROW(losses::CategoricalFocalCrossentropy({.label_smoothing = -1}), ValueError);
}

}  // namespace keel::probabilistic_losses_test

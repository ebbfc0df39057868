#include <keel/layers/losses/crossentropy.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>
#include <keel/layers/losses/probabilistic.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::crossentropy_test {

using testing_support::floats;

TEST(CrossentropyLossTest, BinaryIsFiniteAtZeroAndOne) {
  const Tensor y_true = Tensor::from<float>({0, 1}, {2, 1});
  const Tensor y_pred = Tensor::from<float>({1, 0}, {2, 1});
  const auto losses = losses::binary_crossentropy(y_true, y_pred).to_vector<float>();
  EXPECT_NEAR(losses[0], 15.942385, 1e-5);  // -log of 1 minus the float next below 1 - 1e-7
  EXPECT_NEAR(losses[1], 16.118095, 1e-5);  // -log(1e-7)
}

TEST(CrossentropyLossTest, LogitsAreEquivalentToProbabilities) {
  const Tensor y = Tensor::from<double>({0, 1}, {1, 2});
  const Tensor z = Tensor::from<double>({std::log(3.0), 0}, {1, 2});
  EXPECT_NEAR(losses::categorical_crossentropy(y, z, true).item<double>(), std::log(4.0), 1e-12);
  EXPECT_NEAR(losses::binary_crossentropy(y, z, true).item<double>(),
              (std::log(4.0) + std::log(2.0)) / 2, 1e-12);
}

TEST(CrossentropyLossTest, SmoothingMovesLabelsToTheMean) {
  const Tensor y = Tensor::from<double>({1, 0}, {1, 2});
  const Tensor p = Tensor::from<double>({.75, .25}, {1, 2});
  const double wanted = -.9 * std::log(.75) - .1 * std::log(.25);
  EXPECT_NEAR(losses::categorical_crossentropy(y, p, false, .2).item<double>(), wanted, 1e-12);
  EXPECT_NEAR(losses::binary_crossentropy(y, p, false, .2).item<double>(), wanted, 1e-12);
}

TEST(CrossentropyLossTest, ClassesMayBeAtAnotherAxis) {
  const Tensor y = Tensor::from<int64_t>({1, 0, 2}, {1, 3});
  const Tensor p = Tensor::from<double>({.1, .2, .3, .4, .5, .6, .5, .3, .1}, {1, 3, 3});
  const auto losses = losses::sparse_categorical_crossentropy(y, p, false, {}, 1);
  EXPECT_EQ(losses.shape(), Shape({1, 3}));
  EXPECT_NEAR(losses.data<double>()[0], -std::log(.4), 1e-6);
  EXPECT_NEAR(losses.data<double>()[1], -std::log(.2), 1e-6);
  EXPECT_NEAR(losses.data<double>()[2], -std::log(.1), 1e-6);
}

TEST(CrossentropyLossTest, TheMeanOfBinaryLossesMayBeOverAnotherAxis) {
  const Tensor y = floats({1, 0, 1, 1}, {2, 2}), p = floats({0.5, 0.25, 0.25, 0.5}, {2, 2});
  // -log(p) of 1/2, 1/4 and 3/4.
  const double half = 0.6931471806, quarter = 1.3862943611, rest = 0.2876820724;
  testing_support::expect_near(losses::binary_crossentropy(y, p, false, 0, 0).to_vector<float>(),
                               std::vector<double>{(half + quarter) / 2, (rest + half) / 2},
                               {.absolute = 1e-6});
  // The factors of the focal loss are the squares of 1/2, 3/4 and 1/4.
  const losses::BinaryFocalCrossentropy focal({.axis = 0, .reduction = "none"});
  testing_support::expect_near(
      focal->per_sample(y, p).to_vector<float>(),
      std::vector<double>{(half / 4 + quarter * 9 / 16) / 2, (rest / 16 + half / 4) / 2},
      {.absolute = 1e-6});
}

TEST(CrossentropyLossTest, CategoricalFocalTakesItsAxisAndGamma) {
  const Tensor y = floats({1, 0}, {1, 2, 1}), p = floats({1, 1}, {1, 2, 1});
  // Probabilities are scaled to 1/2. alpha (1 - p)^gamma -log(p) with gamma 1.
  const losses::CategoricalFocalCrossentropy focal(
      {.alpha = 0.25, .gamma = 1, .axis = 1, .reduction = "none"});
  testing_support::expect_near(focal->per_sample(y, p).to_vector<float>(),
                               std::vector<double>{0.25 * 0.5 * 0.6931471806}, {.absolute = 1e-6});
}

TEST(CrossentropyLossTest, IgnoredSamplesDoNotCount) {
  const Tensor y = Tensor::from<int64_t>({1, -1, 0}, {3});
  const Tensor z = Tensor::from<float>({0, 0, 7, 9, 0, 0}, {3, 2});
  const losses::SparseCategoricalCrossentropy loss({.from_logits = true, .ignore_class = -1});
  GradientTape tape;
  tape.watch(z);
  const Tensor value = loss->call(y, z);
  EXPECT_FLOAT_EQ(value.item<float>(), std::log(2.0f));
  const Tensor gradient = tape.input_gradient(value, {z})[0].dense();
  EXPECT_EQ(gradient.to_vector<float>(), (std::vector<float>{.25f, -.25f, 0, 0, -.25f, .25f}));
  const Tensor weight = Tensor::from<float>({3, 100, 1}, {3});
  EXPECT_FLOAT_EQ(loss->call(y, z, weight).item<float>(), 2 * std::log(2.0f));
  const Tensor masked = z.with_mask(Tensor::from<bool>({true, true, false}, {3}));
  EXPECT_FLOAT_EQ(loss->call(y, masked).item<float>(), std::log(2.0f));
}

TEST(CrossentropyLossTest, LabelsOutOfRangeAreRejected) {
  const Tensor p = Tensor::full<float>({2, 3}, 0.3f);
  const auto refused = [&](const Tensor& y, std::optional<int64_t> ignored = {}) {
    EXPECT_THROW(losses::sparse_categorical_crossentropy(y, p, false, ignored), ValueError);
  };
  refused(Tensor::from<int32_t>({0, 3}, {2}));
  refused(Tensor::from<int32_t>({0, -1}, {2}));
  refused(Tensor::from<int32_t>({255, -1}, {2}), 255);
  refused(Tensor::from<float>({0, 0.5f}, {2}));
  refused(Tensor::from<int32_t>({0}, {1}));
}

TEST(CrossentropyLossTest, GeneralizedInterpolatesEntropyAndAbsoluteError) {
  const Tensor y = Tensor::from<int32_t>({1, 0}, {2, 1});
  const Tensor p = Tensor::from<double>({.36, .64, 1, 0}, {2, 2});
  const auto losses = losses::categorical_generalized_cross_entropy(y, p, .5);
  EXPECT_NEAR(losses.data<double>()[0], .4, 1e-12);
  EXPECT_NEAR(losses.data<double>()[1], 0, 1e-12);
  EXPECT_NEAR(losses::categorical_generalized_cross_entropy(y, p, 1e-6).data<double>()[0],
              -std::log(.64), 1e-6);
  EXPECT_THROW(losses::categorical_generalized_cross_entropy(y, Tensor::zeros({2}), .5),
               ValueError);
}

TEST(CrossentropyLossTest, InvalidOptionsAreRejected) {
  EXPECT_THROW(losses::CategoricalGeneralizedCrossEntropy({.q = 0}), ValueError);
  EXPECT_THROW(losses::CategoricalGeneralizedCrossEntropy({.q = 1}), ValueError);
  EXPECT_THROW(losses::BinaryCrossentropy({.label_smoothing = 1.5}), ValueError);
  EXPECT_THROW(losses::CategoricalCrossentropy({.label_smoothing = -0.1}), ValueError);
}

}  // namespace keel::crossentropy_test

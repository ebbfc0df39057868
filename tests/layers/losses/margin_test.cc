#include <keel/layers/losses/margin.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>

namespace keel::margin_losses_test {

TEST(HingeLossTest, MeasuresTheWayToTheMargin) {
  const Tensor y = Tensor::from<float>({-1, 1, 1}, {1, 3});
  const Tensor p = Tensor::from<float>({-2, .5f, -1}, {1, 3});
  EXPECT_FLOAT_EQ(losses::hinge(y, p).item<float>(), 2.5f / 3);
  EXPECT_FLOAT_EQ(losses::squared_hinge(y, p).item<float>(), 4.25f / 3);
}

TEST(HingeLossTest, LabelsOfZeroAndOneAreSigns) {
  const Tensor p = Tensor::from<float>({-2, .5f, -1}, {1, 3});
  const Tensor bits = Tensor::from<int32_t>({0, 1, 1}, {1, 3});
  EXPECT_FLOAT_EQ(losses::hinge(bits, p).item<float>(), 2.5f / 3);
  // One label with another value disables the conversion of all labels.
  const Tensor others = Tensor::from<float>({0, 1, 2}, {1, 3});
  EXPECT_FLOAT_EQ(losses::hinge(others, p).item<float>(), 4.5f / 3);
}

TEST(HingeLossTest, CategoricalComparesWithTheGreatestWrongClass) {
  const Tensor y = Tensor::from<float>({0, 1, 0}, {1, 3});
  const Tensor p = Tensor::from<float>({.3f, .9f, .2f}, {1, 3});
  EXPECT_FLOAT_EQ(losses::categorical_hinge(y, p).item<float>(), .4f);
  const Tensor sure = Tensor::from<float>({.3f, 9, .2f}, {1, 3});
  EXPECT_EQ(losses::categorical_hinge(y, sure).item<float>(), 0);
}

// Points on the unit circle at the given angles.
Tensor directions(const std::vector<double>& angles) {
  std::vector<double> out;
  for (const double a : angles) {
    out.push_back(std::cos(a));
    out.push_back(std::sin(a));
  }
  return Tensor::from(out, {std::ssize(angles), 2});
}

const std::vector<double> kAngles = {0, .5, 1.1, 1.9};
Tensor circle_labels() { return Tensor::from<int32_t>({3, 3, 7, 7}, {4}); }

TEST(CircleLossTest, ComparesWithTheRestOfTheBatch) {
  constexpr double kGamma = 2, kMargin = .25;
  const auto distance = [](int i, int j) { return 1 - std::cos(kAngles[i] - kAngles[j]); };
  const auto far = [&](int i, int j) {
    return std::exp(kGamma * (kMargin + distance(i, j)) * (distance(i, j) - kMargin));
  };
  const auto near = [&](int i, int j) {
    const double push = std::max(1 + kMargin - distance(i, j), 0.0);
    return std::exp(kGamma * push * (1 - kMargin - distance(i, j)));
  };
  const auto losses = losses::circle(circle_labels(), directions(kAngles), true, kGamma, kMargin);
  EXPECT_NEAR(losses.data<double>()[0], std::log1p(far(0, 1) * (near(0, 2) + near(0, 3))), 1e-9);
  EXPECT_NEAR(losses.data<double>()[2], std::log1p(far(2, 3) * (near(2, 0) + near(2, 1))), 1e-9);
  const auto with_itself =
      losses::circle(circle_labels(), directions(kAngles), false, kGamma, kMargin);
  EXPECT_NEAR(with_itself.data<double>()[0],
              std::log1p((far(0, 0) + far(0, 1)) * (near(0, 2) + near(0, 3))), 1e-9);
}

TEST(CircleLossTest, HasTheGradientOfFiniteDifferences) {
  const losses::Circle loss({.gamma = 5});
  const Tensor p = directions(kAngles);
  GradientTape tape;
  tape.watch(p);
  const Tensor found = tape.input_gradient(loss->call(circle_labels(), p), {p})[0].dense();
  for (int64_t i = 0; i < p.size(); ++i) {
    Tensor more = p.clone(), less = p.clone();
    more.mutable_data<double>()[i] += 1e-6;
    less.mutable_data<double>()[i] -= 1e-6;
    const double slope = (loss->call(circle_labels(), more).item<double>() -
                          loss->call(circle_labels(), less).item<double>()) /
                         2e-6;
    EXPECT_NEAR(found.data<double>()[i], slope, 1e-5);
  }
}

TEST(CircleLossTest, ExcludesSamplesWithoutAnother) {
  const losses::Circle loss({.gamma = 2});
  const Tensor labels = Tensor::from<int32_t>({3, 3, 7}, {3, 1});
  const Tensor losses = loss->per_sample(labels, directions({0, .5, 1}));
  EXPECT_GT(losses.data<double>()[0], 0);
  EXPECT_EQ(losses.data<double>()[2], 0);
  EXPECT_NEAR(loss->call(labels, directions({0, .5, 1})).item<double>(),
              (losses.data<double>()[0] + losses.data<double>()[1]) / 2, 1e-9);
}

TEST(CircleLossTest, RefusesOtherShapes) {
  const Tensor three = Tensor::from<int32_t>({0, 0, 1}, {3});
  EXPECT_THROW(losses::circle(three, directions({0, 1})), ValueError);
  EXPECT_THROW(losses::circle(three, Tensor::zeros({3})), ValueError);
  EXPECT_THROW(losses::circle(three, Tensor::zeros({3, 2}, DType::kInt32)), TypeError);
  const Tensor symbol = Tensor::symbolic({.shape = {kUnknown, 2}, .dtype = DType::kFloat32});
  EXPECT_THROW(losses::circle(three, symbol), NotImplementedError);
}

}  // namespace keel::margin_losses_test

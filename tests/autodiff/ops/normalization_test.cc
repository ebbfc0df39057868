// Tests autodiff/ops/normalization.cc and framework/kernels/normalization/normalization.cc.
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/normalization_ops.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>

#include "tests/support/expectations.h"

namespace keel::normalization_ops_test {

using ops::Moments;
using ops::NormalizeOptions;
using testing_support::expect_near;
using testing_support::expect_same_bits;

constexpr Moments kAllMoments[] = {Moments::kCentered, Moments::kDifference, Moments::kMeanSquare};

Tensor normal(const Shape& shape, uint64_t seed) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  RandomStream{.seed = seed}.normal(out.mutable_data<float>(), 0, 0.5, 1);
  return out;
}

struct Operands {
  Tensor x, gamma = {}, beta = {};
  std::vector<Tensor> all() const {
    std::vector<Tensor> out = {x};
    if (gamma) out.push_back(gamma);
    if (beta) out.push_back(beta);
    return out;
  }
};

Operands operands(const Shape& x, bool scale = true, bool center = true) {
  Operands out = {.x = normal(x, 1)};
  const Shape channels = {x[2] * x[3]};
  if (scale) out.gamma = normal(channels, 2);
  if (center) out.beta = normal(channels, 3);
  return out;
}

// The same with separate ops and double arithmetic.
Tensor composed(const Operands& in, const NormalizeOptions& options) {
  const auto wide = [](const Tensor& x) { return ops::cast(x, DType::kFloat64); };
  const Tensor x = wide(in.x);
  const Shape weight = {x.dim(2), x.dim(3)};
  const bool centers = options.moments != Moments::kMeanSquare;
  const Tensor centered = centers ? x - ops::mean(x, {1, 3}, true) : x;
  const Tensor variance = ops::mean(ops::square(centered), {1, 3}, true);
  Tensor y = (options.subtract_mean ? centered : x) * ops::rsqrt(variance + options.epsilon);
  if (in.gamma) y = y * ops::reshape(wide(in.gamma), weight);
  if (in.beta) y = y + ops::reshape(wide(in.beta), weight);
  return ops::cast(y, DType::kFloat32);
}

Tensor fused(const Operands& in, const NormalizeOptions& options) {
  return ops::normalize(in.x, in.gamma, in.beta, options).y;
}

// Returns y and the gradients of a weighted sum of y.
template <class Fn>
std::vector<Tensor> results(const Operands& in, const NormalizeOptions& options, const Fn& fn) {
  GradientTape tape;
  for (const Tensor& x : in.all()) tape.watch(x);
  const Tensor y = fn(in, options);
  std::vector<Tensor> out = {y};
  for (const Gradient& g : tape.input_gradient(ops::sum(y * normal(y.shape(), 4)), in.all())) {
    out.push_back(g.dense());
  }
  return out;
}

void expect_formula(const Operands& in, const NormalizeOptions& options) {
  SCOPED_TRACE(testing::Message() << in.x.shape() << " moments "
                                  << static_cast<int>(options.moments) << " subtract_mean "
                                  << options.subtract_mean);
  const std::vector<Tensor> received = results(in, options, fused);
  const std::vector<Tensor> expected = results(in, options, composed);
  for (size_t i = 0; i < expected.size(); ++i) {
    expect_near(received[i], expected[i], {.absolute = 2e-4, .relative = 2e-4});
  }
}

// One element; rows shorter and longer than registers, and than the sums in float; several parts
// of samples; several groups of one step; several blocks of steps; fewer steps than a block has.
const Shape kShapes[] = {{1, 1, 1, 1},     {5, 1, 1, 3},    {70, 1, 1, 33}, {2, 1, 1, 3000},
                         {2000, 1, 1, 9},  {33, 1, 4, 17},  {2, 3, 1, 1},   {3, 50, 4, 5},
                         {1, 3001, 16, 1}, {2, 9, 2, 3000}, {150, 3, 2, 4}, {7, 5, 2, 2000},
                         {40, 1, 1, 3000}};

TEST(NormalizeTest, EqualsItsFormulaAndItsGradients) {
  for (const Shape& shape : kShapes) {
    for (const Moments moments : kAllMoments) {
      expect_formula(operands(shape), {.epsilon = 0.1, .moments = moments});
    }
    expect_formula(operands(shape), {.epsilon = 0.1, .subtract_mean = false});
  }
}

TEST(NormalizeTest, GammaAndBetaAreOptional) {
  for (const Shape& shape : {Shape{6, 1, 2, 5}, Shape{3, 7, 2, 5}}) {
    for (const bool scale : {false, true}) {
      expect_formula(operands(shape, scale, false), {});
      expect_formula(operands(shape, scale, true), {});
    }
  }
}

TEST(NormalizeTest, ComputesTheGradientsOfSomeOperands) {
  for (const Shape& shape : {Shape{6, 1, 2, 5}, Shape{3, 7, 2, 5}}) {
    const Operands in = operands(shape);
    const std::vector<Tensor> all = results(in, {}, fused);
    for (size_t i = 0; i < 3; ++i) {
      GradientTape tape;
      tape.watch(in.all()[i]);
      const Tensor y = fused(in, {});
      const Tensor sum = ops::sum(y * normal(y.shape(), 4));
      expect_same_bits(tape.input_gradient(sum, {in.all()[i]})[0].dense(), all[i + 1]);
    }
  }
}

TEST(NormalizeTest, ReturnsTheMomentsOfEachGroup) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 6, 5, 10, 7, 14}, {1, 4, 2, 1});
  for (const Moments moments : {Moments::kCentered, Moments::kDifference}) {
    const ops::Normalized out = ops::normalize(x, {}, {}, {.moments = moments});
    expect_near(out.mean.to_vector<float>(), {4.0, 8.0}, {.relative = 1e-6});
    expect_near(out.variance.to_vector<float>(), {5.0, 20.0}, {.relative = 1e-6});
  }
  const ops::Normalized out = ops::normalize(x, {}, {}, {.moments = Moments::kMeanSquare});
  expect_near(out.mean.to_vector<float>(), {0.0, 0.0}, {});
  expect_near(out.variance.to_vector<float>(), {21.0, 84.0}, {.relative = 1e-6});
}

// A sum of squares minus the square of the mean would lose all digits.
TEST(NormalizeTest, CenteredMomentsKeepTheirPrecisionForLargeMeans) {
  for (const Shape& shape : {Shape{1, 1, 1, 4000}, Shape{1, 4000, 1, 1}}) {
    std::vector<float> values(4000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 9999.0F : 10001.0F;
    const ops::Normalized out = ops::normalize(Tensor::from(values, shape), {}, {}, {});
    expect_near(out.mean.to_vector<float>(), {10000.0}, {.relative = 1e-7});
    expect_near(out.variance.to_vector<float>(), {1.0}, {.relative = 1e-6});
  }
}

// Sums in float of equal values round in the same direction.
TEST(NormalizeTest, EqualElementsHaveNoVariance) {
  for (const Shape& shape : {Shape{1, 1, 1, 1024}, Shape{1, 1024, 1, 1}}) {
    const Tensor x = Tensor::full(shape, 1234.567F);
    const ops::Normalized out = ops::normalize(x, {}, {}, {});
    expect_near(out.mean.to_vector<float>(), {1234.567F}, {});
    expect_near(out.variance.to_vector<float>(), {0.0}, {.absolute = 1e-9});
    expect_near(out.y, Tensor::zeros(shape), {.absolute = 1e-6});
  }
}

TEST(NormalizeTest, BlocksOfDifferentMeansHaveTheVarianceOfTheWhole) {
  std::vector<double> values(50000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Tensor x = Tensor::from(values, {1, 50000, 1, 1});
  const ops::Normalized out = ops::normalize(x, {}, {}, {});
  EXPECT_NEAR(out.mean.item<double>(), 24999.5, 1e-9);
  EXPECT_NEAR(out.variance.item<double>(), (50000.0 * 50000.0 - 1) / 12, 1e-4);
}

TEST(NormalizeTest, EmptyBatchesHaveZeroGradientsOfTheWeights) {
  for (const Shape& shape : {Shape{0, 1, 2, 3}, Shape{0, 4, 2, 3}, Shape{2, 0, 2, 3}}) {
    const std::vector<Tensor> received = results(operands(shape), {}, fused);
    EXPECT_EQ(received[0].shape(), shape);
    EXPECT_EQ(received[1].shape(), shape);
    for (const size_t weight : {2, 3}) {
      EXPECT_EQ(received[weight].to_vector<float>(), std::vector<float>(6));
    }
  }
  const ops::Normalized none = ops::normalize(Tensor::zeros({1, 0, 2, 1}), {}, {}, {});
  EXPECT_EQ(none.variance.to_vector<float>(), std::vector<float>(2));
}

// Restores the number of workers.
struct Workers {
  const int before = num_workers();
  ~Workers() { set_num_workers(before); }
};

TEST(NormalizeTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const Workers restore;
  for (const Shape& shape : kShapes) {
    for (const Moments moments : kAllMoments) {
      std::vector<std::vector<Tensor>> received;
      for (const int workers : {1, 3}) {
        set_num_workers(workers);
        received.push_back(results(operands(shape), {.moments = moments}, fused));
      }
      for (size_t i = 0; i < received[0].size(); ++i) {
        expect_same_bits(received[0][i], received[1][i]);
      }
    }
  }
}

TEST(NormalizeTest, GradientsCanBeDifferentiatedAgain) {
  for (const Moments moments : kAllMoments) {
    for (const bool subtract_mean : {true, false}) {
      const Operands in = operands({2, 3, 2, 2});
      const NormalizeOptions options = {
          .epsilon = 0.1, .moments = moments, .subtract_mean = subtract_mean};
      const auto second = [&](const auto& fn) {
        GradientTape outer;
        GradientTape inner;
        for (const Tensor& x : in.all()) {
          outer.watch(x);
          inner.watch(x);
        }
        const Tensor y = ops::sum(ops::square(fn(in, options)));
        Tensor slopes = Tensor::zeros({});
        for (const Gradient& g : inner.input_gradient(y, in.all())) {
          slopes = slopes + ops::sum(ops::square(g.dense()));
        }
        return outer.input_gradient(slopes, in.all());
      };
      const std::vector<Gradient> received = second(fused), expected = second(composed);
      for (size_t i = 0; i < received.size(); ++i) {
        expect_near(received[i].dense(), expected[i].dense(), {.absolute = 1e-3, .relative = 1e-3});
      }
    }
  }
}

TEST(NormalizeTest, RejectsOperandsThatDoNotMatch) {
  const Tensor x = Tensor::zeros({2, 1, 2, 3}), six = Tensor::zeros({6});
  EXPECT_THROW(ops::normalize(Tensor::zeros({2, 3}), {}, {}), ValueError);
  EXPECT_THROW(ops::normalize(x, Tensor::zeros({3}), {}), ValueError);
  EXPECT_THROW(ops::normalize(x, six, Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(ops::normalize(x, Tensor::zeros({6}, DType::kFloat64), {}), TypeError);
  EXPECT_THROW(ops::normalize(Tensor::zeros({1, 1, 1, 1}, DType::kInt32), {}, {}), TypeError);
}

}  // namespace keel::normalization_ops_test

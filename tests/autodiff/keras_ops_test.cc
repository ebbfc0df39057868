// Tests functions of keras.ops without records: functions of functions, sparse results, random
// images and gradients of factors. Tests autodiff/keras_ops/transforms.cc.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/keras_ops/core.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/keras_ops/linalg.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/keras_ops/signal.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/autodiff/keras_ops/transforms.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::keras_ops_test {

namespace K = keras_ops;
using testing_support::expect_near;
using testing_support::floats;
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

Tensor doubles(const std::vector<double>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}

std::vector<double> doubles_of(const Tensor& x) {
  return x.cast(DType::kFloat64).to_vector<double>();
}

// f(x, y) = (x y, sin x): the derivative along (a, b) is (a y + x b, a cos x).
TEST(KerasOpsTest, JvpIsTheDerivativeAlongTheTangents) {
  const auto f = [](const std::vector<Tensor>& in) {
    return ops::concat({in[0] * in[1], K::sin(in[0])}, 0);
  };
  const auto [value, slope] =
      K::jvp(f, {doubles({2}, {1}), doubles({3}, {1})}, {doubles({.5}, {1}), doubles({-1}, {1})});
  expect_near(value.to_vector<double>(), {6, std::sin(2)}, {.absolute = 1e-12});
  expect_near(slope.to_vector<double>(), {.5 * 3 - 2, .5 * std::cos(2)}, {.absolute = 1e-12});
  EXPECT_THROW(K::jvp(f, {doubles({2}, {1}), doubles({3}, {1})}, {doubles({2}, {1})}), ValueError);
}

TEST(KerasOpsTest, VectorizeBroadcastsItsArguments) {
  const auto larger = K::vectorize([](const Tensor& a, const Tensor& b) {
    return a.item<float>() > b.item<float>() ? a : b * 10.0;
  });
  const Tensor out = larger(floats({1, 5}, {2, 1}), floats({2, 3, 4}, {3}));
  EXPECT_EQ(out.shape(), Shape({2, 3}));
  EXPECT_EQ(out.to_vector<float>(), (Floats{20, 30, 40, 5, 5, 5}));
}

TEST(KerasOpsTest, ScanTakesALengthInPlaceOfElements) {
  const auto doubled = [](const Tensor& carry) { return std::pair(carry * 2.0, carry + 1.0); };
  const auto [last, all] = K::scan(doubled, floats({1}, {1}), {.length = 3, .unroll = 2});
  EXPECT_EQ(last.to_vector<float>(), Floats{8});
  EXPECT_EQ(all.to_vector<float>(), (Floats{2, 3, 5}));
  const auto add = [](const Tensor& carry, const Tensor& x) {
    return std::pair(carry + x, carry + x);
  };
  const Tensor xs = floats({1, 2, 3}, {3});
  const auto [sum, sums] = K::scan(add, floats({0}, {}), xs, K::ScanOptions{.reverse = true});
  EXPECT_EQ(sums.to_vector<float>(), (Floats{6, 5, 3}));
  EXPECT_THROW(K::scan(add, floats({0}, {}), xs, K::ScanOptions{.length = 2}), ValueError);
}

TEST(KerasOpsTest, SparseResultsHoldTheNonZeroElements) {
  const Tensor ids = Tensor::from<int32_t>({2, -1, 0, 2}, {2, 2});
  const SparseTensor hot = K::one_hot_sparse(ids, 3, 1, DType::kInt32);
  EXPECT_EQ(hot.dense_shape, Shape({2, 3, 2}));
  EXPECT_EQ(hot.indices.to_vector<int64_t>(), (Integers{0, 2, 0, 1, 0, 0, 1, 2, 1}));
  EXPECT_EQ(hot.values.to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 1}));
  const SparseTensor many = K::multi_hot_sparse(Tensor::from<int32_t>({2, 2, 0, 1}, {2, 2}), 4);
  EXPECT_EQ(many.dense_shape, Shape({2, 4}));
  EXPECT_EQ(many.indices.to_vector<int64_t>(), (Integers{0, 2, 1, 0, 1, 1}));
  const SparseTensor counts = K::bincount_sparse(Tensor::from<int32_t>({3, 0, 3}, {3}), {}, 6);
  EXPECT_EQ(counts.dense_shape, Shape({6}));
  EXPECT_EQ(counts.indices.to_vector<int64_t>(), (Integers{0, 3}));
  EXPECT_EQ(counts.values.to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
}

TEST(KerasOpsTest, UniqueSlicesOfAnAxisAreInLexicographicOrder) {
  const Tensor x = floats({3, 1, 3, 1, 2, 1, 0, 5, 0}, {3, 3});
  const K::Unique columns = K::unique(
      x, {.return_index = true, .return_inverse = true, .return_counts = true, .axis = 1});
  EXPECT_EQ(columns.values.shape(), Shape({3, 2}));
  EXPECT_EQ(columns.values.to_vector<float>(), (Floats{1, 3, 2, 1, 5, 0}));
  EXPECT_EQ(columns.index.to_vector<int32_t>(), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(columns.inverse.to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(columns.counts.to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
  const K::Unique padded = K::unique(x, {.axis = 1, .size = 3, .fill_value = 9.0});
  EXPECT_EQ(padded.values.to_vector<float>(), (Floats{1, 3, 9, 2, 1, 9, 5, 0, 9}));
}

TEST(KerasOpsTest, AnEllipsisStandsForAnyAxes) {
  const Tensor x = K::reshape(K::arange(24, {}, 1, DType::kFloat32), {2, 3, 4});
  EXPECT_EQ(K::rearrange(x, "a ... -> ... a").to_vector<float>(),
            K::transpose(x, {1, 2, 0}).to_vector<float>());
  EXPECT_EQ(K::rearrange(x, "... c -> (...) c").shape(), Shape({6, 4}));
  EXPECT_EQ(K::rearrange(x, "a b c ... -> a ... (b c)").shape(), Shape({2, 12}));
  EXPECT_THROW(K::rearrange(x, "a b c d ... -> a"), ValueError);
}

// The rotation by 90 degrees has the values i and -i; the triangular matrix those of its diagonal.
TEST(KerasOpsTest, EigenvaluesMayBeComplex) {
  for (const std::vector<double>& matrix :
       {std::vector<double>{0, -1, 0, 1, 0, 0, 0, 0, 2}, {1, 2, 3, 0, 4, 5, 0, 0, 6}}) {
    const Tensor x = doubles(matrix, {3, 3});
    const auto [values, vectors] = K::eig(x);
    // x v = w v for both parts.
    const auto& [wr, wi] = values;
    const auto& [vr, vi] = vectors;
    expect_near(doubles_of(ops::matmul(x, vr) - (vr * wr - vi * wi)), std::vector<double>(9, 0.0),
                {.absolute = 1e-12});
    expect_near(doubles_of(ops::matmul(x, vi) - (vr * wi + vi * wr)), std::vector<double>(9, 0.0),
                {.absolute = 1e-12});
    expect_near(doubles_of(K::sum(vr * vr + vi * vi, 0)), {1, 1, 1}, {.absolute = 1e-12});
  }
  const auto rotated = K::eig(doubles({0, -1, 1, 0}, {2, 2})).first;
  expect_near(doubles_of(rotated.first), {0, 0}, {.absolute = 1e-12});
  expect_near(doubles_of(K::sort(rotated.second)), {-1, 1}, {.absolute = 1e-12});
}

// Sums that do not depend on the signs of the vectors.
Tensor of_factors(const Tensor& x) {
  const K::Svd found = K::svd(x, false);
  const Tensor weights = doubles({1, 2}, {1, 2});
  const Tensor u = ops::matmul(found.u * weights, found.u, false, true);
  const Tensor v = ops::matmul(ops::transpose(found.vh, {1, 0}) * weights, found.vh);
  return ops::sum(u * K::cos(u + 1.0)) + ops::sum(v * K::sin(v + 2.0)) + ops::sum(found.s);
}

TEST(KerasOpsTest, GradientsOfSingularVectorsAreFiniteDifferences) {
  for (const Shape& shape : {Shape({3, 2}), Shape({2, 3}), Shape({2, 2})}) {
    std::vector<double> values = {.4, -.7, .2, .9, -1.5, .6};
    values.resize(shape.size());
    const Tensor x = doubles(values, shape);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = of_factors(x);
    const std::vector<double> found = doubles_of(tape.input_gradient(y, {x})[0].dense());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = [&](double step) {
        std::vector<double> moved = values;
        moved[i] += step;
        return of_factors(doubles(moved, shape)).item<double>();
      };
      EXPECT_NEAR(found[i], (at(1e-6) - at(-1e-6)) / 2e-6, 1e-7) << shape << " " << i;
    }
  }
}

TEST(KerasOpsTest, ElasticTransformsDependOnTheirSeedOnly) {
  const Tensor images = testing_support::normal({2, 12, 10, 3}, 1);
  const auto moved = [&](K::image::ElasticOptions options) {
    options.sigma = 2;
    return K::image::elastic_transform(images, options).to_vector<float>();
  };
  EXPECT_EQ(moved({.alpha = 0}), images.to_vector<float>());
  EXPECT_EQ(moved({.seed = 3}), moved({.seed = 3}));
  EXPECT_NE(moved({.seed = 3}), moved({.seed = 4}));
  // Nearest pixels are pixels of the image and channel; all channels move alike.
  const Floats nearest = moved({.interpolation = "nearest", .seed = 3});
  const Floats all = images.to_vector<float>();
  for (size_t i = 0; i < nearest.size(); i += 3) {
    const auto pixel = std::ranges::find(all, nearest[i]);
    ASSERT_NE(pixel, all.end());
    EXPECT_EQ(*(pixel + 1), nearest[i + 1]);
    EXPECT_EQ(*(pixel + 2), nearest[i + 2]);
  }
  EXPECT_THROW(moved({.interpolation = "cubic"}), ValueError);
}

TEST(KerasOpsTest, ComplexNumbersArePairs) {
  const K::Complex z = K::polar(floats({2}, {1}), floats({0.5F}, {1}));
  expect_near(K::view_as_real(z).to_vector<float>(),
              {static_cast<float>(2 * std::cos(.5)), static_cast<float>(2 * std::sin(.5))},
              {.absolute = 1e-6});
  EXPECT_THROW(K::view_as_complex(floats({1, 2, 3}, {3})), ValueError);
}

TEST(KerasOpsTest, UniqueListsNanOnceAndLast) {
  const K::Unique found = K::unique(floats({2, NAN, 1, NAN, 2}, {5}), {.return_counts = true});
  EXPECT_EQ(found.counts.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 2}));
  EXPECT_TRUE(std::isnan(found.values.to_vector<float>()[2]));
}

TEST(KerasOpsTest, CoordinatesOfEmptyTensorsHaveOnlyTheFill) {
  const Tensor empty = Tensor::zeros({0, 2}, DType::kFloat32);
  const Tensor at = Tensor::from<float>({0, 1}, {2, 1});
  EXPECT_EQ(keras_ops::image::map_coordinates(empty, at, 1, "constant", 3).to_vector<float>(),
            (std::vector<float>{3}));
  for (const char* mode : {"wrap", "nearest", "mirror", "reflect"}) {
    EXPECT_THAT(testing_support::message_of<ValueError>(
                    [&] { keras_ops::image::map_coordinates(empty, at, 1, mode); }),
                testing::HasSubstr(mode));
    const Tensor none = Tensor::zeros({2, 0}, DType::kFloat32);
    EXPECT_EQ(keras_ops::image::map_coordinates(empty, none, 1, mode).size(), 0);
  }
}

// The sum of the results, weighted by 1, 2, ...
double weighted_eig(const Tensor& x) {
  const auto [values, vectors] = K::eig(x);
  double sum = 0;
  for (const Tensor& part : {values.first, vectors.first}) {
    const std::vector<double> numbers = doubles_of(part);
    for (size_t i = 0; i < numbers.size(); ++i) sum += static_cast<double>(i + 1) * numbers[i];
  }
  return sum;
}

TEST(KerasOpsTest, GradientsOfEigenvectorsAreFiniteDifferences) {
  const std::vector<double> numbers = {4, 1, .5, 0.3, 2, -.4, .2, .7, -1};
  const Tensor x = doubles(numbers, {3, 3});
  GradientTape tape;
  tape.watch(x);
  const auto [values, vectors] = K::eig(x);
  const Tensor loss = ops::sum(values.first * doubles({1, 2, 3}, {3})) +
                      ops::sum(vectors.first * doubles({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}));
  const std::vector<double> gradient = doubles_of(tape.input_gradient(loss, {x})[0].dense());
  for (size_t i = 0; i < numbers.size(); ++i) {
    constexpr double kStep = 1e-5;
    std::vector<double> less = numbers, more = numbers;
    less[i] -= kStep;
    more[i] += kStep;
    const double change = weighted_eig(doubles(more, {3, 3})) - weighted_eig(doubles(less, {3, 3}));
    EXPECT_NEAR(gradient[i], change / (2 * kStep), 1e-6) << i;
  }
}

// For more rows than columns, fewer, and a matrix of rank 1, along which it is moved.
TEST(KerasOpsTest, GradientsOfPseudoinversesAreFiniteDifferences) {
  const auto weights = [](const Shape& shape) {
    std::vector<double> out;
    for (int64_t i = 0; i < shape.size(); ++i) out.push_back(1 + static_cast<double>(i * i % 5));
    return doubles(out, shape);
  };
  const auto check = [&](const std::vector<double>& numbers, const Shape& shape,
                         const std::vector<double>& direction) {
    const Tensor x = doubles(numbers, shape);
    GradientTape tape;
    tape.watch(x);
    const Tensor loss = ops::sum(K::pinv(x) * weights({shape[1], shape[0]}));
    const std::vector<double> gradient = doubles_of(tape.input_gradient(loss, {x})[0].dense());
    double slope = 0, change = 0;
    for (const double step : {-1e-5, 1e-5}) {
      std::vector<double> moved = numbers;
      for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
      const Tensor y = ops::sum(K::pinv(doubles(moved, shape)) * weights({shape[1], shape[0]}));
      change += doubles_of(y)[0] / (2 * step);
    }
    for (size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * direction[i];
    EXPECT_NEAR(slope, change, 1e-5 * (1 + std::abs(change)));
  };
  check({1, 2, -1, .5, 3, 1}, {3, 2}, {.3, -1, .2, .7, 0, 1});
  check({1, 2, -1, .5, 3, 1}, {2, 3}, {.3, -1, .2, .7, 0, 1});
  // (1, 2)^T (1, 3), whose first factor moves along (1, -1).
  check({1, 3, 2, 6}, {2, 2}, {1, 3, -1, -3});
}

TEST(KerasOpsTest, LeastSquaresHaveGradientsOfBothOperands) {
  const Tensor a = doubles({2, 0, 0, 4}, {2, 2}), b = doubles({6, 8}, {2});
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const std::vector<Gradient> gradients = tape.input_gradient(ops::sum(K::lstsq(a, b)), {a, b});
  // x = a^-1 b = (3, 2): dx = a^-1 (db - da x).
  expect_near(doubles_of(gradients[0].dense()), {-1.5, -1, -.75, -.5}, {.absolute = 1e-9});
  expect_near(doubles_of(gradients[1].dense()), {.5, .25}, {.absolute = 1e-9});
}

TEST(KerasOpsTest, ComplexEigenvaluesHaveNoGradient) {
  const Tensor rotation = doubles({0, -1, 1, 0}, {2, 2});
  GradientTape tape;
  tape.watch(rotation);
  const Tensor loss = ops::sum(K::eig(rotation).first.first);
  EXPECT_THAT(testing_support::message_of<NotImplementedError>(
                  [&] { tape.input_gradient(loss, {rotation}); }),
              testing::HasSubstr("real eigenvalues"));
}

TEST(KerasOpsTest, AnglesMayHaveAnyMagnitude) {
  // sin(1e22) and cos(1e22) are known from the literature; the C library computes the others.
  const Tensor x = doubles({1e22, static_cast<double>(1e30F)}, {2});
  expect_near(K::sin(x), doubles({-0.8522008497671888, std::sin(static_cast<double>(1e30F))}, {2}),
              {.absolute = 1e-15});
  expect_near(K::cos(x), doubles({0.5232147853951389, std::cos(static_cast<double>(1e30F))}, {2}),
              {.absolute = 1e-15});
  EXPECT_NEAR(K::sin(floats({1e30F}, {1})).item<float>(), std::sin(1e30F), 1e-7);
}

}  // namespace keel::keras_ops_test

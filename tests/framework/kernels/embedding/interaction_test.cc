#include <keel/framework/kernels/embedding/interaction.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace keel::kernels::interaction_test {

// Features of shape [batch, dim], in separate arrays or side by side.
template <class T>
struct Features {
  Features(const FeaturePairs& pairs, int64_t batch, bool stacked, uint64_t seed)
      : values(pairs.features * batch * pairs.dim), dim(pairs.dim) {
    std::mt19937_64 generator(seed);
    std::uniform_real_distribution<double> numbers(-1, 1);
    for (T& v : values) v = static_cast<T>(numbers(generator));
    stride = stacked ? pairs.features * dim : dim;
    for (int64_t f = 0; f < pairs.features; ++f) {
      T* const at = values.data() + (stacked ? f * dim : f * batch * dim);
      first.push_back(at);
      first_const.push_back(at);
    }
  }

  T at(int64_t f, int64_t b, int64_t d) const { return first[f][b * stride + d]; }
  FeatureRows<const T> rows() const { return {.first = first_const, .stride = stride}; }
  FeatureRows<T> rows_to_write() const { return {.first = first, .stride = stride}; }

  std::vector<T> values;
  int64_t dim, stride = 0;
  std::vector<T*> first;
  std::vector<const T*> first_const;
};

template <class T>
double dot(const Features<T>& x, int64_t i, const Features<T>& y, int64_t j, int64_t b) {
  double sum = 0;
  for (int64_t d = 0; d < x.dim; ++d) sum += double{x.at(i, b, d)} * double{y.at(j, b, d)};
  return sum;
}

constexpr int64_t kBatch = 5;

template <class T>
void expect_right(const FeaturePairs& pairs, bool stacked) {
  SCOPED_TRACE(testing::Message() << pairs.features << " of " << pairs.dim << ", self "
                                  << pairs.self << ", stacked " << stacked);
  const Features<T> x(pairs, kBatch, stacked, 1), y(pairs, kBatch, stacked, 2);
  const Features<T> dx(pairs, kBatch, stacked, 3);
  const double near = sizeof(T) == 4 ? 1e-4 : 1e-12;
  const int64_t total = kBatch * pairs.count();
  constexpr T kUntouched = 12345;
  std::vector<T> products(total + 1, kUntouched), along(total + 1, kUntouched);
  dot_pairs(pairs, kBatch, x.rows(), products.data());
  dot_pairs_along(pairs, kBatch, x.rows(), y.rows(), along.data());
  dot_pairs_back(pairs, kBatch, x.rows(), products.data(), dx.rows_to_write());
  EXPECT_EQ(products.back(), kUntouched);
  EXPECT_EQ(along.back(), kUntouched);
  int64_t at = 0;
  for (int64_t b = 0; b < kBatch; ++b) {
    std::vector<double> back(pairs.features * pairs.dim);
    for (int64_t i = 0; i < pairs.features; ++i) {
      for (int64_t j = 0; j < pairs.partners(i); ++j, ++at) {
        ASSERT_NEAR(products[at], dot(x, i, x, j, b), near) << i << ", " << j;
        ASSERT_NEAR(along[at], dot(x, i, y, j, b) + dot(y, i, x, j, b), near) << i << ", " << j;
        for (int64_t d = 0; d < pairs.dim; ++d) {
          back[i * pairs.dim + d] += double{products[at]} * double{x.at(j, b, d)};
          back[j * pairs.dim + d] += double{products[at]} * double{x.at(i, b, d)};
        }
      }
    }
    for (int64_t i = 0; i < pairs.features; ++i) {
      for (int64_t d = 0; d < pairs.dim; ++d) {
        ASSERT_NEAR(dx.at(i, b, d), back[i * pairs.dim + d], 100 * near) << i << ", " << d;
      }
    }
  }
}

TEST(DotPairsTest, AgreeWithTheSumsForAllSizes) {
  for (const bool self : {false, true}) {
    for (const int64_t features : {1, 2, 3, 9, 16, 17, 18, 27, 33, 40}) {
      for (const int64_t dim : {1, 8, 13, 16, 32, 64, 112, 128}) {
        expect_right<float>({.features = features, .dim = dim, .self = self}, false);
      }
    }
  }
}

TEST(DotPairsTest, AcceptStackedFeatures) {
  expect_right<float>({.features = 27, .dim = 16}, true);
  expect_right<float>({.features = 5, .dim = 3, .self = true}, true);
}

TEST(DotPairsTest, SupportFloat64) {
  for (const bool self : {false, true}) {
    expect_right<double>({.features = 27, .dim = 16, .self = self}, false);
    expect_right<double>({.features = 10, .dim = 21, .self = self}, true);
  }
}

TEST(DotPairsTest, ASampleDependsOnItselfOnly) {
  const FeaturePairs pairs = {.features = 27, .dim = 16};
  const int64_t batch = 500;
  const Features<float> x(pairs, batch, true, 1);
  std::vector<float> all(batch * pairs.count()), one(pairs.count());
  dot_pairs(pairs, batch, x.rows(), all.data());
  for (const int64_t b : {0, 7, 180, 499}) {
    std::vector<const float*> first;
    for (const float* f : x.first) first.push_back(f + b * x.stride);
    dot_pairs(pairs, 1, FeatureRows<const float>{.first = first, .stride = x.stride}, one.data());
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + b * pairs.count())) << b;
  }
}

TEST(DotPairsTest, UnrequestedGradientsAreSkipped) {
  const FeaturePairs pairs = {.features = 3, .dim = 4};
  const Features<float> x(pairs, kBatch, false, 1), all(pairs, kBatch, false, 2),
      some(pairs, kBatch, false, 3);
  const std::vector<float> dy(kBatch * pairs.count(), 1);
  dot_pairs_back(pairs, kBatch, x.rows(), dy.data(), all.rows_to_write());
  std::vector<float*> first = some.first;
  first[1] = nullptr;
  const std::vector<float> before = some.values;
  dot_pairs_back(pairs, kBatch, x.rows(), dy.data(),
                 FeatureRows<float>{.first = first, .stride = some.stride});
  const int64_t n = kBatch * pairs.dim;
  for (int64_t i = 0; i < 3 * n; ++i) {
    EXPECT_EQ(some.values[i], i / n == 1 ? before[i] : all.values[i]) << i;
  }
}

TEST(DotPairsTest, FeaturesOfNoElementsHaveProductsOfZero) {
  const FeaturePairs pairs = {.features = 40, .dim = 0, .self = true};
  const std::vector<const float*> nowhere(40, nullptr);
  const std::vector<float*> nowhere_to_write(40, nullptr);
  const FeatureRows<const float> x = {.first = nowhere};
  const std::vector<float> zeros(2 * pairs.count());
  std::vector<float> products(zeros.size(), 1), along(zeros.size(), 1), one(pairs.count(), 1);
  dot_pairs(pairs, 2, x, products.data());
  dot_pairs_along(pairs, 2, x, x, along.data());
  dot_pairs_back(pairs, 2, x, products.data(), FeatureRows<float>{.first = nowhere_to_write});
  dot_pairs(pairs, nowhere, nullptr, one.data());
  EXPECT_EQ(products, zeros);
  EXPECT_EQ(along, zeros);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), zeros.begin()));
}

TEST(DotPairsTest, AnInfiniteFeatureDoesNotSpoilOtherPairs) {
  const FeaturePairs pairs = {.features = 2, .dim = 1};
  const Features<float> x(pairs, 1, false, 1), dx(pairs, 1, false, 2);
  *x.first[0] = std::numeric_limits<float>::infinity();
  *x.first[1] = 3;
  const float dy = 2;
  dot_pairs_back(pairs, 1, x.rows(), &dy, dx.rows_to_write());
  EXPECT_EQ(*dx.first[0], 6);
  EXPECT_TRUE(std::isinf(*dx.first[1]));
}

}  // namespace keel::kernels::interaction_test

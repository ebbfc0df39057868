#include <keel/layers/regularizers.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace keel::regularizers_test {

using testing_support::floats;

float penalty(const Regularizer& regularizer, const Tensor& x) {
  return (*regularizer)(x).item<float>();
}

TEST(RegularizersTest, AddAbsoluteValuesAndSquares) {
  const Tensor x = floats({1, -2});
  EXPECT_FLOAT_EQ(penalty(regularizers::l1(0.5), x), 1.5F);
  EXPECT_FLOAT_EQ(penalty(regularizers::l2(0.5), x), 2.5F);
  EXPECT_FLOAT_EQ(penalty(regularizers::l1_l2(1, 0.1), x), 3.5F);
}

TEST(RegularizersTest, OrthogonalAveragesTheCosinesOfPairs) {
  const Tensor x = floats({1, 0, 1, 1}, {2, 2});
  const float cosine = std::sqrt(0.5F);
  EXPECT_FLOAT_EQ(penalty(regularizers::orthogonal(0.1), x), 0.1F * cosine);
  EXPECT_FLOAT_EQ(penalty(regularizers::orthogonal(0.1, "columns"), x), 0.1F * cosine);
  EXPECT_FLOAT_EQ(penalty(regularizers::orthogonal(), floats({2, 0, 0, 3}, {2, 2})), 0);
}

TEST(RegularizersTest, InvalidParametersAndRanksAreErrors) {
  EXPECT_THROW(regularizers::l1(std::numeric_limits<double>::quiet_NaN()), ValueError);
  EXPECT_THROW(regularizers::l2(std::numeric_limits<double>::infinity()), ValueError);
  EXPECT_THROW(regularizers::orthogonal(0.01, "diagonals"), ValueError);
  EXPECT_THROW(penalty(regularizers::orthogonal(), floats({1, 2})), ValueError);
}

TEST(RegularizersTest, NamesMakeRegularizersWithDefaultFactors) {
  EXPECT_FLOAT_EQ(penalty("l1", floats({1, -2})), 0.03F);
  EXPECT_FLOAT_EQ(penalty("l2", floats({1, -2})), 0.05F);
  for (const char* name : {"l1", "l2", "l1_l2", "orthogonal_regularizer"}) {
    const Regularizer regularizer = name;
    Regularizer copy;
    decode(encode(regularizer), copy);
    EXPECT_EQ(encode(copy), encode(regularizer)) << name;
  }
}

}  // namespace keel::regularizers_test

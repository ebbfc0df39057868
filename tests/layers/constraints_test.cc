#include <gtest/gtest.h>

#include <keel/layers/regularizers.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::constraints_test {

using testing_support::expect_near;
using testing_support::floats;
using testing_support::Tolerance;

constexpr Tolerance kTolerance = {.absolute = 1e-6, .relative = 1e-6};

// Columns of norm 5 and 1.
Tensor kernel() { return floats({3, 0, 4, -1}, {2, 2}); }

TEST(ConstraintsTest, NonNegReplacesNegativeWeightsByZero) {
  expect_near((*constraints::non_neg())(kernel()), floats({3, 0, 4, 0}, {2, 2}), kTolerance);
}

TEST(ConstraintsTest, UnitNormScalesEachColumnOrRow) {
  expect_near((*constraints::unit_norm())(kernel()), floats({0.6F, 0, 0.8F, -1}, {2, 2}),
              kTolerance);
  expect_near((*constraints::unit_norm(1))(floats({3, 4, 0, 2}, {2, 2})),
              floats({0.6F, 0.8F, 0, 1}, {2, 2}), kTolerance);
}

TEST(ConstraintsTest, MaxNormKeepsSmallNorms) {
  expect_near((*constraints::max_norm(2))(kernel()), floats({1.2F, 0, 1.6F, -1}, {2, 2}),
              kTolerance);
}

TEST(ConstraintsTest, MinMaxNormMovesNormsByTheRate) {
  // The norm 5 moves to 2, the norm 1 to 1.5; with rate 0.5, both move half of the way.
  const Tensor whole = (*constraints::min_max_norm(1.5, 2))(kernel());
  expect_near(whole, floats({1.2F, 0, 1.6F, -1.5F}, {2, 2}), kTolerance);
  const Tensor half = (*constraints::min_max_norm(1.5, 2, 0.5))(kernel());
  expect_near(half, floats({2.1F, 0, 2.8F, -1.25F}, {2, 2}), kTolerance);
}

TEST(ConstraintsTest, NamesMakeConstraintsWithDefaultParameters) {
  for (const char* name : {"max_norm", "min_max_norm", "non_neg", "unit_norm"}) {
    const Constraint constraint = name;
    Constraint copy;
    decode(encode(constraint), copy);
    EXPECT_EQ(encode(copy), encode(constraint)) << name;
  }
  EXPECT_THROW(Constraint("norm"), ValueError);
}

}  // namespace keel::constraints_test

#include <keel/framework/internal/large_angles.h>

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace keel::large_angles_test {

TEST(LargeAnglesTest, MatchKnownValues) {
  // From the literature on argument reduction, to 16 digits.
  EXPECT_NEAR(math::full_range_sin(1e22), -0.8522008497671888, 1e-15);
  EXPECT_NEAR(math::full_range_cos(1e22), 0.5232147853951389, 1e-15);
  // The double closest to a multiple of pi / 2: its cosine is -4.687165924254624e-19.
  EXPECT_NEAR(math::full_range_cos(6381956970095103 * 0x1p797) / -4.687165924254624e-19, 1, 1e-14);
}

// The C library, whose errors are below 1 unit in the last place, is the reference.
TEST(LargeAnglesTest, AreWithinTwoUnitsInTheLastPlace) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const int exponent = static_cast<int>(random() % 979) + 45;
    const double x = std::ldexp(1 + static_cast<double>(random() >> 12U) * 0x1p-52, exponent) *
                     (i % 2 == 0 ? 1 : -1);
    const auto units = [](double found, double expected) {
      const double size = std::abs(expected);
      return std::abs(found - expected) / (std::nextafter(size, 2.0) - size);
    };
    ASSERT_LE(units(math::full_range_sin(x), std::sin(x)), 2) << x;
    ASSERT_LE(units(math::full_range_cos(x), std::cos(x)), 2) << x;
  }
}

TEST(LargeAnglesTest, ContinueTheFunctionsOfSmallAngles) {
  for (const double x : {0.0, -0.5, 1e6, -0x1.fffffp44}) {
    EXPECT_EQ(math::full_range_sin(x), math::sin(x));
    EXPECT_EQ(math::full_range_cos(x), math::cos(x));
  }
  EXPECT_NEAR(math::sin_of_large(-0x1p45), std::sin(-0x1p45), 1e-15);
}

TEST(LargeAnglesTest, InfiniteAnglesGiveNan) {
  for (const double x :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(math::full_range_sin(x)));
    EXPECT_TRUE(std::isnan(math::full_range_cos(x)));
  }
}

}  // namespace keel::large_angles_test

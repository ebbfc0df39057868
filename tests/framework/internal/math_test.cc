#include <keel/framework/internal/math.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace keel::math_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A function, the C library's long double version of it, which has 11 or 60 more bits, and the
// arguments to test.
struct Case {
  const char* name;
  double (*function)(double);
  long double (*reference)(long double);
  double low, high;  // range of the arguments or of their binary logarithms
  bool logarithmic;
  double most;  // maximum error in units in the last place
};

double unit_in_last_place(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 53, -1074));
}

class MathTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Functions, MathTest,
    testing::Values(Case{"Exp", math::exp, std::exp, -745, 709.7, false, 1},
                    Case{"ExpOfSmall", math::exp, std::exp, -60, 3, true, 1},
                    Case{"Expm1", math::expm1, std::expm1, -2, 2, false, 2},
                    Case{"Expm1OfSmall", math::expm1, std::expm1, -60, 9, true, 2},
                    Case{"Log", math::log, std::log, -1074, 1023.9, true, 1},
                    Case{"LogNearOne", math::log, std::log, 0.4, 2.5, false, 1},
                    Case{"Log1p", math::log1p, std::log1p, -0.999, 1, false, 2},
                    Case{"Log1pOfSmallAndLarge", math::log1p, std::log1p, -60, 60, true, 2},
                    Case{"Tanh", math::tanh, std::tanh, -40, 5, true, 3},
                    Case{"Erf", math::erf, std::erf, -40, 3, true, 2},
                    Case{"ErfOfNegative", math::erf, std::erf, -7, 0, false, 2},
                    Case{"Exp2", math::exp2, std::exp2, -1074, 1023.9, false, 2},
                    Case{"Log2", math::log2, std::log2, -1074, 1023.9, true, 2},
                    Case{"Log2NearOne", math::log2, std::log2, 0.5, 2, false, 2},
                    Case{"Sin", math::sin, std::sin, -10, 10, false, 2},
                    Case{"SinOfLarge", math::sin, std::sin, -30, 40, true, 2},
                    Case{"Cos", math::cos, std::cos, -10, 10, false, 2},
                    Case{"CosOfLarge", math::cos, std::cos, -30, 40, true, 2},
                    Case{"Sigmoid", math::sigmoid,
                         [](long double x) { return 1 / (1 + std::exp(-x)); }, -700, 40, false, 3},
                    Case{"Softplus", math::softplus,
                         [](long double x) {
                           return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x)));
                         },
                         -700, 40, false, 3}),
    [](const auto& tried) { return tried.param.name; });

TEST_P(MathTest, ErrorsAreWithinTheDocumentedBounds) {
  const Case& c = GetParam();
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> between(c.low, c.high);
  for (int i = 0; i < 20'000; ++i) {
    const double drawn = between(random);
    const double x = c.logarithmic ? std::exp2(drawn) : drawn;
    const long double expected = c.reference(x);
    const double near = c.most * unit_in_last_place(static_cast<double>(expected));
    const auto error = static_cast<double>(std::abs(c.function(x) - expected));
    ASSERT_LE(error, near) << "at " << x;
  }
}

// NaN, infinities, signed zeros and the ends of the range follow C's Annex F.
TEST_P(MathTest, SpecialArgumentsMatchTheStandard) {
  const Case& c = GetParam();
  const std::string name = c.name;
  if (name.starts_with("Sin") || name.starts_with("Cos")) {
    EXPECT_TRUE(std::isnan(c.function(kInfinity)));
    EXPECT_TRUE(std::isnan(c.function(kNaN)));
    return;
  }
  for (const double x : {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, kInfinity, -kInfinity, kNaN, 1e308,
                         -1e308, 5e-324, 1e-310, -1e-310, 1e4, -1e4}) {
    if (std::abs(x) >= 1e4 && x < 0 && name == "Softplus")
      continue;  // not compared with the reference
    const double expected = static_cast<double>(c.reference(x)), found = c.function(x);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << x;
      continue;
    }
    EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x;
    if (std::isinf(expected) || expected == 0) {
      EXPECT_EQ(found, expected) << x;
    } else {
      EXPECT_NEAR(found, expected, c.most * unit_in_last_place(expected)) << x;
    }
  }
}

TEST(PowTest, ErrorsAreWithinTheDocumentedBounds) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> between(-300, 300);
  for (const double y : {-0.5, 0.3, 1.0, 2.0, 3.0, 17.5, -31.0, 100.7, 1e4, 1e-3}) {
    for (int i = 0; i < 5'000; ++i) {
      const double x = std::exp2(between(random) / std::max(1.0, std::abs(y)));
      const long double expected = std::pow(static_cast<long double>(x), y);
      const auto error = static_cast<double>(std::abs(math::pow(x, y) - expected));
      ASSERT_LE(error, 3 * unit_in_last_place(static_cast<double>(expected))) << x << "^" << y;
    }
  }
  EXPECT_EQ(math::pow(0.999, 1.0), 0.999);  // the first step of Adam
}

TEST(PowTest, SpecialArgumentsMatchTheStandard) {
  const std::vector<double> all = {0.0,  -0.0,  1,      -1,     0.5,       -0.5,
                                   2,    -2,    3,      -3,     kInfinity, -kInfinity,
                                   kNaN, 1e308, -1e308, 5e-324, 0x1p53,    0x1.00000000000008p54,
                                   2.5,  -2.5,  -7};
  for (const double x : all) {
    for (const double y : all) {
      const double expected = std::pow(x, y), found = math::pow(x, y);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << x << "^" << y;
      } else {
        EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << "^" << y;
        if (std::isinf(expected) || expected == 0) {
          EXPECT_EQ(found, expected) << x << "^" << y;
        } else {
          EXPECT_NEAR(found, expected, 2 * unit_in_last_place(expected)) << x << "^" << y;
        }
      }
    }
  }
}

TEST(MathExactnessTest, PowersOfTwoAreExact) {
  for (int n = -1074; n <= 1023; ++n) {
    EXPECT_EQ(math::exp2(n), std::ldexp(1.0, n));
    EXPECT_EQ(math::log2(std::ldexp(1.0, n)), n);
  }
}

// Returns the 64-bit FNV-1a hash of the bits of the results.
template <class T, class Fn>
uint64_t hash_of(const Fn& function, double low, double high) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  uint64_t hash = 0xcbf29ce484222325U;
  for (int i = 0; i <= 4096; ++i) {
    const auto x = static_cast<T>(low + (high - low) * i / 4096);
    hash = (hash ^ std::bit_cast<Bits>(function(x))) * 0x100000001b3U;
  }
  return hash;
}

// The hashes were computed on a processor of 2022 with GCC 12. All other machines must give the
// same bits.
#if defined(__FMA__) || defined(__aarch64__)
TEST(MathExactnessTest, BitsAreTheSameOnEveryMachine) {
  struct Hashes {
    const char* name;
    double (*of_double)(double);
    float (*of_float)(float);
    double low, high;
    uint64_t expected, expected_of_float;
  };
  const std::vector<Hashes> all = {
      {"exp", math::exp, math::exp, -110, 95, 0xc0d966b7db81e782U, 0x69861242509965e0U},
      {"expm1", math::expm1, math::expm1, -20, 20, 0xfde7bcaedf49e66dU, 0x39447e863f734de6U},
      {"log", math::log, math::log, 0, 1e6, 0xa29c04ec55ce921U, 0x26dc5a5fb7c288b7U},
      {"log1p", math::log1p, math::log1p, -1, 10, 0xd410ad40871073afU, 0x6f486431470e859dU},
      {"tanh", math::tanh, math::tanh, -10, 10, 0xdeaa8beea646494fU, 0x46082b4821f6add7U},
      {"sigmoid", math::sigmoid, math::sigmoid, -100, 30, 0x794b06d135810f9U, 0xee2dd8ec7610ba42U},
      {"softplus", math::softplus, math::softplus, -100, 30, 0xe881594d6bcc235eU,
       0xc6d17baa2fd4651eU},
      {"erf", math::erf, math::erf, -7, 7, 0x631da32c169bcf7fU, 0xdc174e72459068a7U},
  };
  for (const Hashes& h : all) {
    EXPECT_EQ(hash_of<double>(h.of_double, h.low, h.high), h.expected) << h.name;
    EXPECT_EQ(hash_of<float>(h.of_float, h.low, h.high), h.expected_of_float) << h.name;
  }
}
#endif

}  // namespace keel::math_test

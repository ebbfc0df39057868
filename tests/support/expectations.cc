#include "tests/support/expectations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include <gtest/gtest.h>

namespace keel::testing_support {
namespace {

template <class T, class U>
void compare(std::span<const T> received, std::span<const U> expected, const Tolerance& tolerance) {
  ASSERT_EQ(received.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = expected[i];
    const double limit = std::max(tolerance.absolute, tolerance.relative * std::abs(value));
    EXPECT_NEAR(received[i], value, limit) << "element " << i;
  }
}

}  // namespace

template <class T>
void expect_near(const std::vector<T>& received, const std::vector<T>& expected,
                 const Tolerance& tolerance) {
  compare<T, T>(received, expected, tolerance);
}
template void expect_near(const std::vector<float>&, const std::vector<float>&, const Tolerance&);
template void expect_near(const std::vector<double>&, const std::vector<double>&, const Tolerance&);

void expect_near(const std::vector<float>& received, const std::vector<double>& expected,
                 const Tolerance& tolerance) {
  compare<float, double>(received, expected, tolerance);
}

void expect_near(const Tensor& received, const Tensor& expected, const Tolerance& tolerance) {
  ASSERT_EQ(received.spec(), expected.spec());
  if (received.dtype() == DType::kFloat64) {
    compare<double, double>(received.data<double>(), expected.data<double>(), tolerance);
  } else {
    compare<float, float>(received.data<float>(), expected.data<float>(), tolerance);
  }
}

void expect_same_bits(const std::vector<float>& received, const std::vector<float>& expected) {
  ASSERT_EQ(received.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::memcmp(&received[i], &expected[i], sizeof(float)), 0)
        << "element " << i << ": " << received[i] << ", expected " << expected[i];
  }
}

void expect_same_bits(const Tensor& received, const Tensor& expected) {
  ASSERT_EQ(received.spec(), expected.spec());
  EXPECT_EQ(std::memcmp(received.raw().data(), expected.raw().data(), expected.raw().size()), 0);
}

}  // namespace keel::testing_support

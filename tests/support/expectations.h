// Comparisons of many numbers at once.
#pragma once

#include <vector>

#include <keel/framework/tensor.h>

namespace keel::testing_support {

// The largest difference that is accepted between a received and an expected number: the larger one
// of `absolute` and `relative` times the expected number.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

// Expects the same number of elements, and each element within the tolerance. T is float or double.
template <class T>
void expect_near(const std::vector<T>& received, const std::vector<T>& expected,
                 const Tolerance& tolerance);
void expect_near(const std::vector<float>& received, const std::vector<double>& expected,
                 const Tolerance& tolerance);
// Compares the shapes and dtypes of float32 or float64 tensors, too.
void expect_near(const Tensor& received, const Tensor& expected, const Tolerance& tolerance);

// Expects the bits of the elements to be equal. -0 differs from 0, and NaN equals itself.
void expect_same_bits(const std::vector<float>& received, const std::vector<float>& expected);
// Compares the shapes and dtypes, too.
void expect_same_bits(const Tensor& received, const Tensor& expected);

}  // namespace keel::testing_support

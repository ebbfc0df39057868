// Shorthand for small tensors and for the expectations of op tests.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/tensor.h>

#include "tests/support/tensors.h"

namespace keel::testing_support {

inline Tensor row(const std::vector<float>& values) { return floats(values); }

// Returns reproducible numbers in [-1, 1) without a pattern that could hide errors of sums.
inline Tensor noise(const Shape& shape) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  uint32_t state = 12345;
  for (float& x : out.mutable_data<float>()) {
    state = state * 1664525 + 1013904223;
    x = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return out;
}

inline void expect_floats(const Tensor& found, const Shape& shape, std::vector<float> expected) {
  EXPECT_EQ(found.shape(), shape);
  ASSERT_EQ(found.size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_FLOAT_EQ(found.data<float>()[i], expected[i]) << "at " << i;
  }
}

inline void expect_bools(const Tensor& found, const std::vector<bool>& expected) {
  EXPECT_EQ(found.to_vector<bool>(), expected);
}

}  // namespace keel::testing_support

#include <keel/layers/core/internal/quantized_projection.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>

#include "tests/support/expectations.h"

namespace keel::quantized_projection_test {

using Values = std::vector<float>;
using Codes = std::vector<int8_t>;

const DTypePolicy kInt8 = "int8_from_float32";
const DTypePolicy kColumns = "int4/-1_from_float32";

QuantizedProjection dense(int64_t in, int64_t units) {
  return {{.input = "ay", .kernel = "yz", .output = "az"}, {in, units}, true};
}

// The bytes are those of the example in Keras's documentation of pack_int4.
TEST(QuantizedProjectionTest, TwoInt4CodesShareAByteAsInKeras) {
  const QuantizedKernel kernel = {.codes = Tensor::from<int8_t>({125, 2, 24, 0}, {2, 2}),
                                  .scale = Tensor::full<float>({3}, 1)};
  EXPECT_EQ(dense(2, 3).dequantized(kernel, kColumns).to_vector<float>(),
            (Values{-3, 7, 2, -8, 1, 0}));
}

TEST(QuantizedProjectionTest, Int8HasAScaleForEachColumn) {
  const Tensor kernel = Tensor::from<float>({1, -1, 0.25F, 4}, {2, 2});
  const QuantizedKernel q = dense(2, 2).quantized(kernel, kInt8, "test");
  EXPECT_EQ(q.codes.to_vector<int8_t>(), (Codes{127, -32, 32, 127}));  // 31.75 goes to 32
  testing_support::expect_near(q.scale.to_vector<float>(), {127, 31.75}, {.relative = 1e-6});
}

TEST(QuantizedProjectionTest, Int4OfColumnsUsesTheRangeToSeven) {
  const Tensor kernel = Tensor::from<float>({7, -14, -3, 6}, {2, 2});
  const QuantizedKernel q = dense(2, 2).quantized(kernel, kColumns, "test");
  testing_support::expect_near(q.scale.to_vector<float>(), {1, 0.5}, {.relative = 1e-6});
  EXPECT_EQ(dense(2, 2).dequantized(q, kColumns).to_vector<float>().size(), 4U);
  EXPECT_EQ(q.codes.to_vector<int8_t>(), (Codes{static_cast<int8_t>(0x97), 0x3D}));
}

// Rows 0 and 1 share a scale, row 2 has its own: (7.5 - 0 + 1e-7) / 15 and (0 + 15 + 1e-7) / 15.
TEST(QuantizedProjectionTest, Int4OfBlocksHasZeroPoints) {
  const DTypePolicy blocks = "int4/2_from_float32";
  const Tensor kernel = Tensor::from<float>({7.5F, 0.5F, -15}, {3, 1});
  const QuantizedKernel q = dense(3, 1).quantized(kernel, blocks, "test");
  testing_support::expect_near(q.scale.to_vector<float>(), {0.5, 1}, {.relative = 1e-6});
  EXPECT_EQ(q.scale.shape(), Shape({2, 1}));
  EXPECT_EQ(q.zero_point.to_vector<int8_t>(), (Codes{-8, 7}));
  EXPECT_EQ(q.groups.to_vector<float>(), (Values{0, 0, 1}));
  testing_support::expect_near(dense(3, 1).dequantized(q, blocks).to_vector<float>(),
                               {7.5, 0.5, -15}, {.relative = 1e-6});
}

// The kernel [k, b, c] has its columns in another order than the output [a, c, b].
TEST(QuantizedProjectionTest, ScalesAreInTheOrderOfTheOutput) {
  const QuantizedProjection projection({.input = "ak", .kernel = "kbc", .output = "acb"}, {2, 2, 3},
                                       false);
  const Tensor kernel =
      Tensor::from<float>({1, 2, 4, 8, 16, 32, -1, -1, -1, -1, -1, -1}, {2, 2, 3});
  const QuantizedKernel q = projection.quantized(kernel, kInt8, "test");
  EXPECT_EQ(q.scale.shape(), Shape({1, 3, 2}));
  testing_support::expect_near(q.scale.to_vector<float>(),
                               {127, 127.0 / 8, 127.0 / 2, 127.0 / 16, 127.0 / 4, 127.0 / 32},
                               {.relative = 1e-6});
  const Values back = projection.dequantized(q, kInt8).to_vector<float>();
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(back[i], kernel.data<float>()[i], 1e-5) << i;
}

TEST(QuantizedProjectionTest, InputsAreRoundedToInt8OnRequest) {
  const QuantizedProjection projection = dense(2, 1);
  const QuantizedKernel kernel = {.codes = Tensor::from<int8_t>({127, 1}, {2, 1}),
                                  .scale = Tensor::full<float>({1}, 127)};
  const Tensor x = Tensor::from<float>({1, 0.3F}, {1, 2});  // 0.3 becomes 38 / 127
  EXPECT_NEAR(projection.product(x, kernel, kInt8, true).item<float>(), 1 + 38.0 / 127 / 127, 1e-6);
  EXPECT_NEAR(projection.product(x, kernel, kInt8, false).item<float>(), 1 + 0.3 / 127, 1e-6);
  const Tensor zeros = Tensor::zeros({1, 2});
  EXPECT_EQ(projection.product(zeros, kernel, kInt8, true).item<float>(), 0);
}

TEST(QuantizedProjectionTest, TheGradientOfTheInputsIsThatOfTheDequantizedKernel) {
  const QuantizedProjection projection = dense(2, 1);
  const QuantizedKernel kernel = {.codes = Tensor::from<int8_t>({127, 1}, {2, 1}),
                                  .scale = Tensor::full<float>({1}, 127)};
  const Tensor x = Tensor::from<float>({1, 0.3F}, {1, 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = projection.product(x, kernel, kInt8, true);
  testing_support::expect_near(tape.input_gradient(y, {x})[0].dense().to_vector<float>(),
                               {1, 1.0 / 127}, {.relative = 1e-6});
}

TEST(QuantizedProjectionTest, KernelsMustBeFinite) {
  const Tensor kernel = Tensor::full<float>({2, 2}, INFINITY);
  for (const DTypePolicy& policy : {kInt8, kColumns, DTypePolicy("int4/1_from_float32")}) {
    EXPECT_THROW((void)dense(2, 2).quantized(kernel, policy, "test"), ValueError);
  }
}

}  // namespace keel::quantized_projection_test

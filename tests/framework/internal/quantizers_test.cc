// Tests framework/kernels/embedding/abs_max_rows.cc.
#include <keel/framework/internal/quantizers.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/kernels/embedding/abs_max_rows.h>
#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/random.h>

#include "tests/support/errors.h"

namespace keel::quantizers_test {

using testing::StartsWith;
using testing_support::message_of;

// The values that Keras 3.15.1 stores for an Embedding of 5 rows and 4 columns with these elements.
TEST(QuantizersTest, CodesAndScalesMatchKeras) {
  std::vector<float> values(20);
  for (int i = 0; i < 20; ++i) values[i] = static_cast<float>(0.5 * std::sin(1.7 * i + 0.3));
  const QuantizedTable table = abs_max_quantize(Tensor::from(values, {5, 4}), "test");
  EXPECT_EQ(table.codes.shape(), Shape({5, 4}));
  EXPECT_EQ(table.codes.to_vector<int8_t>(),
            (std::vector<int8_t>{41,   127, -74, -108, 105,  84, -127, -52,  123, 14,
                                 -127, 19,  127, -53,  -113, 82, 96,   -110, -68, 127}));
  const std::vector<float> scales = {279.3365F, 288.7361F, 254.05725F, 264.26596F, 274.25357F};
  EXPECT_EQ(table.scales.shape(), Shape({5}));
  for (int r = 0; r < 5; ++r) EXPECT_NEAR(table.scales.data<float>()[r], scales[r], 3e-5) << r;
}

TEST(QuantizersTest, HalvesRoundToEvenAndCodesAreAtLeastMinus127) {
  // The scale is exactly 1, because 127 + 1e-7 rounds to 127 in float32.
  const QuantizedTable table =
      abs_max_quantize(Tensor::from<float>({-127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F}, {1, 6}), "test");
  EXPECT_EQ(table.scales.item<float>(), 1);
  EXPECT_EQ(table.codes.to_vector<int8_t>(), (std::vector<int8_t>{-127, 0, 2, 2, 0, -2}));
}

TEST(QuantizersTest, RowsOfZerosHaveAFiniteScale) {
  const QuantizedTable table = abs_max_quantize(Tensor::zeros({2, 3}), "test");
  EXPECT_EQ(table.codes.to_vector<int8_t>(), std::vector<int8_t>(6, 0));
  for (const float scale : table.scales.data<float>()) EXPECT_EQ(scale, 127 / 1e-7F);
}

TEST(QuantizersTest, TheErrorIsAtMostHalfACode) {
  for (const int64_t dim : {1, 5, 16, 100}) {
    std::vector<float> values(3000 * dim);
    RandomStream{.seed = 1}.normal(values, 0, 0, 1);
    const QuantizedTable table = abs_max_quantize(Tensor::from(values, {3000, dim}), "test");
    for (int64_t i = 0; i < 3000 * dim; ++i) {
      const float scale = table.scales.data<float>()[i / dim];
      const float back = static_cast<float>(table.codes.data<int8_t>()[i]) / scale;
      ASSERT_NEAR(back, values[i], 0.5 / scale + 1e-6) << dim << " " << i;
    }
  }
}

TEST(QuantizersTest, OnlyFiniteFloatTablesAreAccepted) {
  EXPECT_THROW(abs_max_quantize(Tensor(), "test"), ValueError);
  EXPECT_THROW(abs_max_quantize(Tensor::zeros({3}), "test"), ValueError);
  EXPECT_THROW(abs_max_quantize(Tensor::zeros({3, 2}, DType::kFloat64), "test"), ValueError);
  for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(message_of<ValueError>([&] {
                  abs_max_quantize(Tensor::from<float>({1, 2, 3, odd}, {2, 2}), "the layer");
                }),
                StartsWith("the layer: row 1 "));
  }
}

TEST(QuantizersTest, GatheredRowsAreCodesByScales) {
  for (const int64_t dim : {1, 8, 13, 16, 64, 130}) {
    std::vector<float> values(700 * dim);
    RandomStream{.seed = 2}.normal(values, 0, 0, 1);
    const QuantizedTable table = abs_max_quantize(Tensor::from(values, {700, dim}), "test");
    const auto codes = table.codes.data<int8_t>();
    const auto scales = table.scales.data<float>();
    std::vector<int64_t> ids(2000);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 7919 % 700);
    std::vector<float> out(ids.size() * dim);
    kernels::gather_rows(codes.data(), scales.data(), dim, ids.data(),
                         static_cast<int64_t>(ids.size()), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t row = ids[i / dim];
      const auto column = static_cast<int64_t>(i % dim);
      const kernels::AbsMaxRow whole{.codes = &codes[row * dim], .scale = scales[row]};
      ASSERT_EQ(out[i], static_cast<float>(codes[row * dim + column]) / scales[row]);
      ASSERT_EQ(out[i], whole[column]);
    }
  }
}

}  // namespace keel::quantizers_test

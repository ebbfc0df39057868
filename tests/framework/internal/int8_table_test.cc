// Tests framework/kernels/embedding/int8_rows.cc.
#include <keel/framework/internal/int8_table.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/kernels/embedding/int8_rows.h>
#include <keel/framework/kernels/embedding/row_sum.h>
#include <keel/framework/random.h>

#include "tests/support/errors.h"

namespace keel::int8_table_test {

using testing::StartsWith;
using testing_support::message_of;

kernels::Int8Row row_of(const Int8Table& table, int64_t r) {
  return kernels::Int8Row(table.data() + r * table.row_bytes());
}

Tensor normal_table(int64_t rows, int64_t dim) {
  std::vector<float> values(rows * dim);
  RandomStream{.seed = 1}.normal(values, 0, 0, 1);
  return Tensor::from(values, {rows, dim});
}

TEST(Int8TableTest, TheErrorIsAtMostHalfAStepOfTheRow) {
  for (const int64_t dim : {1, 5, 16, 64, 100}) {
    const Tensor table = normal_table(40, dim);
    const Int8Table small(table, "test");
    EXPECT_EQ(small.rows(), 40);
    EXPECT_EQ(small.dim(), dim);
    EXPECT_EQ(small.row_bytes(), 8 + (dim + 7) / 8 * 8);
    const Tensor floats = small.to_floats();
    for (int64_t r = 0; r < 40; ++r) {
      const auto row = table.data<float>().subspan(r * dim, dim);
      const float least = std::ranges::min(row), most = std::ranges::max(row);
      const double half_step = (static_cast<double>(most) - least) / 255 / 2;
      for (int64_t i = 0; i < dim; ++i) {
        EXPECT_NEAR(floats.data<float>()[r * dim + i], row[i], half_step + 1e-6) << dim;
        if (row[i] == least) {
          EXPECT_EQ(floats.data<float>()[r * dim + i], least);
        }
        EXPECT_EQ(floats.data<float>()[r * dim + i], row_of(small, r)[i]);
      }
    }
  }
}

TEST(Int8TableTest, RowsOfOneValueAndRowsOf256EvenValuesAreExact) {
  std::vector<float> values(2 * 256, -3.25F);
  for (int i = 0; i < 256; ++i) values[256 + i] = 1 + 0.5F * static_cast<float>(i);
  const Int8Table table(Tensor::from(values, {2, 256}), "test");
  EXPECT_EQ(table.to_floats().to_vector<float>(), values);
}

TEST(Int8TableTest, OnlyFiniteFloatTablesAreAccepted) {
  EXPECT_THROW(Int8Table(Tensor::zeros({3}), "test"), ValueError);
  EXPECT_THROW(Int8Table(Tensor::zeros({3, 2}, DType::kFloat64), "test"), ValueError);
  // The range of the last row exceeds the largest float.
  const float most = std::numeric_limits<float>::max();
  for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity(), most}) {
    EXPECT_THAT(message_of<ValueError>([&] {
                  Int8Table(Tensor::from<float>({1, 2, -most, odd}, {2, 2}), "the plan");
                }),
                StartsWith("the plan: row 1 "));
  }
}

TEST(Int8TableTest, SumsOfRowsEqualThoseOfDequantizedRows) {
  const auto sum_of = [](const Int8Table& table, const Tensor& floats, auto dim, auto of_floats) {
    constexpr int64_t kDim = decltype(dim)::value;
    const int64_t n = table.dim();
    std::vector<float> out(n);
    kernels::RowSum<kDim, float> sum(n, out.data());
    for (int64_t r = 0; r < table.rows(); ++r) {
      const float weight = 0.25F * static_cast<float>(r) - 1;
      if constexpr (decltype(of_floats)::value) {
        sum.template add<false>(floats.data<float>().data() + r * n, 1);
        sum.template add<true>(floats.data<float>().data() + r * n, weight);
      } else {
        sum.template add<false>(row_of(table, r), 1);
        sum.template add<true>(row_of(table, r), weight);
      }
    }
    sum.store();
    return out;
  };
  const auto check = [&](auto dim, int64_t n) {
    const Int8Table table(normal_table(9, n), "test");
    const Tensor floats = table.to_floats();
    EXPECT_EQ(sum_of(table, floats, dim, std::false_type()),
              sum_of(table, floats, dim, std::true_type()));
  };
  check(std::integral_constant<int64_t, 64>(), 64);
  check(std::integral_constant<int64_t, 16>(), 16);
  check(std::integral_constant<int64_t, 8>(), 8);
  check(std::integral_constant<int64_t, 0>(), 13);
}

}  // namespace keel::int8_table_test

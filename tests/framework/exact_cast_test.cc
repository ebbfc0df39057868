// Tests framework/exact_cast.cc.
#include <keel/framework/exact_cast.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::exact_cast_test {

using testing::HasSubstr;
using testing_support::message_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor column(float last) { return Tensor::from<float>({0, -7, 16777216, last}, {4, 1}); }

std::string message_for(const Tensor& numbers, DType dtype) {
  return message_of<ValueError>([&] { exact_cast("load", numbers, dtype); });
}

TEST(ExactCastTest, ConvertsIntegersInFloats) {
  const Tensor out = integer_ids("look_up", column(-0.0F));
  EXPECT_EQ(out.shape(), (Shape{4, 1}));
  EXPECT_EQ(out.to_vector<int64_t>(), (std::vector<int64_t>{0, -7, 16777216, 0}));
  const Tensor wide = Tensor::from<double>({9007199254740992.0, -0x1p63, 0x1p62}, {3});
  EXPECT_EQ(integer_ids("look_up", wide).to_vector<int64_t>(),
            (std::vector<int64_t>{9007199254740992, std::numeric_limits<int64_t>::min(),
                                  4611686018427387904}));
}

TEST(ExactCastTest, RejectsNumbersThatAreNoIdsByRow) {
  EXPECT_EQ(message_of<InvalidIdError>([&] { integer_ids("look_up", column(std::nanf(""))); }),
            "look_up: the id in row 3 is nan; ids must be integers");
  EXPECT_EQ(message_of<InvalidIdError>([&] { integer_ids("look_up", column(-std::nanf(""))); }),
            "look_up: the id in row 3 is nan; ids must be integers");
  for (const auto& [number, text] : std::vector<std::pair<float, std::string>>{
           {kInfinity, "inf"}, {-kInfinity, "-inf"}, {2.5F, "2.5"}, {-0.25F, "-0.25"}}) {
    EXPECT_THAT(message_of<InvalidIdError>([&] { integer_ids("look_up", column(number)); }),
                HasSubstr("the id in row 3 is " + text + ";"));
  }
  EXPECT_THROW(integer_ids("look_up", column(0x1p63F)), InvalidIdError);
  EXPECT_NO_THROW(integer_ids("look_up", column(-0x1p63F)));
  EXPECT_THROW(integer_ids("look_up", Tensor::scalar(std::nan(""))), InvalidIdError);
  EXPECT_EQ(integer_ids("look_up", Tensor::from<float>({}, {0, 3})).size(), 0);
}

TEST(ExactCastTest, NamesTheRowOfRaggedAndSparseIds) {
  const RaggedTensor ragged = {.values = Tensor::from<float>({1, 2, 0.5}, {3}),
                               .row_splits = Tensor::from<int64_t>({0, 2, 2, 2, 3}, {5})};
  EXPECT_THAT(message_of<InvalidIdError>([&] { integer_ids("look_up", ragged); }),
              HasSubstr("row 3 is 0.5"));
  const SparseTensor sparse = {.indices = Tensor::from<int64_t>({1, 0, 6, 2}, {2, 2}),
                               .values = Tensor::from<float>({4, kInfinity}, {2}),
                               .dense_shape = {9, 3}};
  EXPECT_THAT(message_of<InvalidIdError>([&] { integer_ids("look_up", sparse); }),
              HasSubstr("row 6 is inf"));
  const Tensor wide = Tensor::from<float>({0, 1, 2, 3, 4, 5.5}, {2, 3});
  EXPECT_THAT(message_of<InvalidIdError>([&] { integer_ids("look_up", wide); }),
              HasSubstr("row 1 is 5.5"));
}

TEST(ExactCastTest, RejectsIntegersThatAreOutOfRange) {
  const Tensor wide = Tensor::from<int64_t>({5, 4294967301}, {2});
  EXPECT_EQ(message_for(wide, DType::kInt32),
            "load: the value in row 1 is 4294967301, which int32 does not have; pass an integer in "
            "its range");
  EXPECT_EQ(message_for(Tensor::from<int32_t>({-1}, {1}), DType::kUint8),
            "load: the value in row 0 is -1, which uint8 does not have; pass an integer in its "
            "range");
  EXPECT_EQ(
      exact_cast("load", Tensor::from<int64_t>({-3, 4}, {2}), DType::kInt32).to_vector<int32_t>(),
      (std::vector<int32_t>{-3, 4}));
}

TEST(ExactCastTest, ConvertsToFloatsAsCastDoes) {
  const Tensor out = exact_cast("load", Tensor::from<int64_t>({16777217}, {1}), DType::kFloat32);
  EXPECT_EQ(out.item<float>(), 16777216.0F);
  EXPECT_EQ(exact_cast("load", Tensor::from<float>({1.5}, {1}), DType::kFloat32).item<float>(),
            1.5F);
  EXPECT_THROW(exact_cast("load", Tensor::from<std::string>({"1"}, {1}), DType::kInt64), TypeError);
}

}  // namespace keel::exact_cast_test

#include <keel/framework/base/dtype.h>

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::dtype_test {

using testing::HasSubstr;
using testing_support::message_of;

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,  DType::kInt64,
                          DType::kBool,    DType::kUint8,   DType::kString, DType::kInt8};

TEST(DTypeTest, NamesAreThoseOfKeras) {
  EXPECT_EQ(name_of(DType::kFloat32), "float32");
  EXPECT_EQ(name_of(DType::kInt64), "int64");
  EXPECT_EQ(name_of(DType::kUint8), "uint8");
  EXPECT_EQ(name_of(DType::kString), "string");
}

TEST(DTypeTest, NamesAreReadBack) {
  for (const DType dtype : kAll) {
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    std::ostringstream out;
    out << dtype;
    EXPECT_EQ(out.str(), name_of(dtype));
  }
}

TEST(DTypeTest, UnknownNamesAreErrors) {
  EXPECT_THAT(message_of<ValueError>([] { dtype_from_name("float8"); }), HasSubstr("float8"));
  EXPECT_THROW(dtype_from_name(""), ValueError);
}

TEST(DTypeTest, SizesAreThoseOfTheElementTypes) {
  EXPECT_EQ(size_of(DType::kFloat32), sizeof(float));
  EXPECT_EQ(size_of(DType::kFloat64), sizeof(double));
  EXPECT_EQ(size_of(DType::kInt32), 4U);
  EXPECT_EQ(size_of(DType::kInt64), 8U);
  EXPECT_EQ(size_of(DType::kBool), sizeof(bool));
  EXPECT_EQ(size_of(DType::kUint8), 1U);
  EXPECT_EQ(size_of(DType::kInt8), 1U);
}

TEST(DTypeTest, OnlyTypesWithArithmeticAreFloatingOrInteger) {
  for (const DType dtype : kAll) {
    EXPECT_FALSE(is_floating(dtype) && is_integer(dtype)) << dtype;
  }
  EXPECT_TRUE(is_floating(DType::kFloat64));
  EXPECT_TRUE(is_integer(DType::kUint8));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_FALSE(is_integer(DType::kInt8));
}

}  // namespace keel::dtype_test

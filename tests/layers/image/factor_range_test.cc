#include <keel/layers/image/factor_range.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::factor_range_test {

using testing::HasSubstr;
using testing_support::message_of;

FactorRange read(const std::string& json) {
  FactorRange out;
  decode(parse_json(json), out);
  return out;
}

void expect_pair(const FactorRange& range, double low, double high) {
  EXPECT_TRUE(range.is_pair());
  EXPECT_EQ(range.low(), low);
  EXPECT_EQ(range.high(), high);
}

TEST(FactorRangeTest, ConfigsKeepTheForm) {
  for (const char* json : {"0.25", "1", "[0.25, 0.5]", "[-1, 1]"}) {
    EXPECT_EQ(to_json(encode(read(json))), json);
  }
  EXPECT_EQ(to_json(encode(read("[0.0, 1.0]"))), "[0, 1]");
  EXPECT_THROW(read("[1]"), ValueError);
  EXPECT_TRUE(encode(FactorRange()).is_null());
  EXPECT_THROW(FactorRange().within(0, 1, "f"), ValueError);
  EXPECT_THROW(read("\"all\""), TypeError);
}

TEST(FactorRangeTest, NumbersStandForRanges) {
  expect_pair(FactorRange(0.3).symmetric(-1, 1, "f"), -0.3, 0.3);
  expect_pair(FactorRange(0.3).symmetric(0, 1, "f"), 0, 0.3);
  expect_pair(FactorRange(4).symmetric(1, 8, "f"), 1, 4);
  expect_pair(FactorRange(-0.3).within(-1, 1, "f"), -0.3, 0.3);
}

TEST(FactorRangeTest, PairsAreSorted) {
  expect_pair(FactorRange(0.5, 0.2).symmetric(0, 1, "f"), 0.2, 0.5);
  expect_pair(FactorRange(0.5, 0.2).within(0, 1, "f"), 0.2, 0.5);
}

TEST(FactorRangeTest, ErrorsNameTheArgument) {
  EXPECT_THAT(message_of<ValueError>([] { FactorRange(2).symmetric(-1, 1, "X: f"); }),
              HasSubstr("X: f must be a number or a pair of numbers in [-1, 1], received 2"));
  EXPECT_THROW(FactorRange(2, 3).symmetric(-1, 1, "f"), ValueError);
  // Keras accepts a pair of which one end is inside.
  expect_pair(FactorRange(0.5, 2).symmetric(-1, 1, "f"), 0.5, 2);
  EXPECT_THROW(FactorRange(0.5, 2).within(-1, 1, "f"), ValueError);
}

TEST(ValueRangeTest, IsSorted) {
  ValueRange range;
  decode(parse_json("[255, 0]"), range);
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 255);
  EXPECT_EQ(to_json(encode(ValueRange(0, 0.5))), "[0, 0.5]");
}

}  // namespace keel::factor_range_test

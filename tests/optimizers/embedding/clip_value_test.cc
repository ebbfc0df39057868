#include <cmath>

#include <gtest/gtest.h>

#include <keel/optimizers/embedding/bounds_and_slots.h>

namespace keel::clip_value_test {

TEST(ClipValueTest, IsUnsetByDefault) {
  const ClipValue c;
  EXPECT_FALSE(c.is_set());
  EXPECT_FALSE(c.min() || c.max());
}

TEST(ClipValueTest, ANumberBoundsBothSidesEvenIfZero) {
  EXPECT_EQ(ClipValue(0.5).min(), -0.5);
  EXPECT_EQ(ClipValue(0.5).max(), 0.5);
  EXPECT_TRUE(ClipValue(0).is_set());
  EXPECT_EQ(ClipValue(1), ClipValue(-1, 1));
}

TEST(ClipValueTest, EitherSideOfAPairMayBeAbsent) {
  const ClipValue upper = {std::nullopt, 1};
  EXPECT_TRUE(upper.is_set());
  EXPECT_FALSE(upper.min().has_value());
  EXPECT_EQ(upper.max(), 1);
  EXPECT_NE(upper, ClipValue(1));
}

TEST(ClipValueTest, RejectsNegativeNumbersAndBoundsThatCross) {
  EXPECT_THROW(ClipValue(-1), ValueError);
  EXPECT_THROW(ClipValue(std::nan("")), ValueError);
  EXPECT_THROW(ClipValue(1, 0), ValueError);
  EXPECT_NO_THROW(ClipValue(1, 1));
}

TEST(ClipValueTest, RoundTripsThroughItsConfig) {
  for (const ClipValue& c : {ClipValue(), ClipValue(0), ClipValue(2), ClipValue(std::nullopt, 1),
                             ClipValue(-3, std::nullopt)}) {
    ClipValue read = 7;
    decode(encode(c), read);
    EXPECT_EQ(read, c);
    EXPECT_EQ(read.is_set(), c.is_set());
  }
  ClipValue read;
  decode(Config(0.25), read);
  EXPECT_EQ(read, ClipValue(0.25));
  EXPECT_THROW(decode(Config::list({1.0}), read), ValueError);
  EXPECT_THROW(decode(Config("x"), read), TypeError);
}

}  // namespace keel::clip_value_test

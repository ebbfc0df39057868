#include <keel/framework/base/internal/text.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace keel::text_test {
namespace {

TEST(TextTest, TheTextOfANumberIsTheShortestThatReadsBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.1F), "0.1");
  EXPECT_EQ(number_text(1e-7), "1e-07");
  EXPECT_EQ(number_text(int64_t{-12}), "-12");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(TextTest, ParsesTheWholeText) {
  EXPECT_EQ(parse_number<int64_t>("+7"), 7);
  EXPECT_EQ(parse_number<double>("-2.5e3"), -2500);
  EXPECT_TRUE(std::isnan(*parse_number<double>("nan")));
  for (const char* text : {"", "7x", " 7", "0x10", "9999999999999999999999"}) {
    EXPECT_FALSE(parse_number<int64_t>(text)) << text;
  }
}

}  // namespace
}  // namespace keel::text_test

#include <keel/framework/base/internal/regular_expression.h>

#include <regex>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace keel::regular_expression_test {
namespace {

TEST(RegularExpressionTest, MatchesTheWholeTextOrAPartOfIt) {
  const RegularExpression pattern("dense_[0-9]+/(kernel|bias)");
  EXPECT_TRUE(pattern.matches("dense_12/bias"));
  EXPECT_FALSE(pattern.matches("model/dense_12/bias"));
  EXPECT_TRUE(pattern.matches_part_of("model/dense_12/bias"));
  EXPECT_FALSE(pattern.matches_part_of("model/dense/bias"));
}

TEST(RegularExpressionTest, ACopyMatchesAsTheOriginal) {
  RegularExpression pattern("a+");
  const RegularExpression copy = pattern;
  pattern = RegularExpression("b");
  EXPECT_TRUE(copy.matches("aaa"));
  EXPECT_FALSE(pattern.matches("aaa"));
}

TEST(RegularExpressionTest, AMalformedPatternThrowsTheTextOfTheStandardLibrary) {
  std::string expected, received;
  try {
    std::regex("(");
  } catch (const std::regex_error& error) {
    expected = error.what();
  }
  try {
    RegularExpression("(");
  } catch (const std::runtime_error& error) {
    received = error.what();
  }
  EXPECT_NE(received, "");
  EXPECT_EQ(received, expected);
}

}  // namespace
}  // namespace keel::regular_expression_test

#include <keel/layers/preprocessing/internal/text.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel::text_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TextTest, StandardizationChangesAsciiOnly) {
  EXPECT_EQ(standardized("It's \xC3\x89T\xC3\x89!", true, false), "it's \xC3\x89t\xC3\x89!");
  EXPECT_EQ(standardized("It's \xC3\x89T\xC3\x89!", false, true), "Its \xC3\x89T\xC3\x89");
  EXPECT_EQ(standardized("AZ", false, false), "AZ");
  EXPECT_EQ(standardized("a!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'z", true, true), "az");
}

TEST(TextTest, WhitespaceIsAsciiAndMayRepeat) {
  EXPECT_THAT(split_whitespace(" a\t\n b\v\f\rc "), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split_whitespace("a\xC2\xA0z"), ElementsAre("a\xC2\xA0z"));
  EXPECT_THAT(split_whitespace("  "), IsEmpty());
  EXPECT_THAT(split_whitespace(""), IsEmpty());
}

TEST(TextTest, CharactersHaveOneToFourBytes) {
  EXPECT_THAT(split_characters("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
              ElementsAre("a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"));
}

// The number of replacements is that of Table 3-8 of the Unicode standard.
TEST(TextTest, InvalidBytesBecomeReplacementCharacters) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_THAT(split_characters("\xE2\x82z"), ElementsAre(bad, "z"));
  EXPECT_THAT(split_characters("\xC0\xAF\xF4\x90"), ElementsAre(bad, bad, bad, bad));
  EXPECT_THAT(split_characters("\xED\xA0\x80"), ElementsAre(bad, bad, bad));
  EXPECT_THAT(split_characters("\xF0\x9F"), ElementsAre(bad));
}

TEST(TextTest, NgramsComeWidthByWidth) {
  const std::vector<std::string> tokens = {"a", "b", "c"};
  const std::vector<int64_t> widths = {1, 2}, others = {3, 2}, wide = {4};
  EXPECT_THAT(ngrams(tokens, widths), ElementsAre("a", "b", "c", "a b", "b c"));
  EXPECT_THAT(ngrams(tokens, others), ElementsAre("a b c", "a b", "b c"));
  EXPECT_THAT(ngrams(tokens, wide), IsEmpty());
}

}  // namespace keel::text_test

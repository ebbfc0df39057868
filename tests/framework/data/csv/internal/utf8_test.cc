#include <keel/framework/data/csv/internal/utf8.h>

#include <string>

#include <gtest/gtest.h>

namespace keel::data::utf8_test {

// The sequences follow from the table of RFC 3629, section 4.
TEST(Utf8Test, AcceptsTheFirstAndLastCharacterOfEachLength) {
  for (const std::string& text :
       {std::string(1, '\0'), std::string("\x7F"), std::string("\xC2\x80"), std::string("\xDF\xBF"),
        std::string("\xE0\xA0\x80"), std::string("\xED\x9F\xBF"), std::string("\xEE\x80\x80"),
        std::string("\xEF\xBF\xBF"), std::string("\xF0\x90\x80\x80"),
        std::string("\xF4\x8F\xBF\xBF")}) {
    EXPECT_EQ(utf8_prefix("a" + text + "b"), text.size() + 2);
  }
}

TEST(Utf8Test, StopsAtTheFirstByteThatIsNotValid) {
  for (const char* const bytes : {
           "\x80", "\xBF",                          // no lead byte
           "\xC0\x80", "\xC1\xBF",                  // overlong
           "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",      // overlong
           "\xED\xA0\x80", "\xED\xBF\xBF",          // surrogates
           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",  // beyond U+10FFFF
           "\xC3", "\xE2\x82", "\xF0\x9D\x84",      // truncated
           "\xE9t\xE9",                             // latin-1
       }) {
    const std::string text = bytes;
    EXPECT_EQ(utf8_prefix("ab" + text), 2U) << text;
    EXPECT_EQ(utf8_prefix("\xC3\xA9" + text + "c"), 2U) << text;
  }
}

TEST(Utf8Test, AsciiOfAnyLengthIsFound) {
  for (size_t size = 0; size < 40; ++size) {
    // Bytes after the text are ignored.
    std::string text = std::string(size, 'a') + std::string(kUtf8Padding, '\xFF');
    EXPECT_TRUE(is_padded_ascii(text.data(), size)) << size;
    for (size_t i = 0; i < size; ++i) {
      text[i] = '\x80';
      EXPECT_FALSE(is_padded_ascii(text.data(), size)) << size << " " << i;
      text[i] = 'a';
    }
  }
}

}  // namespace keel::data::utf8_test

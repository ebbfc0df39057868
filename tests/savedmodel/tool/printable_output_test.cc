// Tests savedmodel/tool/printable_output.cc.
#include <keel/savedmodel/tool/printable_output.h>

#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

namespace keel::tool::printable_output_test {

TEST(PrintableOutputTest, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31m\r\x07\x7f\tb\n"), "a\\x1b[31m\\x0d\\x07\\x7f\\x09b\n");
  EXPECT_EQ(printable_name("a\nb"), "a\\x0ab");
  // U+009B in UTF-8 is a control sequence, too; other characters are not.
  EXPECT_EQ(printable("\xC2\x9B\x32J \xC2\xA9 \xC3\xA4 \xC2"), "\\x9b2J \xC2\xA9 \xC3\xA4 \xC2");
}

TEST(PrintableOutputTest, CoversStandardOutput) {
  std::ostringstream written;
  std::streambuf* const before = std::cout.rdbuf(written.rdbuf());
  {
    const PrintableOutput output;
    std::cout << "a\tb" << '\x1b' << std::string("\xC2") << std::string("\x9B") << 5 << std::endl;
    std::cout << "\xC2";
  }
  std::cout << "\x1b";
  std::cout.rdbuf(before);
  EXPECT_EQ(written.str(), "a\tb\\x1b\\x9b5\n\xC2\x1b");
}

}  // namespace keel::tool::printable_output_test

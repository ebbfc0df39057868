#include <keel/framework/data/csv/internal/csv_number.h>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace keel::data::csv_number_test {

// Checks that parse_plain either declines the text or gives the result of parse_csv_number.
template <class T>
void expect_same(const std::string& text, int& taken) {
  const std::string padded = text + std::string(32, '7');
  T fast = {};
  if (!parse_plain(padded.data(), static_cast<uint32_t>(text.size()), fast)) return;
  ++taken;
  const std::optional<T> exact = parse_csv_number<T>(text);
  ASSERT_TRUE(exact) << "'" << text << "'";
  ASSERT_EQ(std::memcmp(&*exact, &fast, sizeof(T)), 0) << "'" << text << "'";
}

int taken_of(const std::string& text) {
  int taken = 0;
  expect_same<float>(text, taken);
  expect_same<double>(text, taken);
  expect_same<int32_t>(text, taken);
  expect_same<int64_t>(text, taken);
  return taken;
}

TEST(NumberTextTest, ShortPlainNumbersUseTheFastPath) {
  EXPECT_EQ(taken_of("0"), 4);
  EXPECT_EQ(taken_of("-12345678"), 4);
  EXPECT_EQ(taken_of("2147483648"), 3);
  EXPECT_EQ(taken_of("-0.5"), 2);
  EXPECT_EQ(taken_of("-87.804532006"), 2);
  EXPECT_EQ(taken_of("5."), 2);
  EXPECT_EQ(taken_of(".5"), 2);
}

TEST(NumberTextTest, OtherTextUsesTheExactPath) {
  for (const char* text : {"", "-", ".", "-.", "1e3", "1..2", "1.2.3", "+1", " 1", "1 ", "--1",
                           "12345678901234567890", "0x1", "nan"}) {
    EXPECT_EQ(taken_of(text), 0) << text;
  }
}

TEST(NumberTextTest, FastAndExactPathsAgreeBitForBit) {
  constexpr std::string_view kCharacters = "00123456789.-e";
  uint64_t state = 1;
  const auto draw = [&](uint64_t n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % n;
  };
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text(draw(19), '0');
    for (char& c : text) c = kCharacters[draw(i % 2 == 0 ? 11 : kCharacters.size())];
    if (i % 3 == 0 && !text.empty()) text[draw(text.size())] = '.';
    taken += taken_of(text);
  }
  EXPECT_GT(taken, 100'000);
}

TEST(CsvNumberTest, NumbersHalfwayBetweenFloatsAreRoundedOnce) {
  // 2^24 + 1 lies halfway between two floats. The list also has other halfway numbers and numbers
  // close to them.
  for (const char* text : {"16777217", "16777217.0000001", "16777216.9999999", "33554434.00001",
                           "0.500000029802322", "1.00000005960464"}) {
    taken_of(text);
  }
}

}  // namespace keel::data::csv_number_test

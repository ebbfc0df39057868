#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/config/config.h>

#include "tests/support/errors.h"

namespace keel::json_test {

using testing::HasSubstr;
using testing_support::message_of;

TEST(JsonTest, WritesTheFormOfPython) {
  const Config config = Config::dict({{"b", Config::list({1, 2.0, Config(), true, false, -7})},
                                      {"a", "text"},
                                      {"empty", Config::dict()},
                                      {"none", Config::list({})}});
  EXPECT_EQ(to_json(config),
            R"({"b": [1, 2.0, null, true, false, -7], "a": "text", "empty": {}, "none": []})");
}

TEST(JsonTest, WritesDoublesAsPythonsRepr) {
  const std::vector<std::pair<double, std::string>> cases = {
      {0.1, "0.1"},
      {1e-7, "1e-07"},
      {0.001, "0.001"},
      {1.0, "1.0"},
      {1e16, "1e+16"},
      {1e15, "1000000000000000.0"},
      {123456789.125, "123456789.125"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {-0.0, "-0.0"},
      {1e22, "1e+22"},
      {1.0 / 3, "0.3333333333333333"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {9007199254740992.0, "9007199254740992.0"},
      {-2.5e-5, "-2.5e-05"},
      {1e100, "1e+100"},
      {123456789012345680.0, "1.2345678901234568e+17"},
      {0.009999999776482582, "0.009999999776482582"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"},
      {std::numeric_limits<double>::infinity(), "Infinity"},
      {-std::numeric_limits<double>::infinity(), "-Infinity"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(to_json(value), text);
}

TEST(JsonTest, EscapesNonAsciiAndControlCharacters) {
  EXPECT_EQ(to_json("\xC3\xA9\x01\x7F\xF0\x9F\x98\x80\"\\/\n\r\t\b\f"),
            R"("\u00e9\u0001\u007f\ud83d\ude00\"\\/\n\r\t\b\f")");
  EXPECT_EQ(to_json(Config::dict({{"\xE2\x82\xAC", 1}})), R"({"\u20ac": 1})");
  EXPECT_EQ(to_json(std::string("a\0b", 3)), R"("a\u0000b")");
}

TEST(JsonTest, RejectsToWriteBrokenUtf8) {
  for (const char* text : {"\xFF", "\xC3", "\xC3(", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF5\x80\x80\x80", "\xF0\x80\x80\x80", "\x80", "ab\xE2\x82"}) {
    EXPECT_THROW(to_json(text), ValueError) << text;
  }
}

TEST(JsonTest, RoundTrips) {
  const Config config = Config::dict(
      {{"z", Config::list({int64_t{9223372036854775807}, std::numeric_limits<int64_t>::min(), 0.1,
                           1e-300, -0.0, "\xF0\x9F\x98\x80\xC3\xA9\n\"", true, Config()})},
       {"a", Config::dict({{"deep", Config::list({Config::list({}), Config::dict()})}})}});
  EXPECT_EQ(parse_json(to_json(config)), config);
}

TEST(JsonTest, RandomDoublesRoundTripBitForBit) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const Config back = parse_json(to_json(value));
    ASSERT_FALSE(back.is_integer()) << to_json(value);
    ASSERT_EQ(back.number(), value);
  }
}

TEST(JsonTest, DistinguishesIntegersAndDoubles) {
  EXPECT_TRUE(parse_json("3").is_integer());
  EXPECT_FALSE(parse_json("3.0").is_integer());
  EXPECT_FALSE(parse_json("3e0").is_integer());
  EXPECT_EQ(parse_json("-9223372036854775808").integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_json("9223372036854775807").integer(), std::numeric_limits<int64_t>::max());
}

TEST(JsonTest, IntegersBeyond64BitsBecomeDoubles) {
  EXPECT_FALSE(parse_json("9223372036854775808").is_integer());
  EXPECT_EQ(parse_json("9223372036854775808").number(), 9223372036854775808.0);
  EXPECT_EQ(parse_json("18446744073709551616").number(), 18446744073709551616.0);
}

TEST(JsonTest, ReadsNanAndInfinityOutsideStrings) {
  const Config config = parse_json(
      R"({"NaN": [NaN, 1, Infinity, -Infinity, 0.0, "NaN, Infinity", -2], "x": -Infinity,)"
      R"( "quote\"Infinity": "\\", "y":NaN})");
  const auto& items = config["NaN"].items();
  EXPECT_TRUE(std::isnan(items[0].number()));
  EXPECT_EQ(items[1], Config(1));
  EXPECT_EQ(items[2].number(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(items[3].number(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(items[4], Config(0.0));
  EXPECT_EQ(items[5], Config("NaN, Infinity"));
  EXPECT_EQ(items[6], Config(-2));
  EXPECT_EQ(config["x"].number(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(config["quote\"Infinity"], Config("\\"));
  EXPECT_TRUE(std::isnan(config["y"].number()));
  EXPECT_TRUE(std::isnan(parse_json("NaN").number()));
}

TEST(JsonTest, DecodesEscapes) {
  EXPECT_EQ(parse_json(R"("\u00e9\ud83d\ude00\/\b")").string(), "\xC3\xA9\xF0\x9F\x98\x80/\b");
}

TEST(JsonTest, OfDuplicateKeysTheLastValueWinsAtTheFirstPosition) {
  EXPECT_EQ(to_json(parse_json(R"({"a": 1, "b": 2, "a": 3, "c": 4, "b": 5})")),
            R"({"a": 3, "b": 5, "c": 4})");
}

TEST(JsonTest, RejectsMalformedJson) {
  for (const char* text :
       {"",          " ",        "{",     "[1,]",        "{\"a\"}",   "{\"a\":1,}", "nul",
        "NaNs",      "1NaN",     "NaN1",  "-NaN",        "+Infinity", "--Infinity", "Infinity.5",
        "[NaN NaN]", "{NaN: 1}", "\"NaN", "1 2",         "01",        "'a'",        "\"\\x\"",
        "\"\xFF\"",  "[1e999]",  "]",     "\"\\ud800\"", "//x\n1",    "\"a\nb\""}) {
    EXPECT_THROW(parse_json(text), ValueError) << text;
  }
}

TEST(JsonTest, SyntaxErrorsNameTheOffset) {
  for (const std::string text : {"[1, 2, x]", "[NaN, 2 x]"}) {
    EXPECT_THAT(message_of<ValueError>([&] { parse_json(text); }),
                HasSubstr(str("offset ", text.find('x'))));
  }
}

TEST(JsonTest, DepthIsBounded) {
  const std::string deepest = std::string(512, '[') + std::string(512, ']');
  EXPECT_EQ(to_json(parse_json(deepest)), deepest);
  EXPECT_THROW(parse_json(std::string(513, '[') + std::string(513, ']')), ValueError);
  EXPECT_THROW(parse_json(std::string(1000000, '[')), ValueError);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THROW(parse_json(objects), ValueError);
}

TEST(JsonTest, GarbageNeverCrashes) {
  std::mt19937 random(1);
  const std::string alphabet = "{}[]\",:0123456789.-+eE nulltruefalseNaNInfinity\\u\n\xC3\xFF";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint32_t k = random() % 24; k > 0; --k) text += alphabet[random() % alphabet.size()];
    try {
      to_json(parse_json(text));
    } catch (const ValueError&) {
    }
  }
}

}  // namespace keel::json_test

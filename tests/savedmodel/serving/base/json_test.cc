// Tests savedmodel/serving/base/json_reader.cc, json_text.cc, utf8.cc and base64.cc.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <keel/savedmodel/serving/base/base64.h>
#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/savedmodel/serving/base/utf8.h>

namespace keel::serving::json_test {

std::string parse_error(std::string_view text) {
  try {
    JsonReader json(text);
    json.skip_value();
    json.expect_end();
  } catch (const ServeError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return {};
}

template <class T>
T number(std::string_view text) {
  JsonReader json(text);
  if constexpr (std::floating_point<T>) {
    return json.read_float<T>();
  } else {
    return json.read_integer<T>();
  }
}

std::string string_of(std::string_view text) {
  std::string out;
  JsonReader(text).read_string(out);
  return out;
}

// S-092
TEST(JsonReaderTest, ReadsNestedValuesWithWhiteSpaceAndAByteOrderMark) {
  JsonReader json("\xEF\xBB\xBF {\"a\" : [ 1 ,\t2.5, [] , {}], \"b\":\r\n null,\"c\":true }  ");
  std::string key;
  json.enter_object();
  ASSERT_TRUE(json.next_key(key));
  EXPECT_EQ(key, "a");
  json.enter_array();
  ASSERT_TRUE(json.next_element());
  EXPECT_EQ(json.read_integer<int64_t>(), 1);
  ASSERT_TRUE(json.next_element());
  EXPECT_EQ(json.read_float<float>(), 2.5F);
  ASSERT_TRUE(json.next_element());
  json.skip_value();
  ASSERT_TRUE(json.next_element());
  json.skip_value();
  EXPECT_FALSE(json.next_element());
  ASSERT_TRUE(json.next_key(key));
  json.read_null();
  ASSERT_TRUE(json.next_key(key));
  EXPECT_TRUE(json.read_bool());
  EXPECT_FALSE(json.next_key(key));
  json.expect_end();
}

// S-093
TEST(JsonReaderTest, NamesTheOffsetOfTextThatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "[1 2]",
                           "{'a': 1}",
                           "{\"a\" 1}",
                           "{\"a\":1,}",
                           "01",
                           "1.",
                           "1e",
                           "+1",
                           ".5",
                           "nan",
                           "tru",
                           "\"\\x\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"a",
                           "\"\n\"",
                           "\"\xff\"",
                           "[1] /* */",
                           "1 2",
                           "-",
                           "\"\xed\xa0\x80\"",
                           "\"\xc0\x80\"",
                           "Nan",
                           "Infinit",
                           "NaN1",
                           "]"}) {
    const std::string error = parse_error(text);
    EXPECT_TRUE(error.starts_with("JSON Parse error: ")) << text << ": " << error;
    EXPECT_NE(error.find(" at offset "), std::string::npos) << error;
  }
}

// S-093, S-094
TEST(JsonReaderTest, LimitsTheDepth) {
  const std::string open(64, '['), close(64, ']');
  EXPECT_EQ(parse_error(open + close), "");
  EXPECT_NE(parse_error("[" + open + close + "]").find("64"), std::string::npos);
  EXPECT_NE(parse_error(std::string(1 << 20, '[')), "");
  EXPECT_NE(parse_error(std::string(1 << 20, '{')), "");
}

// S-094
TEST(JsonReaderTest, ReadsAMegabyteInShortTime) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(number<float>(std::string(1 << 20, '9')), ServeError);
  EXPECT_EQ(parse_error(std::string(1 << 20, '9')), "");
  EXPECT_EQ(number<float>(std::string(2000, '9')), std::numeric_limits<float>::infinity());
  EXPECT_NE(parse_error(std::string(1 << 20, ' ')), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// S-062, S-063
TEST(JsonReaderTest, ReadsNumbersOfEachTypeUpToItsLimits) {
  EXPECT_EQ(number<int32_t>("-2147483648"), INT32_MIN);
  EXPECT_EQ(number<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(number<uint8_t>("255"), 255);
  EXPECT_EQ(number<int8_t>("-128"), -128);
  EXPECT_EQ(number<int64_t>("-0"), 0);
  EXPECT_THROW(number<uint8_t>("256"), ValueFault);
  EXPECT_THROW(number<uint8_t>("-1"), ValueFault);
  EXPECT_THROW(number<int32_t>("2147483648"), ValueFault);
  EXPECT_THROW(number<int64_t>("9223372036854775808"), ValueFault);
  for (const char* text : {"1.0", "1e2", "NaN", "\"1\"", "true", "null", "[1]"}) {
    EXPECT_THROW(number<int64_t>(text), ValueFault) << text;
  }
}

// S-100
TEST(JsonReaderTest, RoundsFloatsOnce) {
  // Halfway between two float32 values once rounded to double, above the middle before.
  EXPECT_EQ(number<float>("1.00000005960464477540"), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(number<float>("16777217"), 16777216.0F);
  EXPECT_EQ(number<float>("1e39"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(number<float>("-1e39"), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(number<float>("1e-60"), 0.0F);
  EXPECT_TRUE(std::signbit(number<float>("-1e-60")));
  EXPECT_TRUE(std::signbit(number<float>("-0.0")));
  EXPECT_TRUE(std::signbit(number<float>("-0")));
  EXPECT_TRUE(std::isnan(number<float>("NaN")));
  EXPECT_EQ(number<double>("-Inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(number<double>("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number<double>("1" + std::string(400, '0') + "e-400"), 1.0);
}

// S-100
TEST(JsonReaderTest, RoundsDecimalsAsTheLibraryDoes) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300000; ++i) {
    std::string text = std::to_string(random() >> (random() % 60));
    text.insert(random() % text.size() + 1, ".");
    if (text.back() == '.') text += "5";
    if (text[0] == '0' && text[1] != '.') continue;
    text = (i % 2 == 0 ? "-" : "") + text + " ";
    ASSERT_EQ(number<float>(text), std::strtof(text.c_str(), nullptr)) << text;
    ASSERT_EQ(number<double>(text), std::strtod(text.c_str(), nullptr)) << text;
  }
  // Halves between two float values, and their neighbours.
  for (const char* text : {"16777217.0 ", "16777217.00001 ", "16777216.99999 ", "0.0 ", "-0.0 "}) {
    ASSERT_EQ(number<float>(text), std::strtof(text, nullptr)) << text;
  }
  for (const char* text : {"1. ", "00.5 ", "-.5 ", "1.e5 "}) {
    EXPECT_THROW(number<float>(text), ServeError) << text;
  }
}

// S-101
TEST(JsonTextTest, EveryFloatComesBackEqual) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    std::string text;
    append_json_number(text, value);
    ASSERT_EQ(std::bit_cast<uint32_t>(number<float>(text)), bits) << text;
  }
}

// S-100
TEST(JsonTextTest, WritesTheShortestTextWithAPoint) {
  const auto text = [](auto value) {
    std::string out;
    append_json_number(out, value);
    return out;
  };
  EXPECT_EQ(text(0.2F), "0.2");
  EXPECT_EQ(text(4.0F), "4.0");
  EXPECT_EQ(text(-0.0F), "-0.0");
  EXPECT_EQ(text(1e20F), "1e+20");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(std::nanf("")), "NaN");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(text(int64_t{INT64_MIN}), "-9223372036854775808");
}

// S-102
TEST(JsonTextTest, EscapesStrings) {
  std::string text;
  append_json_string(text, std::string_view("a\"\\\n\x01\0\xC3\xA4", 8));
  EXPECT_EQ(text, "\"a\\\"\\\\\\n\\u0001\\u0000\xC3\xA4\"");
  EXPECT_EQ(string_of(text), std::string("a\"\\\n\x01\0\xC3\xA4", 8));
  EXPECT_EQ(string_of(R"("\ud83d\ude00\u00e4\/")"), "\xF0\x9F\x98\x80\xC3\xA4/");
}

// S-076
TEST(JsonTextTest, ErrorsAreOneLineOfUtf8) {
  const std::string error = json_error("a\nb\xFF" + std::string(2000, 'x'));
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_TRUE(is_utf8(error));
  EXPECT_TRUE(error.ends_with("...\"}"));
  EXPECT_EQ(one_line(std::string(1025, 'x')).size(), 1024U);
  EXPECT_EQ(one_line(std::string(1024, 'x')), std::string(1024, 'x'));
}

// S-102
TEST(Base64Test, ReturnsTheBytes) {
  std::string decoded;
  for (const std::string& bytes : {std::string(), std::string("a"), std::string("ab"),
                                   std::string("abc"), std::string("\0\xFF\x80\x01", 4)}) {
    std::string text;
    append_base64(text, bytes);
    ASSERT_TRUE(decode_base64(text, decoded)) << text;
    EXPECT_EQ(decoded, bytes);
  }
  EXPECT_TRUE(decode_base64("YQ", decoded));
  EXPECT_TRUE(decode_base64("-_-_", decoded));
  for (const char* text : {"Y", "YQ=", "YQ===", "Y Q=", "YQ==YQ==", "é"}) {
    EXPECT_FALSE(decode_base64(text, decoded)) << text;
  }
}

}  // namespace keel::serving::json_test

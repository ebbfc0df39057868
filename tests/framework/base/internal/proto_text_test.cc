// Tests framework/base/internal/proto_text.cc.
#include <keel/framework/base/internal/proto_text.h>

#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"

namespace keel::proto_text_test {

using testing_support::message_of;

// The descriptors of: syntax = "proto2"; package p; message M { optional int64 n = 1; optional M m
// = 2; }
std::vector<unsigned char> descriptors() {
  const auto field = [](char tag, const std::string& bytes) {
    return std::string(1, tag) + static_cast<char>(bytes.size()) + bytes;
  };
  const std::string n = field(0x0a, "n") + "\x18\x01\x20\x01\x28\x03";
  const std::string m = field(0x0a, "m") + "\x18\x02\x20\x01\x28\x0b" + field(0x32, ".p.M");
  const std::string message = field(0x0a, "M") + field(0x12, n) + field(0x12, m);
  const std::string file = field(0x0a, "p.proto") + field(0x12, "p") + field(0x22, message);
  const std::string set = field(0x0a, file);
  return {set.begin(), set.end()};
}

TEST(ProtoTextTest, ConvertsBothWays) {
  // Each call has its own pool, so the same names never collide.
  for (int i = 0; i < 2; ++i) {
    const std::string bytes = internal::wire_format_from_text(descriptors(), "p.M", "m { n: 5 }");
    EXPECT_EQ(bytes, std::string("\x12\x02\x08\x05"));
    EXPECT_EQ(internal::text_from_wire_format(descriptors(), "p.M", bytes), "m {\n  n: 5\n}\n");
  }
  EXPECT_EQ(internal::wire_format_from_text(descriptors(), "p.M", "# nothing\n"), "");
}

TEST(ProtoTextTest, ErrorsNameThePlace) {
  const auto error = [](const std::string& text) {
    return message_of<ValueError>(
        [&] { internal::wire_format_from_text(descriptors(), "p.M", text); });
  };
  EXPECT_TRUE(error("n: 1\n k: 2").starts_with("line 2, column 3: ")) << error("n: 1\n k: 2");
  EXPECT_NE(error("n: \"a\"").find("line 1"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 30; ++i) deep += "m {";
  EXPECT_NE(error(deep).find("line 1"), std::string::npos);
  EXPECT_THROW(internal::text_from_wire_format(descriptors(), "p.M", "\xFF"), ValueError);
  EXPECT_THROW(internal::text_from_wire_format(descriptors(), "p.N", ""), ValueError);
  EXPECT_THROW(internal::text_from_wire_format({}, "p.M", ""), ValueError);
}

}  // namespace keel::proto_text_test

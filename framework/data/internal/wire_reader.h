// WireReader: reads the fields of a protobuf message from its wire format without creating message
// objects. Private to framework/data.
//
// The bytes are not trusted: a member returns false (0 for a tag) if they are malformed, and
// nothing outside of them is read.
#pragma once

#include <cstdint>
#include <string_view>

namespace keel::data {

// The wire types that messages here use.
enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A cursor over the fields of a message. After an error, done() returns true.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : p_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Returns the tag of a field number and a wire type.
  static constexpr uint32_t tag(uint32_t field, WireType type) {
    return field << 3 | static_cast<uint32_t>(type);
  }
  static constexpr uint32_t field_of(uint32_t tag) { return tag >> 3; }

  // Returns true at the end of the message.
  bool done() const { return p_ == end_; }
  const char* position() const { return p_; }

  // Reads a varint. The test for a single byte is inlined, because most varints are short.
  bool varint(uint64_t& value) {
    if (p_ < end_ && static_cast<signed char>(*p_) >= 0) {
      value = static_cast<unsigned char>(*p_++);
      return true;
    }
    return long_varint(value);
  }

  // Returns the next tag, which encodes field number and wire type, or 0 if the bytes are
  // malformed.
  uint32_t next_tag() {
    constexpr uint64_t kLeast = tag(1, WireType::kVarint), kMost = UINT32_MAX;
    uint64_t value = 0;
    if (!varint(value) || value < kLeast || value > kMost) return fail();
    return static_cast<uint32_t>(value);
  }

  // Reads a length-delimited field; `value` refers to the message's bytes.
  bool bytes(std::string_view& value) {
    uint64_t size = 0;
    if (!varint(size) || size > static_cast<uint64_t>(end_ - p_)) return fail() != 0;
    value = {p_, static_cast<size_t>(size)};
    p_ += size;
    return true;
  }

  // Skips the value of a field.
  bool skip(uint32_t tag) {
    uint64_t number = 0;
    std::string_view text;
    switch (static_cast<WireType>(tag & 7)) {
      case WireType::kVarint:
        return varint(number);
      case WireType::kFixed64:
        return advance(8);
      case WireType::kBytes:
        return bytes(text);
      case WireType::kFixed32:
        return advance(4);
    }
    return fail() != 0;  // groups, which no message here contains
  }

  // Skips `count` bytes.
  bool advance(int64_t count) {
    if (end_ - p_ < count) return fail() != 0;
    p_ += count;
    return true;
  }

 private:
  bool long_varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && p_ < end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*p_++);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return fail() != 0;
  }
  uint32_t fail() {
    p_ = end_;
    return 0;
  }

  const char* p_;
  const char* end_;
};

}  // namespace keel::data

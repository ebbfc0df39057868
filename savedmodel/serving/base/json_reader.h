// JsonReader: reads JSON (RFC 8259) from memory in one pass, without building a tree.
//
//   JsonReader json(body);
//   std::string key;
//   json.enter_object();
//   while (json.next_key(key)) {
//     if (key == "rows") rows = json.read_integer<int64_t>(); else json.skip_value();
//   }
//
// The tokens NaN, Infinity, -Infinity, Inf and -Inf are numbers. Text that is not JSON, invalid
// UTF-8 and nesting deeper than kMaxDepth throw ServeError "JSON Parse error: ... at offset N". A
// value of another type than requested throws ValueFault.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {

// The type of a JSON value.
enum class JsonKind { kObject, kArray, kString, kNumber, kBool, kNull };
// Returns "an object", "a number", ...
const char* name_of(JsonKind kind);

// Reads one JSON text, which must outlive the reader.
class JsonReader {
 public:
  static constexpr int kMaxDepth = 64;

  // Starts at the first value; skips a byte order mark.
  explicit JsonReader(std::string_view text);

  // Returns the kind of the next value. Throws if there is none.
  JsonKind kind();

  // Enters the object or array that comes next.
  void enter_object();
  void enter_array();
  // Moves to the next member of the object or element of the array that was entered last. Returns
  // false, and leaves it, at its end. The view of next_key() is valid until the next call of it.
  bool next_key(std::string& key);
  // Like next_key(), but skips members that are null: a client that writes null leaves them out.
  bool next_member(std::string& key);
  bool next_element() {
    if (first_[depth_]) return first_element();
    return following_element();
  }

  // Reads the number that comes next, rounded to T, infinite if it is too large.
  template <class T>
  T read_float();
  // Reads the number that comes next, which must be an integer without point and exponent in the
  // range of T.
  template <class T>
  T read_integer();
  // Returns the text of the number that comes next.
  std::string_view read_number_text();
  bool read_bool();
  void read_null();
  void read_string(std::string& out);
  // Skips the next value, checking that it is JSON.
  void skip_value();
  // Throws unless only white space is left.
  void expect_end();

  // The position of the next unread byte. set_offset() moves to a value at the current depth.
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }
  void set_offset(size_t offset) { at_ = begin_ + offset; }

  [[noreturn]] void fail(const char* problem) const;

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  void enter(char open, JsonKind kind);
  bool first_element();
  bool following_element();
  // Finds the end of the number at at_ without moving.
  const char* number_end();
  [[noreturn]] void fail_kind(const char* needed);
  void expect_literal(std::string_view literal);
  void read_escape(std::string& out);
  uint32_t read_hex4();

  const char* begin_;
  const char* at_;
  const char* end_;
  int depth_ = 0;
  std::array<bool, kMaxDepth + 1> first_ = {};
};

}  // namespace keel::serving

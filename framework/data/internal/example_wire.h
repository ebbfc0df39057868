// Locates and reads the values of features in the bytes of a tf.Example. Private to framework/data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <keel/framework/base/dtype.h>
#include <keel/framework/data/internal/wire_reader.h>

namespace keel::data {

// The kind of a feature's list of values; the numbers are those of the fields in the Feature
// message.
enum class ListKind : uint8_t { kMissing = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// The list of values of a feature: consecutive fields of one kind in the Feature message.
struct ValueList {
  ListKind kind = ListKind::kMissing;
  std::string_view bytes;
};

// Returns the list kind of a dtype, or kMissing if no list has this dtype.
ListKind list_kind_of(DType dtype);
// Returns the dtype of a list kind, which must not be kMissing.
DType dtype_of_list(ListKind kind);

// Finds the list of values of a feature. If the message has several kinds, the last one applies.
// Returns false if the bytes of the message are malformed.
bool find_list(std::string_view feature, ValueList& out);

// Returns the number of values, or -1 if the bytes are malformed.
int64_t count_values(const ValueList& list);

// Writes the values to `out`, which must have room for count_values() elements. The type of `out`
// must match the list's kind. Returns false if the bytes are malformed.
bool read_values(const ValueList& list, float* out);
bool read_values(const ValueList& list, int64_t* out);
bool read_values(const ValueList& list, std::string* out);

// Calls take(name, feature message) for each entry, in order. Returns false if the bytes are
// malformed.
template <class Take>
bool for_each_feature(std::string_view example, Take&& take) {
  constexpr uint32_t kFirst = WireReader::tag(1, WireType::kBytes);
  constexpr uint32_t kSecond = WireReader::tag(2, WireType::kBytes);
  // Calls inner(value) for each field 1, which must be a message.
  const auto each = [](std::string_view message, auto&& inner) {
    WireReader reader(message);
    while (!reader.done()) {
      const uint32_t tag = reader.next_tag();
      std::string_view value;
      if (tag == kFirst) {
        if (!reader.bytes(value) || !inner(value)) return false;
      } else if (tag == 0 || WireReader::field_of(tag) == 1 || !reader.skip(tag)) {
        return false;
      }
    }
    return true;
  };
  const auto entry = [&](std::string_view bytes) {
    WireReader reader(bytes);
    std::string_view name, feature;
    while (!reader.done()) {
      const uint32_t tag = reader.next_tag();
      if (tag == kFirst) {
        if (!reader.bytes(name)) return false;
      } else if (tag == kSecond) {
        if (!reader.bytes(feature)) return false;
      } else if (tag == 0 || WireReader::field_of(tag) <= 2 || !reader.skip(tag)) {
        return false;
      }
    }
    take(name, feature);
    return true;
  };
  return each(example, [&](std::string_view features) { return each(features, entry); });
}

}  // namespace keel::data

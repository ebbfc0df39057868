// Where the values of features lie in the bytes of a tf.Example. Private to framework/data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <keel/framework/base/dtype.h>
#include <keel/framework/data/internal/wire_reader.h>

namespace keel::data {

// The list of values of a feature: a run of fields of one kind in the feature's message. The kinds
// are the numbers of these fields.
enum class ListKind : uint8_t { kMissing = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

struct ValueList {
  ListKind kind = ListKind::kMissing;
  std::string_view bytes;
};

ListKind list_kind_of(DType dtype);  // kMissing for a dtype that no list has
DType dtype_of_list(ListKind kind);  // not of kMissing

// False if the bytes of a feature's message are malformed. Of several kinds the last one counts.
bool find_list(std::string_view feature, ValueList& out);

// How many values; -1 if the bytes are malformed.
int64_t count_values(const ValueList& list);

// Writes them, count_values() many, of the list's own dtype. False if the bytes are malformed.
bool read_values(const ValueList& list, float* out);
bool read_values(const ValueList& list, int64_t* out);
bool read_values(const ValueList& list, std::string* out);

// Calls take(name, feature's message) for each entry, in order. False if the bytes are malformed.
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

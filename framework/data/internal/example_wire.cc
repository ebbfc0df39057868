#include <keel/framework/data/internal/example_wire.h>

#include <bit>
#include <cstring>

namespace keel::data {
namespace {

static_assert(std::endian::native == std::endian::little, "packed floats are little-endian");

constexpr uint32_t kPacked = WireReader::tag(1, WireType::kBytes);
constexpr uint32_t kOneFloat = WireReader::tag(1, WireType::kFixed32);
constexpr uint32_t kOneInteger = WireReader::tag(1, WireType::kVarint);

// Returns the number of varints, or -1 if the last one is incomplete. Each varint ends with the
// only byte whose high bit is clear.
int64_t count_varints(std::string_view bytes) {
  if (!bytes.empty() && static_cast<signed char>(bytes.back()) < 0) return -1;
  int64_t count = 0;
  for (const char byte : bytes) count += static_cast<signed char>(byte) >= 0 ? 1 : 0;
  return count;
}

// Sinks receive the values of a list. Each member returns false if the bytes are malformed.
struct Counter {
  int64_t count = 0;

  bool text(std::string_view) { return ++count > 0; }
  bool one_float(const char*) { return ++count > 0; }
  bool one_integer(uint64_t) { return ++count > 0; }
  bool floats(std::string_view packed) {
    count += static_cast<int64_t>(packed.size() / sizeof(float));
    return packed.size() % sizeof(float) == 0;
  }
  bool integers(std::string_view packed) {
    const int64_t more = count_varints(packed);
    count += more;
    return more >= 0;
  }
};

struct FloatSink {
  float* out;

  bool one_float(const char* p) {
    std::memcpy(out++, p, sizeof(float));
    return true;
  }
  bool floats(std::string_view packed) {
    if (packed.size() % sizeof(float) != 0) return false;
    if (!packed.empty()) std::memcpy(out, packed.data(), packed.size());
    out += packed.size() / sizeof(float);
    return true;
  }
};

struct IntegerSink {
  int64_t* out;

  bool one_integer(uint64_t value) {
    *out++ = static_cast<int64_t>(value);
    return true;
  }
  bool integers(std::string_view packed) {
    WireReader reader(packed);
    uint64_t value = 0;
    while (!reader.done()) {
      if (!reader.varint(value)) return false;
      *out++ = static_cast<int64_t>(value);
    }
    return true;
  }
};

struct TextSink {
  std::string* out;

  bool text(std::string_view value) {
    (out++)->assign(value);
    return true;
  }
};

// Passes the values of one list message (its field 1, packed or not) to the sink.
template <ListKind kKind, class Sink>
bool visit_values(std::string_view message, Sink& sink) {
  WireReader reader(message);
  while (!reader.done()) {
    const uint32_t tag = reader.next_tag();
    std::string_view bytes;
    uint64_t number = 0;
    if (tag == kPacked) {
      if (!reader.bytes(bytes)) return false;
      bool fits = true;
      if constexpr (kKind == ListKind::kBytes) fits = sink.text(bytes);
      if constexpr (kKind == ListKind::kFloat) fits = sink.floats(bytes);
      if constexpr (kKind == ListKind::kInt64) fits = sink.integers(bytes);
      if (!fits) return false;
    } else if (kKind == ListKind::kFloat && tag == kOneFloat) {
      const char* const value = reader.position();
      if (!reader.advance(sizeof(float))) return false;
      if constexpr (kKind == ListKind::kFloat) sink.one_float(value);
    } else if (kKind == ListKind::kInt64 && tag == kOneInteger) {
      if (!reader.varint(number)) return false;
      if constexpr (kKind == ListKind::kInt64) sink.one_integer(number);
    } else if (tag == 0 || WireReader::field_of(tag) == 1 || !reader.skip(tag)) {
      return false;
    }
  }
  return true;
}

// Passes the values of all list messages of `list` to the sink.
template <ListKind kKind, class Sink>
bool visit_list(const ValueList& list, Sink& sink) {
  constexpr uint32_t kTag = WireReader::tag(static_cast<uint32_t>(kKind), WireType::kBytes);
  WireReader reader(list.bytes);
  while (!reader.done()) {
    const uint32_t tag = reader.next_tag();
    std::string_view message;
    if (tag == kTag) {
      if (!reader.bytes(message) || !visit_values<kKind>(message, sink)) return false;
    } else if (tag == 0 || !reader.skip(tag)) {
      return false;
    }
  }
  return true;
}

}  // namespace

ListKind list_kind_of(DType dtype) {
  if (dtype == DType::kString) return ListKind::kBytes;
  if (dtype == DType::kFloat32) return ListKind::kFloat;
  return dtype == DType::kInt64 ? ListKind::kInt64 : ListKind::kMissing;
}

DType dtype_of_list(ListKind kind) {
  if (kind == ListKind::kBytes) return DType::kString;
  return kind == ListKind::kFloat ? DType::kFloat32 : DType::kInt64;
}

bool find_list(std::string_view feature, ValueList& out) {
  out = {};
  WireReader reader(feature);
  while (!reader.done()) {
    const char* const begin = reader.position();
    const uint32_t tag = reader.next_tag();
    if (tag == 0) return false;
    const uint32_t field = WireReader::field_of(tag);
    if (field <= 3) {
      if (tag != WireReader::tag(field, WireType::kBytes)) return false;
      if (out.kind != static_cast<ListKind>(field)) {
        out.kind = static_cast<ListKind>(field);
        out.bytes = {begin, static_cast<size_t>(feature.data() + feature.size() - begin)};
      }
    }
    if (!reader.skip(tag)) return false;
  }
  return true;
}

int64_t count_values(const ValueList& list) {
  Counter counter;
  bool fits = true;
  if (list.kind == ListKind::kBytes) fits = visit_list<ListKind::kBytes>(list, counter);
  if (list.kind == ListKind::kFloat) fits = visit_list<ListKind::kFloat>(list, counter);
  if (list.kind == ListKind::kInt64) fits = visit_list<ListKind::kInt64>(list, counter);
  return fits ? counter.count : -1;
}

bool read_values(const ValueList& list, float* out) {
  FloatSink sink{out};
  return visit_list<ListKind::kFloat>(list, sink);
}

bool read_values(const ValueList& list, int64_t* out) {
  IntegerSink sink{out};
  return visit_list<ListKind::kInt64>(list, sink);
}

bool read_values(const ValueList& list, std::string* out) {
  TextSink sink{out};
  return visit_list<ListKind::kBytes>(list, sink);
}

}  // namespace keel::data

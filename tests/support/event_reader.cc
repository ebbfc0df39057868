#include "tests/support/event_reader.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace keel {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

uint32_t bitwise_crc32c(const std::string& bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

uint32_t masked(const std::string& bytes) {
  const uint32_t crc = bitwise_crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

uint64_t little_endian(const std::string& bytes) {
  uint64_t out = 0;
  for (size_t i = bytes.size(); i > 0; --i)
    out = out << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return out;
}

template <class To>
To reinterpreted(const std::string& bytes) {
  require(bytes.size() == sizeof(To), "a number of another size");
  To out = {};
  std::memcpy(&out, bytes.data(), sizeof(out));
  return out;
}

uint64_t take_varint(const std::string& bytes, size_t& at) {
  uint64_t out = 0;
  for (int shift = 0;; shift += 7) {
    require(at < bytes.size() && shift < 64, "a varint without end");
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    out |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return out;
  }
}

std::string take(const std::string& bytes, size_t& at, uint64_t count) {
  require(count <= bytes.size() - at, "the bytes end early");
  at += count;
  return bytes.substr(at - count, count);
}

// Calls fn(number, bytes of the value) for each field. Varints are passed as 8 bytes.
void for_each_field(const std::string& message,
                    const std::function<void(uint64_t, const std::string&)>& fn) {
  for (size_t at = 0; at < message.size();) {
    const uint64_t tag = take_varint(message, at);
    require(tag >> 3 != 0, "a field of number 0");
    switch (tag & 7) {
      case 0: {
        const uint64_t number = take_varint(message, at);
        fn(tag >> 3, {reinterpret_cast<const char*>(&number), sizeof(number)});
        break;
      }
      case 1:
        fn(tag >> 3, take(message, at, 8));
        break;
      case 2: {
        const uint64_t size = take_varint(message, at);
        fn(tag >> 3, take(message, at, size));
        break;
      }
      case 5:
        fn(tag >> 3, take(message, at, 4));
        break;
      default:
        require(false, "a wire type that is none");
    }
  }
}

std::vector<double> doubles(const std::string& packed) {
  require(packed.size() % sizeof(double) == 0, "packed doubles of another size");
  std::vector<double> out(packed.size() / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), packed.data(), packed.size());
  return out;
}

ReadHistogram histogram_of(const std::string& message) {
  ReadHistogram out;
  for_each_field(message, [&](uint64_t number, const std::string& bytes) {
    if (number == 1) out.min = reinterpreted<double>(bytes);
    if (number == 2) out.max = reinterpreted<double>(bytes);
    if (number == 3) out.num = reinterpreted<double>(bytes);
    if (number == 4) out.sum = reinterpreted<double>(bytes);
    if (number == 5) out.sum_squares = reinterpreted<double>(bytes);
    if (number == 6) out.limits = doubles(bytes);
    if (number == 7) out.counts = doubles(bytes);
  });
  return out;
}

ReadImage image_of(const std::string& message) {
  ReadImage out;
  for_each_field(message, [&](uint64_t number, const std::string& bytes) {
    if (number == 1) out.height = reinterpreted<int64_t>(bytes);
    if (number == 2) out.width = reinterpreted<int64_t>(bytes);
    if (number == 3) out.channels = reinterpreted<int64_t>(bytes);
    if (number == 4) out.file = bytes;
  });
  return out;
}

ReadEvent::Value value_of(const std::string& message) {
  ReadEvent::Value out;
  for_each_field(message, [&](uint64_t number, const std::string& bytes) {
    if (number == 1) out.tag = bytes;
    if (number == 2) {
      out.is_scalar = true;
      out.scalar = reinterpreted<float>(bytes);
    }
    if (number == 4) {
      out.is_image = true;
      out.image = image_of(bytes);
    }
    if (number == 5) {
      out.is_histogram = true;
      out.histogram = histogram_of(bytes);
    }
  });
  return out;
}

ReadEvent event_of(const std::string& message) {
  ReadEvent out;
  for_each_field(message, [&](uint64_t number, const std::string& bytes) {
    if (number == 1) out.wall_time = reinterpreted<double>(bytes);
    if (number == 2) out.step = reinterpreted<int64_t>(bytes);
    if (number == 3) out.file_version = bytes;
    if (number == 5) {
      for_each_field(bytes, [&](uint64_t inner, const std::string& value) {
        if (inner == 1) out.values.push_back(value_of(value));
      });
    }
  });
  return out;
}

}  // namespace

std::vector<ReadEvent> read_events(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string bytes = text.str();
  std::vector<ReadEvent> out;
  for (size_t at = 0; at < bytes.size();) {
    const std::string length = take(bytes, at, 8);
    require(little_endian(take(bytes, at, 4)) == masked(length), "the length's checksum");
    const std::string record = take(bytes, at, little_endian(length));
    require(little_endian(take(bytes, at, 4)) == masked(record), "the record's checksum");
    out.push_back(event_of(record));
  }
  return out;
}

}  // namespace keel

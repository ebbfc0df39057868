// MessageWriter and MessageReader: values in the messages that processes exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Appends values to a message, without padding.
class MessageWriter {
 public:
  // Appends a number.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    put_all(std::span<const T>(&value, 1));
  }
  // Appends a string.
  void put(const std::string& text) {
    put(std::ssize(text));
    put_all(std::span<const char>(text));
  }
  // Appends numbers, without their count.
  template <class T>
  void put_all(std::span<const T> values) {
    const Bytes bytes = std::as_bytes(values);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void clear() { bytes_.clear(); }
  Bytes bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Returns the values of a message in the order in which they were appended. Refers to the message.
class MessageReader {
 public:
  MessageReader() = default;
  explicit MessageReader(Bytes bytes) : rest_(bytes) {}

  // Returns the next value. T is a number or std::string.
  template <class T>
  T get() {
    if constexpr (std::is_same_v<T, std::string>) {
      std::string out(get<int64_t>(), '\0');
      get_all(std::span<char>(out));
      return out;
    } else {
      T out;
      get_all(std::span<T>(&out, 1));
      return out;
    }
  }
  // Fills `out` with the next numbers.
  template <class T>
  void get_all(std::span<T> out) {
    const size_t bytes = out.size_bytes();
    if (bytes > rest_.size()) throw RuntimeError("TPUEmbedding: a message is incomplete");
    if (bytes > 0) std::memcpy(out.data(), rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }
  bool empty() const { return rest_.empty(); }

 private:
  Bytes rest_;
};

}  // namespace keel::distribute

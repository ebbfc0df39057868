// A fast 64-bit checksum that detects accidental damage. It does not protect against forgery.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace keel {

// Computes the checksum of a byte sequence that is added in pieces. It runs four chains of x -> (x
// ^ word) * odd; each chain takes one 8-byte word of every 32-byte block. Every step is a
// bijection, so a difference in a single word always changes the result.
class Checksum {
 public:
  // Adds `count` bytes. Every call except the last must add a multiple of 32 bytes; the last block
  // is padded with zeros.
  void add(const void* bytes, size_t count) {
    const auto* from = static_cast<const char*>(bytes);
    size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) add_block(from + i);
    if (i == count) return;
    std::array<char, kBlock> last = {};
    std::memcpy(last.data(), from + i, count - i);
    add_block(last.data());
  }
  // Returns the checksum of all added bytes. `length` is their total number.
  uint64_t sum(uint64_t length) const {
    uint64_t out = length * kOdd;
    for (uint64_t chain : chains_) {
      out = (out ^ chain) * kOdd;
      out ^= out >> 32;
    }
    return out;
  }

 private:
  static constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  static constexpr size_t kBlock = 32;

  void add_block(const char* bytes) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes, kBlock);
    for (int k = 0; k < 4; ++k) {
      chains_[k] = (chains_[k] ^ words[k]) * kOdd;
      chains_[k] ^= chains_[k] >> 29;
    }
  }

  std::array<uint64_t, 4> chains_ = {1, 2, 3, 4};
};

// Returns the checksum of `count` bytes.
inline uint64_t checksum_of(const void* bytes, size_t count) {
  Checksum checksum;
  checksum.add(bytes, count);
  return checksum.sum(count);
}

}  // namespace keel

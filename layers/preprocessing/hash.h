// SipHash-2-4, a keyed hash of bytes (Aumasson and Bernstein 2012).
#pragma once

#include <cstdint>
#include <string_view>

namespace keel {

// The same on every machine: bytes are read as little-endian words.
uint64_t siphash24(uint64_t key0, uint64_t key1, std::string_view bytes);

}  // namespace keel

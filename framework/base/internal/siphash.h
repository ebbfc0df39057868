// SipHash-2-4, a hash of strings that is the same on all machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace keel {

// Returns the SipHash-2-4 of bytes, read as little-endian words (Aumasson and Bernstein 2012).
uint64_t siphash24(uint64_t key0, uint64_t key1, std::string_view bytes);

}  // namespace keel

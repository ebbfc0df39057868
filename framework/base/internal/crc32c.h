// CRC32C (Castagnoli's polynomial): the checksum of the records in TFRecord and event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace keel {

// Returns the CRC32C of `bytes`. Uses the processor's instruction (SSE 4.2) if it has one.
uint32_t crc32c(std::string_view bytes);

// Returns the masked CRC32C that record files store: the checksum rotated right by 15 bits, plus a
// constant. Masking keeps the checksum strong for data that itself contains checksums.
uint32_t masked_crc32c(std::string_view bytes);

namespace crc32c_internal {
// Computes crc32c() in portable code, for processors without the instruction and for tests.
uint32_t portable_crc32c(std::string_view bytes);
}  // namespace crc32c_internal

}  // namespace keel

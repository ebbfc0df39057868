// CRC32C: the checksum of the records in TFRecord and event files (Castagnoli's polynomial).
#pragma once

#include <cstdint>
#include <string_view>

namespace keel {

uint32_t crc32c(std::string_view bytes);

// As record files store it, so that a checksum of bytes that hold checksums is still a good one:
// rotated, plus a constant.
uint32_t masked_crc32c(std::string_view bytes);

namespace crc32c_internal {
// What crc32c() does on processors without an instruction for it.
uint32_t portable_crc32c(std::string_view bytes);
}  // namespace crc32c_internal

}  // namespace keel

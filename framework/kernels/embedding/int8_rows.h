// Int8Row: a row of a table quantized to 8 bits per element. Code c of a row represents
// offset + scale * c, with one scale and one offset per row. Such rows are for serving; they are
// not trained.
#pragma once

#include <cstdint>
#include <cstring>

namespace keel::kernels {

// A view of a row in memory: scale, offset, then the codes. A row is one contiguous run of bytes,
// so a lookup touches a single place.
struct Int8Row {
  static constexpr int64_t kHead = 2 * sizeof(float);
  // Bytes of a row of a table of `dim` columns.
  static int64_t bytes(int64_t dim) { return kHead + (dim + 7) / 8 * 8; }

  explicit Int8Row(const char* bytes) : codes(reinterpret_cast<const uint8_t*>(bytes) + kHead) {
    std::memcpy(&scale, bytes, sizeof(scale));
    std::memcpy(&offset, bytes + sizeof(scale), sizeof(offset));
  }
  float operator[](int64_t i) const { return offset + scale * static_cast<float>(codes[i]); }

  float scale, offset;
  const uint8_t* codes;
};

// Quantizes a row of `dim` elements to Int8Row::bytes(dim) bytes at `to`. Codes 0 and 255 represent
// the minimum and the maximum; every other element gets the nearest code, so the error is at most
// half of scale plus float rounding. Returns false and writes nothing if an element, or the
// difference of maximum and minimum, is not finite.
bool quantize_row_int8(const float* row, int64_t dim, char* to);
// Dequantizes a row of `dim` elements.
void to_floats(const Int8Row& row, int64_t dim, float* to);

}  // namespace keel::kernels

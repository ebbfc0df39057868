// Rows of a table in 8 bits an element: code c of a row stands for offset + scale c, where scale
// and offset are the row's own. For serving: nothing trains such rows.
#pragma once

#include <cstdint>
#include <cstring>

namespace keel::kernels {

// As it stands in memory: scale, offset, then the codes. One row is one run of bytes, so that a
// lookup goes to one place.
struct Int8Row {
  static constexpr int64_t kHead = 2 * sizeof(float);
  // Of a row of a table of `dim` columns.
  static int64_t bytes(int64_t dim) { return kHead + (dim + 7) / 8 * 8; }

  explicit Int8Row(const char* bytes) : codes(reinterpret_cast<const uint8_t*>(bytes) + kHead) {
    std::memcpy(&scale, bytes, sizeof(scale));
    std::memcpy(&offset, bytes + sizeof(scale), sizeof(offset));
  }
  float operator[](int64_t i) const { return offset + scale * static_cast<float>(codes[i]); }

  float scale, offset;
  const uint8_t* codes;
};

// Codes 0 and 255 are the least and the largest element; the others are the nearest codes, so that
// no element is off by more than half of scale and the rounding of floats. False, with nothing
// written, if an element or the largest less the least is not finite.
bool quantize_row_int8(const float* row, int64_t dim, char* to);
void to_floats(const Int8Row& row, int64_t dim, float* to);

}  // namespace keel::kernels

// AbsMaxRow: a row of a table quantized to int8 codes with one scale per row. Code c of a row
// represents c / scale, as in Keras's int8 tables (framework/internal/quantizers.h).
#pragma once

#include <cstdint>
#include <cstring>

#include <keel/framework/kernels/half_parts.h>

namespace keel::kernels {

// A view of a quantized row. Element i is the dequantized value codes[i] / scale.
struct AbsMaxRow {
  float operator[](int64_t i) const { return static_cast<float>(codes[i]) / scale; }

  const int8_t* codes;
  float scale;
};

// Quantizes a row of `dim` elements: scale = 127 / (max |x| + 1e-7), and each code is x * scale
// rounded to the nearest integer (ties to even), clamped to [-127, 127]. All arithmetic is done in
// float, as in NumPy. Returns false and writes nothing if an element is not finite.
bool quantize_row_abs_max(const float* row, int64_t dim, int8_t* codes, float* scale);

// Dequantizes a row of `dim` elements. Inline, so that loops compiled for a constant `dim` unroll
// it.
inline void to_floats(const AbsMaxRow& row, int64_t dim, float* __restrict to) {
  constexpr int64_t kPart = sizeof(FloatPart) / sizeof(float);
  int64_t i = 0;
  for (; i + kPart <= dim; i += kPart) {
    const FloatPart part = load_part(row.codes + i) / row.scale;
    std::memcpy(to + i, &part, sizeof(part));
  }
  if (dim % kPart == 0) return;  // GCC does not derive this from the loop condition
  for (; i < dim; ++i) to[i] = row[i];
}

}  // namespace keel::kernels

// Rows of a table in signed bytes with a scale each: code c of a row stands for c / scale, as in
// the int8 tables of Keras (framework/internal/quantizers.h).
#pragma once

#include <cstdint>
#include <cstring>

#include <keel/framework/kernels/half_parts.h>

namespace keel::kernels {

struct AbsMaxRow {
  float operator[](int64_t i) const { return static_cast<float>(codes[i]) / scale; }

  const int8_t* codes;
  float scale;
};

// scale = 127 / (the largest |x| of the row + 1e-7); a code is x scale, rounded to the nearest, a
// half to the even one, within -127 and 127. All in floats, as NumPy does it. False, with nothing
// written, if an element is not finite.
bool quantize_row_abs_max(const float* row, int64_t dim, int8_t* codes, float* scale);

// Inline, for loops that are compiled for one dim.
inline void to_floats(const AbsMaxRow& row, int64_t dim, float* __restrict to) {
  constexpr int64_t kPart = sizeof(FloatPart) / sizeof(float);
  int64_t i = 0;
  for (; i + kPart <= dim; i += kPart) {
    const FloatPart part = load_part(row.codes + i) / row.scale;
    std::memcpy(to + i, &part, sizeof(part));
  }
  if (dim % kPart == 0) return;  // which GCC does not see of the loop
  for (; i < dim; ++i) to[i] = row[i];
}

}  // namespace keel::kernels

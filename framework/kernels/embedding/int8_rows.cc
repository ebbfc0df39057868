#include <keel/framework/kernels/embedding/int8_rows.h>

#include <algorithm>
#include <cmath>

namespace keel::kernels {

bool quantize_row_int8(const float* row, int64_t dim, char* to) {
  constexpr float kMostCode = 255;
  const auto is_finite = [](float x) { return std::isfinite(x); };
  if (!std::all_of(row, row + dim, is_finite)) return false;
  const float offset = dim == 0 ? 0.0F : *std::min_element(row, row + dim);
  const float range = dim == 0 ? 0.0F : *std::max_element(row, row + dim) - offset;
  const float scale = range / kMostCode;
  if (!std::isfinite(range)) return false;
  std::memcpy(to, &scale, sizeof(scale));
  std::memcpy(to + sizeof(scale), &offset, sizeof(offset));
  const double per_unit = scale == 0 ? 0.0 : 1.0 / static_cast<double>(scale);
  for (int64_t i = 0; i < dim; ++i) {
    const double code = (static_cast<double>(row[i]) - offset) * per_unit;
    to[Int8Row::kHead + i] = static_cast<char>(
        static_cast<uint8_t>(std::min(std::nearbyint(code), static_cast<double>(kMostCode))));
  }
  return true;
}

void to_floats(const Int8Row& row, int64_t dim, float* __restrict to) {
  const uint8_t* __restrict codes = row.codes;
  for (int64_t i = 0; i < dim; ++i) {
    to[i] = row.offset + row.scale * static_cast<float>(codes[i]);
  }
}

}  // namespace keel::kernels

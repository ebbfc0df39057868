#include <keel/framework/kernels/embedding/abs_max_rows.h>

#include <algorithm>
#include <cmath>

namespace keel::kernels {

bool quantize_row_abs_max(const float* row, int64_t dim, int8_t* codes, float* scale) {
  constexpr float kMostCode = 127;
  constexpr float kEpsilon = 1e-7F;
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < dim; ++i) {
    finite = finite && std::isfinite(row[i]);
    most = std::max(most, std::abs(row[i]));
  }
  if (!finite) return false;
  *scale = kMostCode / (most + kEpsilon);
  for (int64_t i = 0; i < dim; ++i) {
    const float code = std::nearbyint(row[i] * *scale);
    codes[i] = static_cast<int8_t>(std::clamp(code, -kMostCode, kMostCode));
  }
  return true;
}

}  // namespace keel::kernels

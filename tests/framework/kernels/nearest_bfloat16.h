// nearest_bfloat16: the value to which bfloat16 kernels round a float.
#pragma once

#include <cmath>

namespace keel::testing_support {

// Returns the nearest number with 8 significant bits (ties to even). Uses arithmetic instead of
// bits, so that it is independent of the kernels.
inline float nearest_bfloat16(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
}

}  // namespace keel::testing_support

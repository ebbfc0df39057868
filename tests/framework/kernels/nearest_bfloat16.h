// What kernels of bfloat16 take a float for.
#pragma once

#include <cmath>

namespace keel::testing_support {

// The nearest number of 8 significant bits, of two the even one, by arithmetic instead of bits.
inline float nearest_bfloat16(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
}

}  // namespace keel::testing_support

// Sines and cosines of angles of any magnitude, with the same bits on every machine.
#pragma once

#include <cmath>

#include <keel/framework/internal/math.h>

namespace keel::math {

// Return the sine and the cosine of an angle in radians of magnitude 2^45 or more, which
// math::sin() and math::cos() do not accept. Errors are below 2 units in the last place. Infinite
// angles and NaN give NaN.
double sin_of_large(double x);
double cos_of_large(double x);

// Return the sine and the cosine of any angle in radians.
inline double full_range_sin(double x) { return std::abs(x) < 0x1p45 ? sin(x) : sin_of_large(x); }
inline double full_range_cos(double x) { return std::abs(x) < 0x1p45 ? cos(x) : cos_of_large(x); }

}  // namespace keel::math

// Elementwise mathematics of keras.ops. Operands broadcast and get their common dtype. Functions
// whose results are not integers convert integers and bools to float32. Complex numbers do not
// exist in Keel.
#pragma once

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// ---- Arithmetic.

Tensor add(const Operand& x1, const Operand& x2);            // x1 + x2
Tensor subtract(const Operand& x1, const Operand& x2);       // x1 - x2
Tensor multiply(const Operand& x1, const Operand& x2);       // x1 * x2
Tensor divide(const Operand& x1, const Operand& x2);         // x1 / x2, floating-point
Tensor true_divide(const Operand& x1, const Operand& x2);    // the same as divide()
Tensor divide_no_nan(const Operand& x1, const Operand& x2);  // 0 where x2 is 0
Tensor floor_divide(const Operand& x1, const Operand& x2);   // floor(x1 / x2); for integers by 0: 0
Tensor mod(const Operand& x1, const Operand& x2);            // remainder with the sign of x2
Tensor fmod(const Operand& x1, const Operand& x2);           // remainder with the sign of x1
Tensor power(const Operand& x1, const Operand& x2);          // x1 to the power x2
Tensor negative(const Tensor& x);                            // -x
Tensor reciprocal(const Tensor& x);                          // 1 / x
Tensor abs(const Tensor& x);                                 // |x|
Tensor absolute(const Tensor& x);                            // the same as abs()
Tensor fabs(const Tensor& x);                                // |x|, floating-point
Tensor sign(const Tensor& x);                                // -1, 0 or 1
Tensor square(const Tensor& x);                              // x * x
Tensor maximum(const Operand& x1, const Operand& x2);        // the greater one; NaN if one is NaN
Tensor minimum(const Operand& x1, const Operand& x2);        // the smaller one; NaN if one is NaN
Tensor fmax(const Operand& x1, const Operand& x2);           // the greater one; ignores NaN
Tensor fmin(const Operand& x1, const Operand& x2);           // the smaller one; ignores NaN
// Returns x where it is within the bounds, and the nearer bound elsewhere.
Tensor clip(const Tensor& x, const Operand& x_min, const Operand& x_max);
// Divide integers, also of different signs; the result is not negative.
Tensor gcd(const Operand& x1, const Operand& x2);  // the greatest common divisor of integers
Tensor lcm(const Operand& x1, const Operand& x2);  // the least common multiple of integers

// ---- Exponentials and logarithms.

Tensor sqrt(const Tensor& x);                             // the square root
Tensor rsqrt(const Tensor& x);                            // 1 / sqrt(x)
Tensor cbrt(const Tensor& x);                             // the cube root
Tensor exp(const Tensor& x);                              // e^x
Tensor exp2(const Tensor& x);                             // 2^x
Tensor expm1(const Tensor& x);                            // e^x - 1
Tensor log(const Tensor& x);                              // the natural logarithm
Tensor log10(const Tensor& x);                            // the decimal logarithm
Tensor log1p(const Tensor& x);                            // log(1 + x)
Tensor log2(const Tensor& x);                             // the binary logarithm
Tensor logaddexp(const Operand& x1, const Operand& x2);   // log(e^x1 + e^x2)
Tensor logaddexp2(const Operand& x1, const Operand& x2);  // log2(2^x1 + 2^x2)
Tensor ldexp(const Operand& x1, const Operand& x2);       // x1 2^x2

// ---- Trigonometric and hyperbolic functions.

// Compute the function of the name; angles are in radians.
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor arcsin(const Tensor& x);
Tensor arccos(const Tensor& x);
Tensor arctan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor arcsinh(const Tensor& x);
Tensor arccosh(const Tensor& x);
Tensor arctanh(const Tensor& x);
Tensor arctan2(const Operand& x1, const Operand& x2);  // the angle of the point (x2, x1)
Tensor sinc(const Tensor& x);                          // sin(pi x) / (pi x)
Tensor hypot(const Operand& x1, const Operand& x2);    // sqrt(x1^2 + x2^2)
Tensor deg2rad(const Tensor& x);                       // degrees to radians
Tensor rad2deg(const Tensor& x);                       // radians to degrees

// ---- Special functions.

Tensor erf(const Tensor& x);     // the error function
Tensor erfc(const Tensor& x);    // 1 - erf(x)
Tensor erfinv(const Tensor& x);  // the inverse of erf
Tensor i0(const Tensor& x);      // the modified Bessel function I0
// The regularized lower incomplete gamma function P(x1, x2). Backpropagating to x1 throws
// NotImplementedError.
Tensor gammainc(const Operand& x1, const Operand& x2);
Tensor heaviside(const Operand& x1, const Operand& x2);  // 0 for x1 < 0, x2 for 0, 1 for x1 > 0
Tensor nextafter(const Operand& x1, const Operand& x2);  // the next number from x1 towards x2

// ---- Rounding. Results have no gradient.

// Round down, up, towards 0, and to the nearest number with these decimals (halves to even).
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor round(const Tensor& x, int decimals = 0);
// Replaces NaN and infinities; by default the infinities become the greatest finite numbers.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});

// ---- Functions of complex numbers, for real ones.

Tensor real(const Tensor& x);       // x
Tensor imag(const Tensor& x);       // zeros
Tensor conj(const Tensor& x);       // x
Tensor conjugate(const Tensor& x);  // x
Tensor angle(const Tensor& x);      // 0, or pi where x is negative

}  // namespace keel::keras_ops

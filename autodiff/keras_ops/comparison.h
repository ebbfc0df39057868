// Comparisons, logical and bitwise functions of keras.ops. Operands broadcast and get their common
// dtype. Comparisons and logical functions return bool. Nothing here has a gradient.
#pragma once

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// ---- Comparisons.

// Compare elements and return bool.
Tensor equal(const Operand& x1, const Operand& x2);
Tensor not_equal(const Operand& x1, const Operand& x2);
Tensor greater(const Operand& x1, const Operand& x2);
Tensor greater_equal(const Operand& x1, const Operand& x2);
Tensor less(const Operand& x1, const Operand& x2);
Tensor less_equal(const Operand& x1, const Operand& x2);
// Returns |x1 - x2| <= atol + rtol |x2|. Equal infinities are close; two NaN only if `equal_nan`.
Tensor isclose(const Operand& x1, const Operand& x2, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
// Returns true, as a scalar, if all elements are close.
Tensor allclose(const Operand& x1, const Operand& x2, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false);
// Returns which elements of x1 occur in x2, or with `invert` which do not. `assume_unique` has no
// effect: elements may repeat.
Tensor isin(const Operand& x1, const Operand& x2, bool assume_unique = false, bool invert = false);

// ---- Properties of numbers.

// Test elements, and return bool.
Tensor isfinite(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isnan(const Tensor& x);
Tensor isneginf(const Tensor& x);
Tensor isposinf(const Tensor& x);
Tensor isreal(const Tensor& x);   // true everywhere: there are no complex numbers
Tensor signbit(const Tensor& x);  // true for negative numbers and -0

// ---- Logical functions. Operands of other dtypes are true where they are not 0.

// Combine elements.
Tensor logical_and(const Operand& x1, const Operand& x2);
Tensor logical_or(const Operand& x1, const Operand& x2);
Tensor logical_xor(const Operand& x1, const Operand& x2);
Tensor logical_not(const Tensor& x);
// Return whether all elements, or any of them, are true.
Tensor all(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor any(const Tensor& x, const Axes& axis = {}, bool keepdims = false);

// ---- Bitwise functions of integers and bools.

// Combine the bits of elements.
Tensor bitwise_and(const Operand& x, const Operand& y);
Tensor bitwise_or(const Operand& x, const Operand& y);
Tensor bitwise_xor(const Operand& x, const Operand& y);
Tensor bitwise_not(const Tensor& x);
Tensor bitwise_invert(const Tensor& x);  // the same as bitwise_not()
// Shift by y bits, which must be fewer than the dtype has.
Tensor bitwise_left_shift(const Operand& x, const Operand& y);
Tensor bitwise_right_shift(const Operand& x, const Operand& y);
Tensor left_shift(const Operand& x, const Operand& y);   // the same as bitwise_left_shift()
Tensor right_shift(const Operand& x, const Operand& y);  // the same as bitwise_right_shift()

}  // namespace keel::keras_ops

// Quantization of tables to 8 bits as in Keras (keras.quantizers.abs_max_quantize over the last
// axis).
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

// An int8 table with one scale per row.
struct QuantizedTable {
  Tensor codes;   // int8 [rows, dim], -127 to 127
  Tensor scales;  // float32 [rows]; an element is code / scale
};

// Quantizes a float32 tensor of shape [rows, dim] (kernels/abs_max_rows.h). Apart from the rounding
// of floats, the error of an element is at most half of its row's largest |x| / 127. Throws
// ValueError, with `caller` in the message, for another dtype or rank and for a row that is not
// finite.
QuantizedTable abs_max_quantize(const Tensor& table, const std::string& caller);

}  // namespace keel

// Tables in 8 bits as Keras keeps them (keras.quantizers.abs_max_quantize over the last axis).
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

struct QuantizedTable {
  Tensor codes;   // int8 [rows, dim], -127 ... 127
  Tensor scales;  // float32 [rows]; an element is code / scale
};

// Of float32 [rows, dim] (kernels/abs_max_rows.h): no element is off by more than half of its row's
// largest |x| / 127, and the rounding of floats. ValueError, naming `caller`, for another tensor
// and a row that is not finite.
QuantizedTable abs_max_quantize(const Tensor& table, const std::string& caller);

}  // namespace keel

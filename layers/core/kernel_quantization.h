// KernelQuantization: how a layer quantizes its kernel (keras.quantizers.Int8QuantizationConfig and
// Int4QuantizationConfig).
#pragma once

#include <cstdint>
#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// The settings of quantize(). Weights are always quantized by Keras's AbsMaxQuantizer or, for int4
// with blocks, by its grouped quantizer with zero points.
struct KernelQuantization {
  std::string mode = "int8";  // "int8" or "int4"
  // Quantize the inputs of each call to int8, with a scale for each row. Keras's default is true
  // for int8 and false for int4.
  bool quantize_inputs = true;
  int64_t block_size = 128;  // of int4: rows with a common scale; -1: a scale for each column

  // Returns Keras's default settings of a mode. Throws ValueError for another mode.
  static KernelQuantization of_mode(const std::string& mode);
};

// encode() returns the object that Keras writes. decode() reads it, or a mode by its name. It
// throws NotImplementedError for the other modes of Keras and for quantizers with other settings.
Config encode(const KernelQuantization& v);
void decode(const Config& c, KernelQuantization& v);

}  // namespace keel

// Int8Table: the rows of an embedding table quantized to 8 bits per element, with a scale and an
// offset for each row. For serving, it takes a quarter of the memory and of
// the memory bandwidth.
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

// An immutable quantized table. Copies share the memory.
class Int8Table {
 public:
  Int8Table() = default;
  // Quantizes a float32 tensor of shape [rows, dim]. Throws ValueError, with `caller` in the
  // message, for another dtype or rank and for a row that is not finite or whose range exceeds that
  // of float32.
  Int8Table(const Tensor& table, const std::string& caller);

  // Returns true unless default-constructed.
  explicit operator bool() const { return static_cast<bool>(bytes_); }
  int64_t rows() const { return bytes_.dim(0); }       // number of rows
  int64_t dim() const { return dim_; }                 // elements of a row
  int64_t row_bytes() const { return bytes_.dim(1); }  // bytes of a quantized row
  // Returns the quantized rows. Row r is at data() + r * row_bytes(): its scale and its offset, as
  // floats, then the codes. Code c represents offset + scale * c.
  const char* data() const { return reinterpret_cast<const char*>(bytes_.data<uint8_t>().data()); }
  // Returns the dequantized rows as a float32 tensor of shape [rows, dim].
  Tensor to_floats() const;

 private:
  Tensor bytes_;  // uint8 [rows, row bytes]
  int64_t dim_ = 0;
};

}  // namespace keel

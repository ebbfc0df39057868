// Int8Table: the rows of an embedding table in 8 bits an element, with a scale and an offset for
// each row (kernels/int8_rows.h): a quarter of the memory and of the traffic, for serving.
#pragma once

#include <string>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/kernels/embedding/int8_rows.h>
#include <keel/framework/tensor.h>

namespace keel {

// Immutable; copies share the memory.
class Int8Table {
 public:
  Int8Table() = default;
  // Of float32 [rows, dim]. ValueError, naming `caller`, for another tensor and a row that is not
  // finite.
  Int8Table(const Tensor& table, const std::string& caller);

  explicit operator bool() const { return static_cast<bool>(bytes_); }
  int64_t rows() const { return bytes_.dim(0); }
  int64_t dim() const { return dim_; }
  int64_t row_bytes() const { return bytes_.dim(1); }
  // Row r stands at data() + r row_bytes().
  const char* data() const { return reinterpret_cast<const char*>(bytes_.data<uint8_t>().data()); }
  kernels::Int8Row row(int64_t r) const { return kernels::Int8Row(data() + r * row_bytes()); }
  // The rows as floats, [rows, dim].
  Tensor to_floats() const;

 private:
  Tensor bytes_;  // uint8 [rows, row bytes]
  int64_t dim_ = 0;
};

}  // namespace keel

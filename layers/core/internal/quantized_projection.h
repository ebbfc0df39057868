// QuantizedProjection: a product of inputs with a kernel of int8 or int4 codes, as Keras computes
// it.
#pragma once

#include <string>

#include <keel/framework/config/dtype_policy.h>
#include <keel/framework/tensor.h>

namespace keel {

// The labels of an einsum: each axis has a letter.
struct ProjectionTerms {
  std::string input, kernel, output;
  std::string equation() const { return input + "," + kernel + "->" + output; }
};

// What files hold of a quantized kernel.
struct QuantizedKernel {
  Tensor codes;            // int8: of the kernel's shape or, for int4, [rows, bytes] of two codes
  Tensor scale;            // float32
  Tensor zero_point = {};  // int8 [groups, columns]; only int4 with blocks has it
  Tensor groups = {};      // float32 [rows]: the group of each row; likewise
};

// Quantizes kernels of one shape. A kernel's axes that the output lacks are `reduced`; the kernel
// is viewed as a matrix of rows (reduced axes) and columns (the others), by reshaping it.
//
// int8: element = code / scale, with a scale for each column. The scales have the axes of the
// output, with 1 for those that the kernel lacks, unless `flat`, and then one axis.
// int4 with one block: element = code / scale, with the scales [columns].
// int4 with blocks of rows: element = (code - zero point) * scale, both [groups, columns].
class QuantizedProjection {
 public:
  QuantizedProjection(ProjectionTerms terms, Shape kernel, bool flat);

  // Returns the codes and scales of `policy` for a kernel that has not been read yet.
  QuantizedKernel empty(const DTypePolicy& policy) const;
  // Quantizes a float32 kernel. Throws ValueError, with `caller`, if it is not finite.
  QuantizedKernel quantized(const Tensor& kernel, const DTypePolicy& policy,
                            const std::string& caller) const;
  // Returns the float32 kernel.
  Tensor dequantized(const QuantizedKernel& kernel, const DTypePolicy& policy) const;
  // Returns einsum(x, kernel). With `quantize_inputs`, the inputs are first rounded to int8, with a
  // scale for each position of the axes that the output has. The gradient with respect to x is that
  // of the product with the dequantized kernel; there is none with respect to the kernel.
  Tensor product(const Tensor& x, const QuantizedKernel& kernel, const DTypePolicy& policy,
                 bool quantize_inputs) const;

 private:
  bool reduced(int axis) const;
  // Calls fn(element, scale) for the positions of the elements of a kernel and of their scales.
  template <class Fn>
  void for_each_element(const Fn& fn) const;
  Shape scale_shape() const;
  QuantizedKernel quantized_in_blocks(const float* kernel, int64_t block) const;
  Tensor value(const Tensor& x, const QuantizedKernel& kernel, const DTypePolicy& policy,
               bool quantize_inputs) const;
  // Returns the labels `from` moved to the axes of the output, with 1 for axes that it lacks.
  Tensor aligned(const Tensor& x, const std::string& from) const;

  const ProjectionTerms terms_;
  const Shape kernel_;
  const bool flat_;
  int64_t rows_ = 1, columns_ = 1;
};

}  // namespace keel

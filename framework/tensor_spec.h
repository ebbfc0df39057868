// TensorSpec: the shape, dtype and layout of a tensor, known before the tensor has values.
#pragma once

#include <string>

#include <keel/framework/base/dtype.h>
#include <keel/framework/base/shape.h>

namespace keel {

// The storage layout of a tensor.
enum class Layout : uint8_t { kDense, kRagged, kSparse };

// The shape, dtype and layout of a tensor. Dimension 0 is the batch by convention. Unknown
// dimensions are kUnknown. The shape of a ragged tensor is [batch, kUnknown, ...]; that of a sparse
// tensor is its dense shape.
struct TensorSpec {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  Layout layout = Layout::kDense;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace keel

// TensorSpec: what is known of a tensor before it has a value.
#pragma once

#include <string>

#include <keel/framework/base/dtype.h>
#include <keel/framework/base/shape.h>

namespace keel {

enum class Layout : uint8_t { kDense, kRagged, kSparse };

// Dimension 0 is the batch by convention; kUnknown where not known.
// A ragged spec is [batch, kUnknown, ...]; a sparse one has the dense shape.
struct TensorSpec {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  Layout layout = Layout::kDense;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace keel

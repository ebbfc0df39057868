// IndexedSlices: the gradient of a table that touches few of its rows.
#pragma once

#include <keel/framework/tensor.h>

namespace keel {

// Row ids may repeat; the dense equivalent is the sum of the values of each row.
struct IndexedSlices {
  Tensor ids;         // int64 [n], in [0, dense_shape[0])
  Tensor values;      // [n, dim...]
  Shape dense_shape;  // {rows, dim...}
};

}  // namespace keel

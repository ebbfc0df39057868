// IndexedSlices: the sparse gradient of a table, which touches few of its rows.
#pragma once

#include <keel/framework/tensor.h>

namespace keel {

// Gradients of single rows. Row ids may repeat; the dense equivalent sums the values of each row.
struct IndexedSlices {
  Tensor ids;         // int64 [n], in [0, dense_shape[0])
  Tensor values;      // [n, dim...]
  Shape dense_shape;  // {rows, dim...}
};

}  // namespace keel

// Rows of the parts of a DynamicTableState.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel::distribute {

// Returns rows of a tensor of rank 1 or 2, in the given order.
template <Element T>
Tensor state_rows(const Tensor& of, std::span<const int64_t> rows) {
  const auto values = of.data<T>();
  const int64_t width = of.rank() == 2 ? of.dim(1) : 1;
  std::vector<T> out;
  out.reserve(rows.size() * width);
  for (const int64_t row : rows) {
    out.insert(out.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
  }
  return Tensor::from(out, of.shape().with(0, std::ssize(rows)));
}

}  // namespace keel::distribute

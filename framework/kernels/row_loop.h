// The loop over rows that rules share.
#pragma once

#include <array>

#include "framework/kernels/constant_dim.h"
#include "framework/kernels/update_rule.h"

namespace keel::kernels {

// fn(row, gradient, slots, n) for each row of the table, which has kSlots slots: n is the
// dimension, a constant where it is a usual one.
template <size_t kSlots, class Fn>
void for_each_row(const TableRows& table, const float* gradients, const Fn& fn) {
  with_constant_dim(table.dim, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : table.dim;
    for (const int64_t row : table.rows) {
      std::array<float*, kSlots> slots;
      for (size_t s = 0; s != kSlots; ++s) slots[s] = table.slots[s] + row * dim;
      fn(table.values + row * dim, gradients, slots, dim);
      gradients += dim;
    }
  });
}

}  // namespace keel::kernels

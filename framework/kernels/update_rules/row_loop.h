// for_each_row: the loop over the rows of a table that update rules share.
#pragma once

#include <array>

#include <keel/framework/kernels/constant_dim.h>
#include <keel/framework/kernels/embedding/prefetch_row.h>
#include <keel/framework/update_rule.h>

namespace keel::kernels {

// Calls fn(row, gradient, slots, n) for each row of the table, which has kSlots slots. n is the
// dimension, a compile-time constant if it is a common one. Prefetches rows a fixed distance ahead
// in the list.
template <size_t kSlots, class Fn>
void for_each_row(const TableRows& table, const float* gradients, const Fn& fn) {
  with_constant_dim(table.dim, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : table.dim;
    const int64_t ahead = written_rows_ahead(dim), n = std::ssize(table.rows);
    const auto part = [&](float* values, int64_t i) {
      return values + table.rows[i] * table.row_step;
    };
    for (int64_t i = 0; i < n; ++i) {
      if (i + ahead < n) {
        const auto bytes = dim * static_cast<int64_t>(sizeof(float));
        prefetch_row_to_write(part(table.values, i + ahead), bytes);
        for (size_t s = 0; s != kSlots; ++s) {
          prefetch_row_to_write(part(table.slots[s], i + ahead), bytes);
        }
      }
      std::array<float*, kSlots> slots;
      for (size_t s = 0; s != kSlots; ++s) slots[s] = part(table.slots[s], i);
      fn(part(table.values, i), gradients + i * dim, slots, dim);
    }
  });
}

}  // namespace keel::kernels

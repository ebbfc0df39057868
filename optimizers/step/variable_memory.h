// The memory layout of a variable and of its slots.
#pragma once

#include <cstdint>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

// Returns the number of elements of one row of a variable.
int64_t row_size(const Variable& variable);

// Pointers to the values of a variable and of its slots, for the code that updates them in place.
// No other handle may hold the values.
struct VariableMemory {
  void* values = nullptr;
  std::vector<void*> slots = {};
  int64_t row_step = 0;  // stride of rows in elements, of the values and of each slot
  RowRegularization regularization = {};  // of the variable
};

// Returns the memory of values that are stored separately, with contiguous rows. All values must be
// unique.
VariableMemory memory_of(const Variable& variable, const std::vector<Variable>& slots);

// Returns memory in which the rows are interleaved: each row of the table is followed by the same
// row of each slot. A step by rows then finds all parts of a row in one place, which saves page and
// cache misses. The values become views of this memory.
//
// Copies all rows if a value is stored elsewhere or another handle holds it. This is the case in
// the first step, and after a value was assigned or updated as a whole. During the copy the memory
// is needed twice. The memory is freed with the last of the values. If the function throws, nothing
// has changed.
VariableMemory packed_memory_of(const Variable& table, const std::vector<Variable>& slots);

}  // namespace keel

// Where the elements of a variable and of its slots lie.
#pragma once

#include <cstdint>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

// Elements of one row of a variable.
int64_t row_size(const Variable& variable);

// For whoever steps them; nobody else holds the values.
struct VariableMemory {
  void* values = nullptr;
  std::vector<void*> slots = {};
  int64_t row_step = 0;  // from a row to the next, in elements, of the values and of each slot
};

// Each by itself, one row after the other: the values of all are unique.
VariableMemory memory_of(const Variable& variable, const std::vector<Variable>& slots);

// Row by row, the parts of a row side by side: a step by rows finds what it needs of a row in one
// place, whose page and lines a processor looks for once. The values become views of this memory.
// Copies all rows if one of the values is elsewhere or is held by somebody: in the first step, and
// after something was assigned or stepped as a whole. Then all is there twice for a while. The
// memory lives as long as one of the values is there. If it throws nothing has changed.
VariableMemory packed_memory_of(const Variable& table, const std::vector<Variable>& slots);

}  // namespace keel

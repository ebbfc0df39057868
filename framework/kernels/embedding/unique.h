// Groups the ids of a batch by value, and sums rows by id.
#pragma once

#include <cstdint>
#include <span>

#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {

// The positions of a batch of ids grouped by id: distinct[g] occurs at positions[starts[g]] ...
// positions[starts[g + 1] - 1], in ascending order of position. Distinct ids ascend.
struct GroupedIds {
  ScratchVector<int64_t> distinct;   // [groups]
  ScratchVector<int64_t> starts;     // [groups + 1]
  ScratchVector<int64_t> positions;  // [n]
};

// Groups `ids`, which must not be negative, by a stable radix sort in O(n) for ids of any size.
// Reuses the memory of `out`.
void group_ids(std::span<const int64_t> ids, GroupedIds& out);

// out[g] = the sum over the positions p of group g, in ascending order, of values[p] (rows of `dim`
// elements).
void sum_groups(const GroupedIds& groups, const float* values, int64_t dim, float* out);
void sum_groups(const GroupedIds& groups, const double* values, int64_t dim, double* out);

}  // namespace keel::kernels

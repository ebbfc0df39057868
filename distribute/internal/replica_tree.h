// The balanced tree in which arrays are summed over replicas.
//
// A node covers n replicas [begin, end). If n > 1, its left child covers the first k of them, where
// k is the largest power of two below n, and its right child covers the rest. A process can sum the
// subtrees of its own replicas first without changing a bit of the result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel::distribute {

// The replicas [begin, end).
struct ReplicaRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  friend bool operator==(const ReplicaRange&, const ReplicaRange&) = default;
};

// Returns the largest subtrees that lie within `range`, in ascending order, of the tree over
// replicas [0, replicas).
std::vector<ReplicaRange> whole_subtrees(int replicas, ReplicaRange range);

// The sum of the arrays of the replicas [r, end), where r is the index of this Summand in its list.
struct Summand {
  int end = 0;
  const float* data = nullptr;
};

// The most floats that sum_in_tree_order() adds at once, few enough for the L1 cache.
inline constexpr int64_t kSumBlock = 1024;
// Computes out[0, n) as the sum over the replicas of `range`, added in the order of their tree. The
// summands must be sums over subtrees of it. summands[r] is the one that begins with replica r. n
// must not exceed kSumBlock.
void sum_in_tree_order(std::span<const Summand> summands, ReplicaRange range, int64_t n,
                       float* out);

}  // namespace keel::distribute

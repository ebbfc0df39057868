// The balanced tree in which arrays are summed over replicas.
//
// A node covers the replicas [begin, end). Its left child covers the largest power of two of them
// that is smaller than their number, its right child the rest. A process can sum the whole subtrees
// that it holds first, without changing a bit of the result.
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

// Returns the largest whole subtrees of the tree over `replicas` that lie in `held`, in order.
std::vector<ReplicaRange> whole_subtrees(int replicas, ReplicaRange held);

// An array that is the sum over the replicas from its index in the list to `end`.
struct Summand {
  int end = 0;
  const float* data = nullptr;
};

// Computes out[0, n) as the sum of the summands that make up the tree of `range`. summands[r] is
// the summand that begins with replica r. n must not exceed kSumBlock.
inline constexpr int64_t kSumBlock = 1024;  // floats, small enough for the L1 cache
void sum_in_tree_order(std::span<const Summand> summands, ReplicaRange range, int64_t n,
                       float* out);

}  // namespace keel::distribute

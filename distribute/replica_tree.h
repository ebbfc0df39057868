// The balanced tree in which arrays are summed over replicas.
//
// A node covers the replicas [begin, end); its left child the largest power of two of them that
// is not all, its right child the rest. A sum that follows it can be made in parts, of the whole
// subtrees that somebody holds, without changing a bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel::distribute {

struct ReplicaRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  friend bool operator==(const ReplicaRange&, const ReplicaRange&) = default;
};

// The largest whole subtrees of the tree over `replicas` that lie in `held`, in order.
std::vector<ReplicaRange> whole_subtrees(int replicas, ReplicaRange held);

// An array that is the sum of the replicas from its place in a list to `end`.
struct Summand {
  int end = 0;
  const float* data = nullptr;
};

// out = the sum of [0, n) of the summands that make up the tree of `range`; summands[r] is the
// one that begins with replica r. n is at most kSumBlock.
inline constexpr int64_t kSumBlock = 1024;  // floats, small enough for the L1 cache
void sum_in_tree_order(std::span<const Summand> summands, ReplicaRange range, int64_t n,
                       float* out);

}  // namespace keel::distribute

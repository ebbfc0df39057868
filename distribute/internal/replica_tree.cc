#include <keel/distribute/internal/replica_tree.h>

#include <algorithm>
#include <array>
#include <bit>

namespace keel::distribute {
namespace {

int middle(ReplicaRange range) {
  return range.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(range.size() - 1)));
}

void append_subtrees(ReplicaRange node, ReplicaRange range, std::vector<ReplicaRange>& out) {
  if (node.end <= range.begin || range.end <= node.begin) return;
  if (range.begin <= node.begin && node.end <= range.end) {
    out.push_back(node);
    return;
  }
  append_subtrees({node.begin, middle(node)}, range, out);
  append_subtrees({middle(node), node.end}, range, out);
}

}  // namespace

std::vector<ReplicaRange> whole_subtrees(int replicas, ReplicaRange range) {
  std::vector<ReplicaRange> out;
  append_subtrees({0, replicas}, range, out);
  return out;
}

void sum_in_tree_order(std::span<const Summand> summands, ReplicaRange range, int64_t n,
                       float* out) {
  const Summand& first = summands[range.begin];
  if (first.end == range.end) {
    std::copy_n(first.data, n, out);
    return;
  }
  const ReplicaRange left = {range.begin, middle(range)};
  const ReplicaRange right = {left.end, range.end};
  const Summand& second = summands[right.begin];
  if (second.end != right.end) {
    std::array<float, kSumBlock> rest;
    sum_in_tree_order(summands, left, n, out);
    sum_in_tree_order(summands, right, n, rest.data());
    for (int64_t i = 0; i < n; ++i) out[i] += rest[i];
    return;
  }
  const float* b = second.data;
  if (first.end == left.end) {
    const float* a = first.data;
    for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
    return;
  }
  sum_in_tree_order(summands, left, n, out);
  for (int64_t i = 0; i < n; ++i) out[i] += b[i];
}

}  // namespace keel::distribute

// Tests autodiff/internal/tree_sum.cc.
#include <keel/distribute/internal/replica_tree.h>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/tree_sum.h>

namespace keel::distribute::replica_tree_test {

using Ranges = std::vector<ReplicaRange>;

TEST(ReplicaTreeTest, AlignedProcessesHoldOneSubtreeEach) {
  EXPECT_EQ(whole_subtrees(8, {0, 4}), (Ranges{{0, 4}}));
  EXPECT_EQ(whole_subtrees(8, {4, 8}), (Ranges{{4, 8}}));
  EXPECT_EQ(whole_subtrees(8, {2, 4}), (Ranges{{2, 4}}));
  EXPECT_EQ(whole_subtrees(8, {0, 8}), (Ranges{{0, 8}}));
}

TEST(ReplicaTreeTest, UnalignedProcessesHoldTheLargestSubtreesThatFit) {
  EXPECT_EQ(whole_subtrees(6, {0, 3}), (Ranges{{0, 2}, {2, 3}}));
  EXPECT_EQ(whole_subtrees(6, {3, 6}), (Ranges{{3, 4}, {4, 6}}));
  EXPECT_EQ(whole_subtrees(7, {1, 7}), (Ranges{{1, 2}, {2, 4}, {4, 7}}));
  EXPECT_EQ(whole_subtrees(5, {4, 5}), (Ranges{{4, 5}}));
}

TEST(ReplicaTreeTest, SumsOfSubtreesMakeTheBitsOfTheWholeTree) {
  for (int replicas = 1; replicas <= 13; ++replicas) {
    std::vector<Tensor> values;
    for (int r = 0; r < replicas; ++r) {
      values.push_back(Tensor::from<float>({1.0F / (r + 3), 1e8F / (r + 1), -0.1F * r}, {3}));
    }
    const std::vector<float> expected = tree_sum(values).to_vector<float>();
    for (int cut = 0; cut <= replicas; ++cut) {
      std::vector<Summand> single(replicas), summands(replicas);
      for (int r = 0; r < replicas; ++r) {
        single[r] = {.end = r + 1, .data = values[r].data<float>().data()};
      }
      std::vector<std::vector<float>> sums;
      sums.reserve(replicas);
      for (const ReplicaRange held : {ReplicaRange{0, cut}, ReplicaRange{cut, replicas}}) {
        for (const ReplicaRange& subtree : whole_subtrees(replicas, held)) {
          sum_in_tree_order(single, subtree, 3, sums.emplace_back(3).data());
          summands[subtree.begin] = {.end = subtree.end, .data = sums.back().data()};
        }
      }
      std::vector<float> total(3);
      sum_in_tree_order(summands, {0, replicas}, 3, total.data());
      EXPECT_EQ(total, expected) << replicas << " cut at " << cut;
    }
  }
}

}  // namespace keel::distribute::replica_tree_test

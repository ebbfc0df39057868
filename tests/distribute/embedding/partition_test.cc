#include "distribute/embedding/partition.h"

#include <gtest/gtest.h>
#include <vector>

namespace keel::distribute {
namespace {

std::vector<std::vector<int64_t>> rows_by_shard(int64_t rows, const Sharding& sharding) {
  const Partition partition(rows, sharding);
  std::vector<std::vector<int64_t>> out(sharding.shards());
  for (int64_t r = 0; r < rows; ++r) out[partition.owner(r)].push_back(r);
  return out;
}

using Rows = std::vector<std::vector<int64_t>>;

TEST(PartitionTest, HostsHoldContiguousBlocksWhoseSizesDifferByAtMostOne) {
  EXPECT_EQ(rows_by_shard(13, {.hosts = 5}),
            (Rows{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
  EXPECT_EQ(rows_by_shard(3, {.hosts = 5}), (Rows{{0}, {1}, {2}, {}, {}}));
  EXPECT_EQ(rows_by_shard(8, {.hosts = 3}), (Rows{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
}

TEST(PartitionTest, ModDealsRowsToHostsInTurn) {
  EXPECT_EQ(rows_by_shard(13, {.hosts = 5, .strategy = ShardingStrategy::kMod}),
            (Rows{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
}

TEST(PartitionTest, CoresOfAHostTakeItsRowsInTurn) {
  EXPECT_EQ(rows_by_shard(7, {.hosts = 2, .cores_per_host = 2}),
            (Rows{{0, 2}, {1, 3}, {4, 6}, {5}}));
}

TEST(PartitionTest, LocalAndGlobalRowsAreEachOthersInverse) {
  for (const ShardingStrategy strategy : {ShardingStrategy::kDiv, ShardingStrategy::kMod}) {
    for (int hosts = 1; hosts <= 4; ++hosts) {
      for (int cores = 1; cores <= 3; ++cores) {
        for (int64_t rows = 1; rows <= 20; ++rows) {
          const Partition p(rows, {hosts, cores, strategy});
          int64_t total = 0;
          for (int s = 0; s < p.shards(); ++s) {
            total += p.rows_of(s);
            for (int64_t local = 0; local < p.rows_of(s); ++local) {
              const int64_t row = p.global_row(s, local);
              ASSERT_TRUE(row >= 0 && row < rows);
              EXPECT_EQ(p.owner(row), s);
              EXPECT_EQ(p.local_row(row), local);
            }
          }
          EXPECT_EQ(total, rows);
        }
      }
    }
  }
}

TEST(PartitionTest, RowsMayBeMoreThanAnIntCounts) {
  constexpr int64_t kRows = (int64_t{1} << 40) + 5;
  for (const ShardingStrategy strategy : {ShardingStrategy::kDiv, ShardingStrategy::kMod}) {
    const Partition p(kRows, {7, 3, strategy});
    int64_t total = 0;
    for (int s = 0; s < p.shards(); ++s) total += p.rows_of(s);
    EXPECT_EQ(total, kRows);
    for (const int64_t row : {int64_t{1} << 31, (int64_t{1} << 32) + 1, kRows / 2, kRows - 1}) {
      EXPECT_LT(p.local_row(row), p.rows_of(p.owner(row)));
      EXPECT_EQ(p.global_row(p.owner(row), p.local_row(row)), row);
    }
  }
}

}  // namespace
}  // namespace keel::distribute

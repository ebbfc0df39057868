#include <keel/distribute/embedding/partition.h>

#include <vector>

#include <gtest/gtest.h>

namespace keel::distribute::partition_test {

std::vector<std::vector<int64_t>> rows_by_host(int64_t rows, const Sharding& sharding) {
  const Partition partition(rows, sharding);
  std::vector<std::vector<int64_t>> out(sharding.hosts);
  for (int64_t r = 0; r < rows; ++r) out[partition.owner(r)].push_back(r);
  return out;
}

using Rows = std::vector<std::vector<int64_t>>;

TEST(PartitionTest, HostsHoldContiguousBlocksWhoseSizesDifferByAtMostOne) {
  EXPECT_EQ(rows_by_host(13, {.hosts = 5}),
            (Rows{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
  EXPECT_EQ(rows_by_host(3, {.hosts = 5}), (Rows{{0}, {1}, {2}, {}, {}}));
  EXPECT_EQ(rows_by_host(8, {.hosts = 3}), (Rows{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
}

TEST(PartitionTest, ModAssignsRowsToHostsRoundRobin) {
  EXPECT_EQ(rows_by_host(13, {.hosts = 5, .strategy = ShardingStrategy::kMod}),
            (Rows{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
}

TEST(PartitionTest, RowsOfAHostAreThoseItOwns) {
  for (const ShardingStrategy strategy : {ShardingStrategy::kDiv, ShardingStrategy::kMod}) {
    for (int hosts = 1; hosts <= 4; ++hosts) {
      for (int64_t rows = 1; rows <= 20; ++rows) {
        const Partition p(rows, {.hosts = hosts, .strategy = strategy});
        int64_t total = 0;
        for (int h = 0; h < hosts; ++h) {
          total += p.rows_of_host(h);
          for (int64_t k = 0; k < p.rows_of_host(h); ++k)
            EXPECT_EQ(p.owner(p.row_of_host(h, k)), h);
        }
        EXPECT_EQ(total, rows);
      }
    }
  }
}

TEST(PartitionTest, RowCountsMayExceed32Bits) {
  constexpr int64_t kRows = (int64_t{1} << 40) + 5;
  for (const ShardingStrategy strategy : {ShardingStrategy::kDiv, ShardingStrategy::kMod}) {
    const Partition p(kRows, {.hosts = 7, .strategy = strategy});
    int64_t total = 0;
    for (int h = 0; h < 7; ++h) total += p.rows_of_host(h);
    EXPECT_EQ(total, kRows);
    for (const int64_t row : {int64_t{1} << 31, (int64_t{1} << 32) + 1, kRows / 2, kRows - 1}) {
      const LocalRows held(p, p.owner(row), p.owner(row) + 1);
      EXPECT_LT(held.position(row), held.count());
      EXPECT_EQ(held.row_at(held.position(row)), row);
    }
  }
}

// Returns the rows, of 11, that a process with the hosts [first, end) of 4 holds.
std::vector<int64_t> local_rows(ShardingStrategy strategy, int first, int end) {
  const LocalRows held(Partition(11, {.hosts = 4, .strategy = strategy}), first, end);
  std::vector<int64_t> out;
  for (int64_t row = 0; row < 11; ++row) {
    if (!held.contain(row)) continue;
    EXPECT_EQ(held.position(row), static_cast<int64_t>(out.size()));
    EXPECT_EQ(held.row_at(held.position(row)), row);
    out.push_back(row);
  }
  EXPECT_EQ(held.count(), static_cast<int64_t>(out.size()));
  return out;
}

TEST(LocalRowsTest, AProcessKeepsTheRowsOfItsHostsInAscendingOrder) {
  EXPECT_EQ(local_rows(ShardingStrategy::kDiv, 1, 3), (std::vector<int64_t>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(local_rows(ShardingStrategy::kMod, 1, 3), (std::vector<int64_t>{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(local_rows(ShardingStrategy::kMod, 3, 4), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(local_rows(ShardingStrategy::kMod, 0, 4).size(), 11);
  EXPECT_EQ(local_rows(ShardingStrategy::kDiv, 0, 4).size(), 11);
}

}  // namespace keel::distribute::partition_test

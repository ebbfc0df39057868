#include <keel/framework/kernels/embedding/unique.h>

#include <limits>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>

namespace keel::kernels::unique_test {

std::vector<int64_t> random_ids(int64_t n, int64_t bound, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(n);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  return ids;
}

void expect_grouped(const std::vector<int64_t>& ids, const GroupedIds& groups) {
  std::map<int64_t, std::vector<int64_t>> expected;
  for (int64_t p = 0; p < std::ssize(ids); ++p) expected[ids[p]].push_back(p);
  GroupedIds twin;
  twin.starts.push_back(0);
  for (const auto& [id, positions] : expected) {
    twin.distinct.push_back(id);
    twin.positions.insert(twin.positions.end(), positions.begin(), positions.end());
    twin.starts.push_back(std::ssize(twin.positions));
  }
  EXPECT_EQ(groups.distinct, twin.distinct);
  EXPECT_EQ(groups.starts, twin.starts);
  EXPECT_EQ(groups.positions, twin.positions);
}

TEST(UniqueTest, GroupsIdsOfAllSizesLikeAMap) {
  GroupedIds groups;
  for (const int64_t n : {1, 2, 127, 128, 300, 4095, 5000, 20000}) {
    for (const int64_t bound : {int64_t{1}, int64_t{3}, int64_t{256}, int64_t{100003},
                                int64_t{1} << 33, std::numeric_limits<int64_t>::max()}) {
      const std::vector<int64_t> ids = random_ids(n, bound, n);
      group_ids(ids, groups);
      expect_grouped(ids, groups);
    }
  }
}

TEST(UniqueTest, NoIdsMakeNoGroups) {
  GroupedIds groups;
  group_ids(std::vector<int64_t>{5, 5}, groups);
  group_ids({}, groups);
  EXPECT_TRUE(groups.distinct.empty());
  EXPECT_EQ(groups.starts, ScratchVector<int64_t>{0});
  EXPECT_TRUE(groups.positions.empty());
  sum_groups(groups, static_cast<const float*>(nullptr), 4, nullptr);
}

TEST(UniqueTest, TheLargestIdIsKept) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> ids(200, largest);
  ids[3] = 0;
  GroupedIds groups;
  group_ids(ids, groups);
  expect_grouped(ids, groups);
  EXPECT_EQ(groups.distinct.back(), largest);
}

template <class T>
void expect_sums(int64_t n, int64_t bound, int64_t dim) {
  const std::vector<int64_t> ids = random_ids(n, bound, 7);
  std::mt19937 random(3);
  std::normal_distribution<T> normal;
  std::vector<T> values(n * dim);
  for (T& v : values) v = normal(random);
  GroupedIds groups;
  group_ids(ids, groups);
  std::map<int64_t, std::vector<T>> expected;
  for (int64_t p = 0; p < n; ++p) {
    auto& sum = expected.try_emplace(ids[p], dim, T{0}).first->second;
    for (int64_t j = 0; j < dim; ++j) sum[j] += values[p * dim + j];
  }
  std::vector<T> sums(groups.distinct.size() * dim, T{-1});
  sum_groups(groups, values.data(), dim, sums.data());
  size_t g = 0;
  for (const auto& [id, sum] : expected) {
    for (int64_t j = 0; j < dim; ++j) ASSERT_EQ(sums[g * dim + j], sum[j]) << id << " " << j;
    ++g;
  }
}

TEST(UniqueTest, RowsOfEqualIdsAreSummedInTheOrderOfTheirPositions) {
  for (const int64_t dim : {1, 5, 8, 16, 32, 64, 128, 200}) {
    expect_sums<float>(1500, 70, dim);
    expect_sums<double>(700, 70, dim);
  }
}

TEST(UniqueTest, SumsAreTheSameBitsForAnyNumberOfWorkers) {
  const int before = num_workers();
  const std::vector<int64_t> ids = random_ids(20000, 900, 1);
  std::vector<float> values(20000 * 16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(1 + i);
  GroupedIds groups;
  group_ids(ids, groups);
  std::vector<std::vector<float>> results;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    sum_groups(groups, values.data(), 16, results.emplace_back(groups.distinct.size() * 16).data());
  }
  set_num_workers(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace keel::kernels::unique_test

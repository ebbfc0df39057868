#include <keel/framework/kernels/embedding/row_groups.h>

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

namespace keel::kernels::row_groups_test {

// Bags of 0 to 3 ids. The splits are those of a slice: they begin at `offset`.
struct Feature {
  std::vector<int64_t> ids, splits;
  Bags bags() const {
    return {.ids = ids.data(), .splits = splits.data(), .samples = std::ssize(splits) - 1};
  }
};

Feature random_feature(int64_t rows, int64_t samples, int64_t offset, uint64_t seed) {
  std::mt19937_64 engine(seed);
  Feature out;
  out.ids.assign(offset, 0);
  out.splits.push_back(offset);
  for (int64_t s = 0; s < samples; ++s) {
    for (uint64_t n = engine() % 4; n > 0; --n) {
      const auto any = static_cast<int64_t>(engine() % static_cast<uint64_t>(rows));
      out.ids.push_back(engine() % 3 == 0 ? rows - 1 : any);
    }
    out.splits.push_back(std::ssize(out.ids));
  }
  return out;
}

// Returns the sources of each row, in the order of their positions.
std::map<int64_t, std::vector<int64_t>> sources_of(const std::vector<Bags>& parts,
                                                   bool by_position) {
  std::map<int64_t, std::vector<int64_t>> out;
  int64_t sample = 0, position = 0;
  for (const Bags& part : parts) {
    for (int64_t s = 0; s < part.samples; ++s, ++sample) {
      const int64_t first = part.splits == nullptr ? s : part.splits[s];
      const int64_t end = part.splits == nullptr ? s + 1 : part.splits[s + 1];
      for (int64_t p = first; p < end; ++p, ++position) {
        out[part.ids[p]].push_back(by_position ? position : sample);
      }
    }
  }
  return out;
}

void expect_groups(const RowGroups& groups, const std::vector<Bags>& parts, bool by_position) {
  std::map<int64_t, std::vector<int64_t>> found;
  for (int64_t g = 0; g < groups.size(); ++g) {
    if (g > 0) {
      EXPECT_GT(groups.id(g), groups.id(g - 1));
    }
    for (int64_t e = groups.begin(g); e < groups.begin(g + 1); ++e) {
      found[groups.id(g)].push_back(groups.source_of(e));
    }
  }
  EXPECT_EQ(found, sources_of(parts, by_position));
}

TEST(RowGroupsTest, SortsSourcesByRowForAllSizes) {
  RowGroups groups;  // reused in all cases, because it keeps its memory
  uint64_t seed = 1;
  for (const int64_t samples : {0, 1, 40, 700, 6000}) {
    for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{50}, int64_t{1500}, int64_t{20000},
                               int64_t{1} << 15, int64_t{100000}, int64_t{1} << 40}) {
      const Feature first = random_feature(rows, samples, 0, ++seed);
      const Feature second = random_feature(rows, samples / 2, 3, ++seed);
      const Feature column = random_feature(rows, samples, 0, ++seed);
      const int64_t positions = std::ssize(column.ids);
      const std::vector<Bags> parts = {
          first.bags(),
          second.bags(),
          {.ids = column.ids.data(), .splits = nullptr, .samples = positions}};
      for (const bool by_position : {false, true}) {
        SCOPED_TRACE(testing::Message() << samples << " samples, " << rows << " rows");
        groups.build(parts, rows, by_position);
        expect_groups(groups, parts, by_position);
      }
    }
  }
}

TEST(RowGroupsTest, FindsTheFirstGroupAtOrAfterARow) {
  const std::vector<int64_t> ids = {7, 3, 7, 900};
  const Bags bags = {.ids = ids.data(), .splits = nullptr, .samples = std::ssize(ids)};
  for (const int64_t rows : {int64_t{901}, int64_t{1} << 40}) {
    RowGroups groups;
    groups.build({&bags, 1}, rows, false);
    EXPECT_EQ(groups.size(), 3);
    EXPECT_EQ(groups.positions(), 4);
    EXPECT_EQ(groups.lower_bound(0), 0);
    EXPECT_EQ(groups.lower_bound(4), 1);
    EXPECT_EQ(groups.lower_bound(7), 1);
    EXPECT_EQ(groups.lower_bound(901), 3);
  }
}

TEST(RowGroupsTest, RejectsSizesBeyondItsWords) {
  const std::vector<int64_t> ids = {1, 2, 3};
  const Bags bags = {.ids = ids.data(), .splits = nullptr, .samples = std::ssize(ids)};
  RowGroups groups;
  EXPECT_THROW(groups.build({&bags, 1}, INT64_MAX, true), ValueError);
}

}  // namespace keel::kernels::row_groups_test

#include <keel/layers/embedding/distributed/internal/id_limits.h>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::id_limits_test {

using testing_support::message_of;

using Ids = std::vector<int64_t>;
using Values = std::vector<float>;

IdRows rows_of(const std::vector<Ids>& rows) {
  return to_id_rows("test", RaggedTensor::from_rows(rows), {}, {.vocabulary_size = 100});
}

IdLimiter limiter(IdLimitPolicy policy, int64_t ids, int64_t unique_ids, int partitions = 2) {
  return {"users",
          {.max_ids_per_partition = ids, .max_unique_ids_per_partition = unique_ids},
          policy,
          partitions};
}

TEST(IdLimitsTest, DefaultsMatchKeras) {
  EXPECT_EQ(IdLimits{}.max_ids_per_partition, 256);
  EXPECT_EQ(IdLimits{}.max_unique_ids_per_partition, 256);
}

TEST(IdLimitsTest, DropsTheIdsBeyondALimitAndCountsThem) {
  IdLimiter limits = limiter(IdLimitPolicy::kDrop, 3, 256);
  // Three even ids are kept, 2 4 2, and all odd ids.
  IdRows rows = rows_of({{2, 1, 4}, {2, 6, 3}, {8}});
  rows.weights = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7}, {7});
  limits.apply(std::vector<IdRows*>{&rows});
  EXPECT_EQ(rows.ids.to_vector<int64_t>(), (Ids{2, 1, 4, 2, 3}));
  EXPECT_EQ(rows.weights.to_vector<float>(), (Values{1, 2, 3, 4, 6}));
  EXPECT_EQ(rows.row_splits.to_vector<int64_t>(), (Ids{0, 3, 5, 5}));
  EXPECT_EQ(limits.statistics().dropped_ids, 2);
  EXPECT_EQ(limits.statistics().max_ids_per_partition, 5);
  EXPECT_EQ(limits.statistics().max_unique_ids_per_partition, 4);
}

TEST(IdLimitsTest, DropsDistinctIdsBeyondALimit) {
  IdLimiter limits = limiter(IdLimitPolicy::kDrop, 256, 1);
  IdRows rows = rows_of({{2, 2, 4}, {2, 1, 3}});
  limits.apply(std::vector<IdRows*>{&rows});
  EXPECT_EQ(rows.ids.to_vector<int64_t>(), (Ids{2, 2, 2, 1}));
  EXPECT_EQ(limits.statistics().dropped_ids, 2);
}

TEST(IdLimitsTest, FeaturesOfOneTableShareItsLimits) {
  IdLimiter limits = limiter(IdLimitPolicy::kDrop, 2, 256);
  IdRows first = rows_of({{2, 4}}), second = rows_of({{6, 1}});
  limits.apply(std::vector<IdRows*>{&first, &second});
  EXPECT_EQ(first.ids.to_vector<int64_t>(), (Ids{2, 4}));
  EXPECT_EQ(second.ids.to_vector<int64_t>(), (Ids{1}));
}

TEST(IdLimitsTest, StatisticsAreMaximaOverAllBatches) {
  IdLimiter limits = limiter(IdLimitPolicy::kDrop, 256, 256);
  IdRows small = rows_of({{2}}), large = rows_of({{2, 2, 4}});
  limits.apply(std::vector<IdRows*>{&small});
  limits.apply(std::vector<IdRows*>{&large});
  limits.apply(std::vector<IdRows*>{&small});
  EXPECT_EQ(limits.statistics().max_ids_per_partition, 3);
  EXPECT_EQ(limits.statistics().max_unique_ids_per_partition, 2);
  EXPECT_EQ(limits.statistics().dropped_ids, 0);
}

TEST(IdLimitsTest, ErrorsNameTableLimitAndPartition) {
  IdLimiter limits = limiter(IdLimitPolicy::kError, 2, 256);
  IdRows rows = rows_of({{1, 3, 5}});
  EXPECT_EQ(message_of<ValueError>([&] { limits.apply(std::vector<IdRows*>{&rows}); }),
            "DistributedEmbedding: table 'users': max_ids_per_partition is 2, but a batch has 3 "
            "for partition 1; raise the limit or allow ids to be dropped (IdLimitPolicy::kDrop)");
  EXPECT_EQ(rows.ids.size(), 3);
  IdLimiter unique = limiter(IdLimitPolicy::kError, 256, 2);
  EXPECT_THROW(unique.apply(std::vector<IdRows*>{&rows}), ValueError);
  IdRows within = rows_of({{1, 3, 3, 3}});
  EXPECT_NO_THROW(unique.apply(std::vector<IdRows*>{&within}));
}

TEST(IdLimitsTest, LimitsAreIgnoredWithoutAPolicy) {
  IdLimiter limits = limiter(IdLimitPolicy::kUnlimited, 0, 0);
  IdRows rows = rows_of({{1, 3, 5}});
  limits.apply(std::vector<IdRows*>{&rows});
  EXPECT_EQ(rows.ids.size(), 3);
  EXPECT_EQ(limits.statistics().max_ids_per_partition, 0);
}

TEST(IdLimitsTest, EnforcedLimitsMustBePositive) {
  EXPECT_THROW(limiter(IdLimitPolicy::kDrop, 0, 1), ValueError);
  EXPECT_THROW(limiter(IdLimitPolicy::kError, 1, 0), ValueError);
}

TEST(IdLimitsTest, PoliciesHaveNames) {
  for (const auto& [policy, name] :
       std::map<IdLimitPolicy, std::string>{{IdLimitPolicy::kUnlimited, "unlimited"},
                                            {IdLimitPolicy::kError, "error"},
                                            {IdLimitPolicy::kDrop, "drop"}}) {
    EXPECT_EQ(encode(policy), Config(name));
    IdLimitPolicy copy = IdLimitPolicy::kUnlimited;
    decode(Config(name), copy);
    EXPECT_EQ(copy, policy);
  }
  IdLimitPolicy copy = IdLimitPolicy::kUnlimited;
  EXPECT_THROW(decode(Config("ignore"), copy), ValueError);
}

}  // namespace keel::id_limits_test

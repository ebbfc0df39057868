#include <keel/distribute/distributed_dataset.h>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/support/datasets.h"

namespace keel::distribute::distributed_dataset_test {

using testing_support::range_dataset;

std::vector<std::vector<int64_t>> values_of(const PerReplica<Tensors>& batch) {
  std::vector<std::vector<int64_t>> out;
  for (const Tensors& part : batch.values()) out.push_back(part.tensor().to_vector<int64_t>());
  return out;
}

using Parts = std::vector<std::vector<int64_t>>;

TEST(DistributedDatasetTest, SplitsGlobalBatchesIntoRunsOfRows) {
  TPUStrategy strategy({.num_cores = 4});
  const auto dataset = strategy.experimental_distribute_dataset(range_dataset(8).batch(8));
  int batches = 0;
  for (const auto& batch : dataset) {
    EXPECT_EQ(values_of(batch), (Parts{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
    ++batches;
  }
  EXPECT_EQ(batches, 1);
}

TEST(DistributedDatasetTest, AShortLastBatchLeavesSomeReplicasWithoutRows) {
  TPUStrategy strategy({.num_cores = 4});
  const auto dataset = strategy.experimental_distribute_dataset(range_dataset(10).batch(8));
  const auto next = dataset.iterator();
  next();
  EXPECT_EQ(values_of(*next()), (Parts{{8}, {9}, {}, {}}));
  EXPECT_FALSE(next().has_value());
  EXPECT_EQ(dataset.cardinality(), 2);
}

TEST(DistributedDatasetTest, TheFirstReplicasGetTheRemainingRows) {
  TPUStrategy strategy({.num_cores = 3});
  const auto next = strategy.experimental_distribute_dataset(range_dataset(8).batch(8)).iterator();
  EXPECT_EQ(values_of(*next()), (Parts{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
}

TEST(DistributedDatasetTest, OnePipelinePerHostFeedsItsReplicasInTurn) {
  TPUStrategy strategy({.num_hosts = 2, .num_cores = 2});
  std::vector<int> ids;
  const auto dataset = strategy.distribute_datasets_from_function([&](const InputContext& c) {
    ids.push_back(c.input_pipeline_id);
    EXPECT_EQ(c.num_input_pipelines, 2);
    return range_dataset(8).shard(2, c.input_pipeline_id).batch(c.get_per_replica_batch_size(4));
  });
  EXPECT_EQ(ids, (std::vector<int>{0, 1}));
  const auto next = dataset.iterator();
  EXPECT_EQ(values_of(*next()), (Parts{{0}, {2}, {1}, {3}}));
  EXPECT_EQ(values_of(*next()), (Parts{{4}, {6}, {5}, {7}}));
  EXPECT_FALSE(next().has_value());
  EXPECT_EQ(dataset.cardinality(), 2);
}

TEST(DistributedDatasetTest, OnePipelinePerReplicaOnRequest) {
  TPUStrategy strategy({.num_cores = 2});
  const auto dataset = strategy.distribute_datasets_from_function(
      [](const InputContext& c) { return range_dataset(4).shard(2, c.input_pipeline_id).batch(2); },
      {.experimental_replication_mode = InputReplicationMode::kPerReplica});
  EXPECT_EQ(values_of(*dataset.iterator()()), (Parts{{0, 2}, {1, 3}}));
}

TEST(DistributedDatasetTest, RejectsOptionsThatNeedDeviceMemory) {
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THROW(strategy.experimental_distribute_dataset(range_dataset(4).batch(2),
                                                        {.experimental_fetch_to_device = true}),
               ValueError);
  EXPECT_THROW(strategy.experimental_distribute_dataset(
                   range_dataset(4).batch(2), {.experimental_per_replica_buffer_size = -1}),
               ValueError);
}

TEST(DistributedDatasetTest, AGlobalBatchMustDivideByTheReplicas) {
  const InputContext context{.num_replicas_in_sync = 4};
  EXPECT_EQ(context.get_per_replica_batch_size(8), 2);
  EXPECT_THROW(context.get_per_replica_batch_size(6), ValueError);
}

TEST(DistributedDatasetTest, OneInfinitePipelineMakesTheDatasetInfinite) {
  TPUStrategy strategy({.num_hosts = 2, .num_cores = 1});
  const auto dataset = strategy.distribute_datasets_from_function([](const InputContext& c) {
    return c.input_pipeline_id == 0 ? range_dataset(4).batch(2)
                                    : range_dataset(4).batch(2).repeat();
  });
  EXPECT_EQ(dataset.cardinality(), data::kInfinite);
}

}  // namespace keel::distribute::distributed_dataset_test

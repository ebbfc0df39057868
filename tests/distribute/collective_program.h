// A program that makes every collective call of replicas and processes and records the results. The
// results must have the same bits for every placement of the replicas on processes.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/variable.h>
#include <keel/distribute/strategy.h>

#include "tests/support/datasets.h"

namespace keel::distribute {

using testing_support::range_dataset;

using Bits = std::vector<float>;

inline Bits random_floats(int64_t seed, int64_t n) {
  std::mt19937 engine(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal;
  Bits out(n);
  for (float& x : out) x = normal(engine);
  return out;
}

// Returns the sums of all replicas, piece after piece.
inline Bits reduce_and_share(Strategy& strategy, const std::vector<int64_t>& sizes) {
  std::vector<Bits> sums;
  for (int64_t n : sizes) sums.emplace_back(n, -1.0F);
  strategy.run([&] {
    const int me = current_replica_context()->replica;
    std::vector<Bits> mine;
    for (int64_t n : sizes) mine.push_back(random_floats(100 * me + n, n));
    const std::vector<std::span<const float>> pieces(mine.begin(), mine.end());
    strategy.communicator().reduce_scatter(
        pieces, [&](size_t piece, int64_t begin, std::span<const float> part) {
          std::ranges::copy(part, sums[piece].begin() + begin);
        });
    const std::vector<std::span<float>> shared(sums.begin(), sums.end());
    strategy.communicator().all_gather_shards(shared);
  });
  Bits out;
  for (const Bits& sum : sums) out.insert(out.end(), sum.begin(), sum.end());
  return out;
}

// Returns what this replica receives in exchanges of messages of many sizes.
inline Bits exchange_messages(Communicator& communicator, int64_t scale) {
  const int me = communicator.rank();
  const int size = communicator.size();
  std::vector<Bits> messages;
  for (int to = 0; to < size; ++to) {
    const int64_t n = (me + 2 * to) % 3 == 0 ? 0 : scale * (1 + me + to);
    messages.push_back(random_floats(1000 * me + to, n));
  }
  std::vector<Bytes> send;
  for (const Bits& m : messages) send.push_back(as_bytes_of<float>(m));
  const std::vector<Bytes> first = communicator.all_to_all(send, "first");
  const std::vector<Bytes> second = communicator.all_to_all(first, "second");  // sends them back
  Bits out;
  for (int r = 0; r < size; ++r) {
    const auto back = as_elements<float>(second[r]);
    if (!std::ranges::equal(back, messages[r])) throw RuntimeError("a message came back changed");
    const auto came = as_elements<float>(first[r]);
    out.insert(out.end(), came.begin(), came.end());
  }
  communicator.barrier("the messages may go");
  return out;
}

inline Variable on_read(VariableAggregation aggregation) {
  return Variable(Tensor::zeros({3}), {.name = "statistics",
                                       .trainable = false,
                                       .synchronization = VariableSynchronization::kOnRead,
                                       .aggregation = aggregation});
}

// Reads variables of every aggregation after the replicas wrote them and after an outside
// assignment.
inline Bits read_variables(Strategy& strategy) {
  const auto scope = strategy.scope();
  Bits out;
  for (const auto aggregation : {VariableAggregation::kSum, VariableAggregation::kMean,
                                 VariableAggregation::kOnlyFirstReplica}) {
    const Variable v = on_read(aggregation);
    const auto keep = [&] {
      for (float x : v.read().to_vector<float>()) out.push_back(x);
    };
    strategy.run([&] {
      v.assign(Tensor::from(random_floats(current_replica_context()->replica + 7, 3), {3}));
    });
    keep();
    v.assign(Tensor::from<float>({0.1F, 0.2F, 0.3F}, {3}));
    keep();
  }
  return out;
}

inline Bits reduce_values(Strategy& strategy) {
  const auto values = strategy.run(
      [] { return Tensor::from(random_floats(current_replica_context()->replica, 5), {5}); });
  Bits out;
  for (const auto op : {ReduceOp::kSum, ReduceOp::kMean}) {
    for (float x : strategy.reduce(op, values).to_vector<float>()) out.push_back(x);
  }
  return out;
}

// Returns the rows of each local replica's batches, one after the other, each preceded by its size.
inline std::vector<Bits> read_datasets(Strategy& strategy) {
  std::vector<Bits> out(strategy.num_local_replicas());
  const auto keep = [&](const DistributedDataset& dataset) {
    for (const auto& batch : dataset) {
      for (int r = 0; r < batch.size(); ++r) {
        const auto rows = batch[r].tensor().to_vector<int64_t>();
        out[r].push_back(static_cast<float>(rows.size()));
        out[r].insert(out[r].end(), rows.begin(), rows.end());
      }
    }
    for (Bits& of_replica : out) of_replica.push_back(static_cast<float>(dataset.cardinality()));
  };
  keep(strategy.experimental_distribute_dataset(range_dataset(45).batch(20)));
  keep(strategy.distribute_datasets_from_function([](const InputContext& c) {
    return range_dataset(20 + 7 * c.input_pipeline_id).batch(3).shard(c.num_input_pipelines, 0);
  }));
  keep(strategy.distribute_datasets_from_function(
      [](const InputContext& c) {
        return range_dataset(9).skip(c.input_pipeline_id % 2 * 5).batch(2);
      },
      {.experimental_replication_mode = InputReplicationMode::kPerReplica}));
  return out;
}

// Returns by local replica everything that the replica and its process have received.
inline std::vector<Bits> run_collective_program(Strategy& strategy) {
  std::vector<Bits> out(strategy.num_local_replicas());
  Bits of_process;
  const auto keep = [&](const Bits& bits) {
    of_process.insert(of_process.end(), bits.begin(), bits.end());
  };
  keep(reduce_and_share(strategy, {5003, 7, 0, 40'000}));
  keep(reduce_and_share(strategy, {5}));
  keep(reduce_and_share(strategy, {}));
  for (const int64_t scale : {1, 100, 4000}) {
    const auto got = strategy.run([&] {
      Bits bits = exchange_messages(strategy.communicator(), scale);
      Bits sums = random_floats(current_replica_context()->replica, 9);
      all_reduce_sum(strategy.communicator(), sums);
      bits.insert(bits.end(), sums.begin(), sums.end());
      return bits;
    });
    for (size_t r = 0; r < out.size(); ++r) {
      out[r].insert(out[r].end(), got[r].begin(), got[r].end());
    }
  }
  keep(read_variables(strategy));
  keep(reduce_values(strategy));
  const std::vector<Bits> rows = read_datasets(strategy);
  for (size_t r = 0; r < out.size(); ++r) {
    out[r].insert(out[r].end(), rows[r].begin(), rows[r].end());
    out[r].insert(out[r].end(), of_process.begin(), of_process.end());
  }
  return out;
}

}  // namespace keel::distribute

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>

#include "tests/distribute/fake_processes.h"

namespace keel::distribute::half_tables_test {

using kernels::StorageType;

FeatureBatch bags(const std::vector<std::vector<int64_t>>& rows) {
  const RaggedTensor ragged = RaggedTensor::from_rows(rows);
  return {.ids = ragged.values, .row_splits = ragged.row_splits, .weights = {}};
}

struct Case {
  StorageType storage = StorageType::kBFloat16;
  int hosts = 1, cores = 4;  // cores of each host
  ShardingStrategy sharding = ShardingStrategy::kDiv;
  std::shared_ptr<const UpdateRule> rule = std::make_shared<AdagradRule>(0.1, 0.0);
  bool accumulates = true, lazy = true, pipelined = false;
};

constexpr int64_t kRows = 40, kDim = 5;

EngineConfiguration configuration(const Case& s) {
  EngineTable t = {.name = "items",
                   .rows = kRows,
                   .dim = kDim,
                   .combiner = Combiner::kSum,
                   .update = {.rule = s.rule},
                   .storage = s.storage};
  t.update.use_gradient_accumulation = s.accumulates;
  t.update.lazy = s.lazy;
  return {.tables = {t},
          .features = {{.table_id = 0}},
          .num_hosts = s.hosts,
          .num_tensor_cores = s.hosts * s.cores,
          .sharding_strategy = s.sharding,
          .pipeline_execution_with_tensor_core = s.pipelined};
}

Tensor normal_table(uint64_t seed) {
  std::vector<float> values(kRows * kDim);
  RandomStream{.seed = seed}.normal(values, 0, 0, 1);
  return Tensor::from(values, {kRows, kDim});
}

// Runs steps [first, end). Every replica looks up rows of its own and some that others look up too.
void train(EmbeddingEngine& engine, TPUStrategy& strategy, int first, int end,
           bool counts_iterations) {
  strategy.run([&] {
    const int64_t r = current_replica_context()->replica;
    for (int step = first; step < end; ++step) {
      const auto found = engine.lookup(strategy.communicator(),
                                       {bags({{r, 7, 7}, {}, {(3 * r + step) % kRows, 8}})});
      std::vector<float> gradient(3 * kDim);
      RandomStream{.seed = static_cast<uint64_t>(100 * step + r)}.normal(gradient, 0, 0, 0.1F);
      engine.apply(strategy.communicator(), found.ticket, {Tensor::from(gradient, {3, kDim})},
                   {{.learning_rate = 0.05, .iteration = counts_iterations ? step : 0}});
    }
    engine.drain(strategy.communicator());
  });
}

// Returns the rows of all parts that this process holds after three steps.
std::vector<float> trained(const Case& setup, TPUStrategy& strategy) {
  EmbeddingEngine engine(configuration(setup), {.first = strategy.first_local_replica(),
                                                .count = strategy.num_local_replicas()});
  const int64_t first = engine.local_rows(0).first_row();
  const int64_t end = first + engine.local_rows(0).count();
  engine.write_rows(0, 0, first, end, normal_table(1).data<float>().data() + first * kDim);
  train(engine, strategy, 0, 3, false);
  std::vector<float> out(2 * (end - first) * kDim);
  engine.read_rows(0, 0, first, end, out.data());
  engine.read_rows(0, 1, first, end, out.data() + (end - first) * kDim);
  return out;
}

TEST(HalfTableTest, ValuesAreReadExactlyAndWrittenRoundedToNearest) {
  for (const StorageType storage : {StorageType::kBFloat16, StorageType::kFloat16}) {
    EmbeddingEngine engine(configuration({.storage = storage, .hosts = 2, .cores = 2}));
    const Tensor values = normal_table(1);
    engine.load(0, 0, values);
    const auto once = engine.retrieve(0).to_vector<float>();
    const double unit = storage == StorageType::kBFloat16 ? 0x1p-8 : 0x1p-11;
    for (size_t i = 0; i < once.size(); ++i) {
      EXPECT_NEAR(once[i], values.data<float>()[i], std::abs(once[i]) * unit);
    }
    EXPECT_NE(once, values.to_vector<float>());
    engine.load(0, 0, engine.retrieve(0));
    EXPECT_EQ(engine.retrieve(0).to_vector<float>(), once);
    // Slots are stored exactly.
    engine.load(0, 1, values);
    EXPECT_EQ(engine.retrieve(0, 1).to_vector<float>(), values.to_vector<float>());
  }
}

TEST(HalfTableTest, FirstValuesAreTheNearestToThoseOfAFloatTable) {
  const Initializer normal = "random_normal";
  const RandomStream stream{.seed = 3};
  EmbeddingEngine halves(configuration({.hosts = 2})), loaded(configuration({}));
  EmbeddingEngine floats(configuration({.storage = StorageType::kFloat32}));
  halves.initialize(0, 0, kRows, normal.function(), stream);
  floats.initialize(0, 0, kRows, normal.function(), stream);
  loaded.load(0, 0, floats.retrieve(0));
  EXPECT_EQ(halves.retrieve(0).to_vector<float>(), loaded.retrieve(0).to_vector<float>());
}

TEST(HalfTableTest, LookupsAreThoseOfAFloatTableOfTheSameValues) {
  for (const bool quantized : {false, true}) {
    std::vector<std::vector<float>> seen;
    for (const StorageType storage : {StorageType::kFloat16, StorageType::kFloat32}) {
      EngineConfiguration c = configuration({.storage = storage, .cores = 1});
      if (quantized) {
        c.tables[0].quantization = Quantization{.num_buckets = 9, .lower = -1, .upper = 1};
      }
      EmbeddingEngine values(configuration({.storage = StorageType::kFloat16, .cores = 1}));
      values.load(0, 0, normal_table(1));
      EmbeddingEngine engine(c);
      engine.load(0, 0, values.retrieve(0));
      TPUStrategy strategy({.num_cores = 1});
      seen.push_back(strategy.run([&] {
        return engine.lookup(strategy.communicator(), {bags({{1, 2, 3}, {}, {39}})})
            .values[0]
            .to_vector<float>();
      })[0]);
    }
    EXPECT_EQ(seen[0], seen[1]);
  }
}

TEST(HalfTableTest, AnUpdateRoundsTheResultToOneOfTheTwoNearestValues) {
  TPUStrategy strategy({.num_cores = 4});
  EmbeddingEngine halves(configuration({})),
      floats(configuration({.storage = StorageType::kFloat32}));
  halves.load(0, 0, normal_table(1));
  floats.load(0, 0, halves.retrieve(0));
  train(halves, strategy, 0, 1, false);
  train(floats, strategy, 0, 1, false);
  const auto got = halves.retrieve(0).to_vector<float>();
  const auto exact = floats.retrieve(0).to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) {
    const double step = std::ldexp(1.0, std::ilogb(exact[i]) - 7);
    EXPECT_LT(std::abs(got[i] - exact[i]), step) << i;
  }
  EXPECT_NE(got, exact);
  EXPECT_EQ(halves.retrieve(0, 1).to_vector<float>(), floats.retrieve(0, 1).to_vector<float>());
}

TEST(HalfTableTest, BitsDoNotDependOnWorkersOrProcesses) {
  const int before = num_workers();
  for (const bool accumulates : {true, false}) {
    for (const bool lazy : {true, false}) {
      const Case setup = {.hosts = 4, .cores = 2, .accumulates = accumulates, .lazy = lazy};
      std::vector<std::vector<float>> seen;
      for (const int workers : {1, 3}) {
        set_num_workers(workers);
        TPUStrategy strategy({.num_hosts = 4, .num_cores = 2});
        seen.push_back(trained(setup, strategy));
      }
      set_num_workers(before);
      EXPECT_EQ(seen[0], seen[1]);
      for (const int processes : {2, 4}) {
        FakeJob job(processes);
        std::vector<std::vector<float>> parts(processes);
        const auto errors = job.run([&](ProcessGroup& group) {
          TPUStrategy strategy({.num_hosts = 4, .num_cores = 2}, group);
          parts[group.rank()] = trained(setup, strategy);
        });
        for (const std::string& error : errors) EXPECT_EQ(error, "");
        std::vector<float> whole;
        for (const int part : {0, 1}) {
          for (const auto& rows : parts) {
            const auto half = std::ssize(rows) / 2;
            whole.insert(whole.end(), rows.begin() + part * half, rows.begin() + (part + 1) * half);
          }
        }
        EXPECT_EQ(whole, seen[0]) << processes << " processes";
      }
    }
  }
}

TEST(HalfTableTest, OneReplicaUpdatesWithTheSameRandomRounding) {
  // Rows occur many times in a batch. Sums for a single replica use another code path than lists.
  const auto run = [](int hosts, ShardingStrategy sharding) {
    TPUStrategy strategy({.num_hosts = hosts, .num_cores = 1});
    EmbeddingEngine engine(
        configuration({.hosts = hosts, .cores = 1, .sharding = sharding, .accumulates = false}));
    engine.load(0, 0, normal_table(1));
    strategy.run([&] {
      // Only the first replica has ids, so the sums are the same for any number of replicas.
      const bool first = current_replica_context()->replica == 0;
      const std::vector<int64_t> hot(150, 3);
      const auto found =
          engine.lookup(strategy.communicator(), {first ? bags({hot, {1, 2, 1}}) : bags({{}, {}})});
      engine.apply(strategy.communicator(), found.ticket, {Tensor::full<float>({2, kDim}, 0.01F)},
                   {{.learning_rate = 0.1}});
    });
    return engine.retrieve(0).to_vector<float>();
  };
  const auto one = run(1, ShardingStrategy::kDiv);
  EXPECT_EQ(run(2, ShardingStrategy::kDiv), one);
  EXPECT_EQ(run(3, ShardingStrategy::kMod), one);
}

TEST(HalfTableTest, AResumedRunIsExactIfIterationsAreCounted) {
  TPUStrategy strategy({.num_cores = 4});
  for (const bool counts : {true, false}) {
    EmbeddingEngine whole(configuration({})), resumed(configuration({}));
    whole.load(0, 0, normal_table(1));
    train(whole, strategy, 0, 4, counts);
    const Tensor weights = whole.retrieve(0), slots = whole.retrieve(0, 1);
    train(whole, strategy, 4, 8, counts);
    // The engine may have made an update of the same iteration before.
    train(resumed, strategy, 3, 5, counts);
    resumed.load(0, 0, weights);
    resumed.load(0, 1, slots);
    train(resumed, strategy, 4, 8, counts);
    EXPECT_EQ(resumed.retrieve(0).to_vector<float>() == whole.retrieve(0).to_vector<float>(),
              counts);
  }
}

TEST(HalfTableTest, PendingUpdatesRoundAsImmediateOnes) {
  // Each row is looked up once, so late updates change nothing else.
  const auto run = [](bool pipelined) {
    TPUStrategy strategy({.num_cores = 2});
    EmbeddingEngine engine(configuration({.cores = 2, .pipelined = pipelined}));
    engine.load(0, 0, normal_table(1));
    strategy.run([&] {
      for (int64_t step = 0; step < 5; ++step) {
        const int64_t id = 5 * step + current_replica_context()->replica;
        const auto found = engine.lookup(strategy.communicator(), {bags({{id}})});
        engine.apply(strategy.communicator(), found.ticket, {Tensor::full<float>({1, kDim}, 0.3F)},
                     {{.learning_rate = 0.1}});
      }
      engine.drain(strategy.communicator());
    });
    return engine.retrieve(0).to_vector<float>();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(HalfTableTest, ManyStepsBelowTheStorageResolutionAddUp) {
  // w = 1, where bfloat16 has steps of 2^-7, is moved by 2^-12 a thousand times. Every move is
  // unbiased with a variance of less than step^2 / 4 (for a move of 1/32 step: 31/1024 step^2).
  constexpr int kSteps = 1000;
  TPUStrategy strategy({.num_cores = 1});
  EmbeddingEngine engine(configuration({.cores = 1, .rule = std::make_shared<SGDRule>()}));
  engine.load(0, 0, Tensor::full<float>({kRows, kDim}, 1));
  std::vector<std::vector<int64_t>> all(1);
  for (int64_t row = 0; row < kRows; ++row) all[0].push_back(row);
  strategy.run([&] {
    for (int step = 0; step < kSteps; ++step) {
      const auto found = engine.lookup(strategy.communicator(), {bags(all)});
      engine.apply(strategy.communicator(), found.ticket, {Tensor::full<float>({1, kDim}, -1)},
                   {{.learning_rate = 0x1p-12}});
    }
  });
  double sum = 0;
  for (const float w : engine.retrieve(0).to_vector<float>()) sum += w;
  const double expected = 1 + kSteps * 0x1p-12;
  const double deviation = std::sqrt(kSteps * 31.0 / 1024) * 0x1p-7;
  EXPECT_NEAR(sum / (kRows * kDim), expected, 5 * deviation / std::sqrt(kRows * kDim));
}

TEST(HalfTableTest, RowsWithoutLookupOrChangeKeepTheirBits) {
  for (const bool lazy : {true, false}) {
    TPUStrategy strategy({.num_cores = 4});
    EmbeddingEngine engine(configuration({.lazy = lazy}));
    engine.load(0, 0, normal_table(1));
    const auto before = engine.retrieve(0).to_vector<float>();
    strategy.run([&] {
      const auto found = engine.lookup(strategy.communicator(), {bags({{3}})});
      engine.apply(strategy.communicator(), found.ticket, {Tensor()}, {{.learning_rate = 0.1}});
    });
    EXPECT_EQ(engine.retrieve(0).to_vector<float>(), before);
  }
}

}  // namespace keel::distribute::half_tables_test

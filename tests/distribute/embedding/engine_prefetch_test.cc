// Tests distribute/embedding/internal/batch_prefetcher.cc and
// distribute/internal/background_worker.cc.
#include <map>
#include <random>

#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/internal/background_worker.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "tests/distribute/fake_processes.h"

namespace keel::distribute::engine_prefetch_test {

// Sets the number of workers while alive.
class Workers {
 public:
  explicit Workers(int count) : before_(num_workers()) { set_num_workers(count); }
  ~Workers() { set_num_workers(before_); }

 private:
  const int before_;
};

EngineTable table(const std::string& name, int64_t rows, int64_t dim, Combiner combiner,
                  std::shared_ptr<const UpdateRule> rule) {
  return {.name = name, .rows = rows, .dim = dim, .combiner = combiner, .update = {.rule = rule}};
}

// Four tables with different combiners, one of them shared by two features. Feature 0 has one id
// per sample, the others have bags, feature 2 has weights. The shared table is stored as 16-bit
// floats, the last one is quantized, and the one before it has no rule.
EngineConfiguration configuration(int replicas, const std::shared_ptr<const UpdateRule>& rule) {
  EngineConfiguration out = {.tables = {table("one", 5000, 3, Combiner::kSum, rule),
                                        table("shared", 700, 16, Combiner::kMean, rule),
                                        table("weighted", 40000, 5, Combiner::kSqrtN, rule),
                                        table("fixed", 300, 4, Combiner::kSum, nullptr),
                                        table("coarse", 300, 4, Combiner::kSum, rule)},
                             .features = {},
                             .num_hosts = 1,
                             .num_tensor_cores = replicas};
  out.tables[1].storage = kernels::StorageType::kBFloat16;
  out.tables[4].quantization = Quantization{.num_buckets = 17, .lower = -1, .upper = 1};
  for (const int t : {0, 1, 2, 1, 3, 4}) out.features.push_back({.table_id = t});
  return out;
}

constexpr int64_t kSamples = 24;

using Batch = std::vector<FeatureBatch>;

// Unless `spread`, small ids are frequent, as in real data.
Batch random_batch(const EngineConfiguration& c, uint64_t seed, bool spread) {
  std::mt19937_64 bits(seed);
  Batch out;
  for (size_t f = 0; f < c.features.size(); ++f) {
    const int64_t rows = c.tables[c.features[f].table_id].rows;
    std::vector<int64_t> ids, splits = {0};
    std::vector<float> weights;
    for (int64_t s = 0; s < kSamples; ++s) {
      const uint64_t n = f == 0 ? 1 : bits() % 5;
      for (uint64_t i = 0; i < n; ++i) {
        const auto limit = spread ? static_cast<uint64_t>(rows) : 1 + bits() % 60;
        ids.push_back(static_cast<int64_t>(bits() % limit));
        weights.push_back(static_cast<float>(bits() % 7) * 0.25F - 0.5F);
      }
      splits.push_back(static_cast<int64_t>(ids.size()));
    }
    const auto size = static_cast<int64_t>(ids.size());
    out.push_back({.ids = Tensor::from(ids, {size}),
                   .row_splits = f == 0 ? Tensor() : Tensor::from(splits, {kSamples + 1}),
                   .weights = f == 2 ? Tensor::from(weights, {size}) : Tensor()});
  }
  return out;
}

enum class Prefetch { kNever, kAfterLookup, kBeforeLookup };

struct Training {
  Prefetch prefetch = Prefetch::kNever;
  bool stale = false;
  bool spread = true;
  bool lazy = true;
  std::shared_ptr<const UpdateRule> rule = std::make_shared<AdagradRule>(0.1, 1e-7);
  int steps = 20;
};

// Returns the activations of all steps, then the tables.
std::vector<float> train(int replicas, const Training& run) {
  TPUStrategy strategy({.num_cores = replicas});
  Communicator& all = strategy.communicator();
  EngineConfiguration c = configuration(replicas, run.rule);
  c.pipeline_execution_with_tensor_core = run.stale;
  for (EngineTable& t : c.tables) t.update.lazy = run.lazy;
  EmbeddingEngine engine(c);
  const Initializer uniform = "uniform";
  for (size_t t = 0; t < c.tables.size(); ++t) {
    engine.initialize(static_cast<int>(t), 0, c.tables[t].rows, uniform.function(),
                      {.seed = 1, .purpose = t});
  }
  std::vector<std::vector<Batch>> batches(run.steps + 1);
  for (size_t step = 0; step < batches.size(); ++step) {
    for (int r = 0; r < replicas; ++r) {
      batches[step].push_back(random_batch(c, 100 * step + r, run.spread));
    }
  }
  std::vector<float> out;
  for (int step = 0; step < run.steps; ++step) {
    const auto seen = strategy.run([&] {
      const int r = current_replica_context()->replica;
      const auto prefetch = [&](Prefetch when) {
        if (run.prefetch == when) engine.prefetch(all, batches[step + 1][r]);
      };
      prefetch(Prefetch::kBeforeLookup);
      const auto found = engine.lookup(all, batches[step][r]);
      prefetch(Prefetch::kAfterLookup);
      std::vector<Tensor> gradients;
      for (const Tensor& v : found.values) {
        gradients.push_back(Tensor::from(v.to_vector<float>(), v.shape()));
        for (float& x : gradients.back().mutable_data<float>()) x = 0.5F * x + 0.01F;
      }
      engine.apply(
          all, found.ticket, gradients,
          std::vector<TableStep>(c.tables.size(), {.learning_rate = 0.1, .iteration = step}));
      std::vector<float> values;
      for (const Tensor& v : found.values) {
        const std::vector<float> some = v.to_vector<float>();
        values.insert(values.end(), some.begin(), some.end());
      }
      return values;
    });
    for (int r = 0; r < replicas; ++r) out.insert(out.end(), seen[r].begin(), seen[r].end());
  }
  strategy.run([&] { engine.drain(all); });
  for (size_t t = 0; t < c.tables.size(); ++t) {
    const std::vector<float> some = engine.retrieve(static_cast<int>(t)).to_vector<float>();
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

// Parameters: replicas and workers. With one worker a batch is prepared completely before the
// update, with several workers as far as time permits.
class EnginePrefetchTest : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  int replicas() const { return GetParam().first; }
  const Workers workers_{GetParam().second};

  void expect_same_bits(Training run) const {
    run.prefetch = Prefetch::kNever;
    const std::vector<float> plain = train(replicas(), run);
    for (const Prefetch when : {Prefetch::kAfterLookup, Prefetch::kBeforeLookup}) {
      run.prefetch = when;
      EXPECT_TRUE(plain == train(replicas(), run)) << static_cast<int>(when);
    }
  }
};

TEST_P(EnginePrefetchTest, PrefetchedLookupsGiveTheSameBitsWithEveryRule) {
  const std::vector<std::shared_ptr<const UpdateRule>> rules = {
      std::make_shared<SGDRule>(), std::make_shared<AdagradRule>(0.1, 1e-7),
      std::make_shared<AdamRule>(AdamRuleOptions{})};
  for (const auto& rule : rules) expect_same_bits({.rule = rule});
}

TEST_P(EnginePrefetchTest, PrefetchedLookupsSeeMostRowsUpdated) {
  expect_same_bits({.spread = false, .steps = 40});
}

TEST_P(EnginePrefetchTest, PrefetchedLookupsSeeEveryRowUpdated) {
  expect_same_bits({.lazy = false, .rule = std::make_shared<SGDRule>(0.5), .steps = 4});
}

TEST_P(EnginePrefetchTest, PrefetchedLookupsGiveTheSameBitsWithPipelinedUpdates) {
  expect_same_bits({.stale = true});
}

INSTANTIATE_TEST_SUITE_P(ReplicasAndWorkers, EnginePrefetchTest,
                         testing::Values(std::pair{1, 1}, std::pair{1, 3}, std::pair{2, 1},
                                         std::pair{2, 3}, std::pair{4, 1}, std::pair{4, 3}),
                         [](const auto& test) {
                           return str(test.param.first, "Replicas", test.param.second, "Workers");
                         });

// One replica with a table of 8 rows of 1; the learning rate is 1.
class EnginePrefetchOrderTest : public testing::TestWithParam<int> {
 protected:
  EnginePrefetchOrderTest() {
    set_active_engine(strategy_, engine_, "test");
    engine_->load(0, 0, Tensor::zeros({8, 1}));
  }
  static Batch bag(const std::vector<std::vector<int64_t>>& rows) {
    const RaggedTensor ragged = RaggedTensor::from_rows(rows);
    return {{.ids = ragged.values, .row_splits = ragged.row_splits, .weights = {}}};
  }
  // Decreases each row of `batch` by one; returns the activation of the lookup.
  float step(const Batch& batch, const std::vector<Batch>& prefetched) {
    const auto seen = strategy_.run([&] {
      const auto found = engine_->lookup(all_, batch);
      for (const Batch& next : prefetched) engine_->prefetch(all_, next);
      engine_->apply(all_, found.ticket, {Tensor::full<float>({1, 1}, 1)}, {{.learning_rate = 1}});
      return found.values[0].item<float>();
    });
    return seen[0];
  }
  float look(const Batch& batch) {
    return strategy_.run([&] { return engine_->lookup(all_, batch).values[0].item<float>(); })[0];
  }

  const Workers workers_{GetParam()};
  TPUStrategy strategy_{{.num_cores = 1}};
  Communicator& all_ = strategy_.communicator();
  const std::shared_ptr<EmbeddingEngine> engine_ = std::make_shared<EmbeddingEngine>(
      EngineConfiguration{.tables = {table("t", 8, 1, Combiner::kSum, std::make_shared<SGDRule>())},
                          .features = {{.table_id = 0}},
                          .num_hosts = 1,
                          .num_tensor_cores = 1});
};

TEST_P(EnginePrefetchOrderTest, APrefetchedBatchThatIsNotLookedUpIsDiscarded) {
  const Batch unused = bag({{1}}), next = bag({{1, 2}});
  EXPECT_EQ(step(bag({{1}}), {unused, unused, unused, next}), 0);
  EXPECT_EQ(step(bag({{1}}), {}), -1);
  EXPECT_EQ(step(next, {}), -2);
  EXPECT_EQ(look(unused), -3);
  EXPECT_EQ(engine_->retrieve(0).to_vector<float>(),
            (std::vector<float>{0, -3, -1, 0, 0, 0, 0, 0}));
}

TEST_P(EnginePrefetchOrderTest, APrefetchedBatchMayBeLookedUpAfterSeveralUpdates) {
  const Batch late = bag({{1, 2}});
  step(bag({{1}}), {late});
  step(bag({{2}}), {});
  step(bag({{5}}), {});
  EXPECT_EQ(look(late), -2);
}

TEST_P(EnginePrefetchOrderTest, InferenceKeepsThePrefetchedTrainingBatch) {
  const Batch next = bag({{1, 2}});
  step(bag({{1}}), {next});
  strategy_.run([&] { EXPECT_EQ(engine_->lookup(all_, next, false).values[0].item<float>(), -1); });
  EXPECT_EQ(step(next, {}), -1);
  EXPECT_EQ(look(bag({{1}})), -2);
}

TEST_P(EnginePrefetchOrderTest, RowsWrittenAfterThePrefetchAreSeen) {
  const Batch next = bag({{4}}), other = bag({{3}});
  step(bag({{1}}), {next});
  engine_->load(0, 0, Tensor::full<float>({8, 1}, 10));
  EXPECT_EQ(step(next, {other}), 10);
  engine_->initialize(0, 0, 8, Initializer("ones").function(), {});
  EXPECT_EQ(look(other), 1);
}

TEST_P(EnginePrefetchOrderTest, AnIdOutsideItsTableIsAnErrorOfTheLookup) {
  const Batch bad = bag({{8}});
  EXPECT_EQ(step(bag({{1}}), {bad}), 0);
  EXPECT_THROW(look(bad), ValueError);
  EXPECT_EQ(step(bag({{1}}), {}), -1);
}

TEST_P(EnginePrefetchOrderTest, AFailedRunDiscardsPrefetchedBatches) {
  const Batch next = bag({{1, 2}});
  step(bag({{1}}), {next});
  EXPECT_THROW(strategy_.run([&] {
    engine_->prefetch(all_, bag({{4}}));
    throw ValueError("test");
  }),
               ValueError);
  EXPECT_EQ(step(next, {next}), -1);
  EXPECT_EQ(step(next, {}), -3);
}

TEST_P(EnginePrefetchOrderTest, AnEngineMayBeDestroyedDuringAPrefetch) {
  std::vector<int64_t> ids(1 << 16, 3);
  const Batch large = bag({ids});
  for (int i = 0; i < 20; ++i) {
    EmbeddingEngine engine(engine_->configuration());
    strategy_.run([&] { engine.prefetch(all_, large); });
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, EnginePrefetchOrderTest, testing::Values(1, 3));

TEST(EnginePrefetchProcessesTest, SeveralProcessesGiveTheSameBits) {
  const auto rule = std::make_shared<AdagradRule>(0.1, 1e-7);
  std::map<bool, std::vector<float>> first_rows;
  for (const bool prefetches : {false, true}) {
    FakeJob job(2);
    const auto errors = job.run([&](ProcessGroup& group) {
      TPUStrategy strategy({.num_hosts = 2, .num_cores = 2}, group);
      Communicator& all = strategy.communicator();
      EngineConfiguration c = configuration(4, rule);
      c.num_hosts = 2;
      EmbeddingEngine engine(c, {.first = strategy.first_local_replica(), .count = 2});
      for (int step = 0; step < 5; ++step) {
        strategy.run([&] {
          const int r = current_replica_context()->replica;
          static thread_local Batch next;
          const Batch batch = step == 0 ? random_batch(c, r, false) : next;
          const auto found = engine.lookup(all, batch);
          next = random_batch(c, 10 * (step + 1) + r, false);
          if (prefetches) engine.prefetch(all, next);
          std::vector<Tensor> gradients;
          for (const Tensor& v : found.values) {
            gradients.push_back(Tensor::full<float>(v.shape(), 0.1F * static_cast<float>(r + 1)));
          }
          engine.apply(all, found.ticket, gradients,
                       std::vector<TableStep>(c.tables.size(), {.learning_rate = 0.1}));
        });
      }
      if (group.rank() != 0) return;
      first_rows[prefetches].resize(100 * 3);
      engine.read_rows(0, 0, 0, 100, first_rows[prefetches].data());
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
  EXPECT_EQ(first_rows[false], first_rows[true]);
  EXPECT_NE(first_rows[true], std::vector<float>(300, 0));
}

TEST(BackgroundWorkerTest, FinishRunsPendingPiecesAndRethrowsTheirErrors) {
  const Workers workers(3);
  BackgroundWorker worker;
  std::vector<int> done(100);
  for (int turn = 1; turn <= 50; ++turn) {
    worker.start(done.size(), [&](size_t piece) { ++done[piece]; });
    worker.finish();
    EXPECT_EQ(done, std::vector<int>(100, turn));
  }
  worker.start(100, [&](size_t piece) {
    if (piece == 7) throw ValueError("seven");
  });
  EXPECT_THROW(worker.finish(), ValueError);
  worker.finish();
}

TEST(BackgroundWorkerTest, SkippedPiecesAreNotRunning) {
  const Workers workers(2);
  BackgroundWorker worker;
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<int> done(20);  // local to this turn: a late piece would write to freed memory
    worker.start(done.size(), [&](size_t piece) { done[piece] = 1; });
    worker.leave_out(10);
    std::vector<int> tail(done.begin() + 10, done.end());
    EXPECT_TRUE(std::ranges::is_sorted(tail, std::greater<>()));
    if (turn % 2 == 0) worker.finish();
    worker.leave_out(0);
    EXPECT_TRUE(turn % 2 != 0 ||
                std::equal(done.begin(), done.begin() + 10, std::vector<int>(10, 1).begin()));
    EXPECT_TRUE(std::equal(tail.begin(), tail.end(), done.begin() + 10));
  }
}

}  // namespace keel::distribute::engine_prefetch_test

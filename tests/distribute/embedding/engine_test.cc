// Tests distribute/embedding/internal/batch_lookup.cc, engine_tables.cc, row_gradient_list.cc,
// row_gradients.cc, row_updater.cc and table_shard.cc.
#include <keel/distribute/embedding/engine.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "tests/distribute/fake_processes.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::distribute::engine_test {

using testing::HasSubstr;
using testing_support::counting;
using testing_support::message_of;

FeatureBatch bags(const std::vector<std::vector<int64_t>>& rows,
                  const std::vector<float>& weights = {}) {
  const RaggedTensor ragged = RaggedTensor::from_rows(rows);
  return {.ids = ragged.values,
          .row_splits = ragged.row_splits,
          .weights = weights.empty()
                         ? Tensor()
                         : Tensor::from(weights, {static_cast<int64_t>(weights.size())})};
}

EngineTable table(int64_t rows, int64_t dim, Combiner combiner,
                  std::shared_ptr<const UpdateRule> rule = std::make_shared<SGDRule>()) {
  return {.name = "t", .rows = rows, .dim = dim, .combiner = combiner, .update = {.rule = rule}};
}

struct Cores {
  int hosts = 1;
  int per_host = 1;
};
void PrintTo(const Cores& c, std::ostream* out) { *out << c.hosts << "x" << c.per_host; }

EngineConfiguration configuration(std::vector<EngineTable> tables,
                                  const std::vector<int>& feature_tables, const Cores& cores) {
  EngineConfiguration out = {.tables = std::move(tables),
                             .features = {},
                             .num_hosts = cores.hosts,
                             .num_tensor_cores = cores.hosts * cores.per_host};
  for (int t : feature_tables) out.features.push_back({.table_id = t});
  return out;
}

class EngineTest : public testing::TestWithParam<Cores> {
 protected:
  EmbeddingEngine engine_of(std::vector<EngineTable> tables,
                            const std::vector<int>& feature_tables) const {
    return EmbeddingEngine(configuration(std::move(tables), feature_tables, GetParam()));
  }
  int replicas() const { return GetParam().hosts * GetParam().per_host; }
  TPUStrategy strategy_{{.num_hosts = GetParam().hosts, .num_cores = GetParam().per_host}};
};

TEST_P(EngineTest, LoadAndRetrieveAgreeForAnyNumberOfShards) {
  EmbeddingEngine engine = engine_of({table(11, 3, Combiner::kSum)}, {0});
  engine.load(0, 0, counting(11, 3));
  EXPECT_EQ(engine.retrieve(0).to_vector<float>(), counting(11, 3).to_vector<float>());
  EXPECT_THROW(engine.load(0, 0, counting(10, 3)), ValueError);
}

TEST_P(EngineTest, EveryReplicaGetsItsOwnPooledRows) {
  EmbeddingEngine engine = engine_of({table(16, 2, Combiner::kMean)}, {0});
  engine.load(0, 0, counting(16, 2));
  const auto pooled = strategy_.run([&] {
    const int64_t r = current_replica_context()->replica;
    return engine.lookup(strategy_.communicator(), {bags({{r}, {}, {0, 1, 2}})}).values[0];
  });
  for (int r = 0; r < replicas(); ++r) {
    const auto f = static_cast<float>(2 * r);
    EXPECT_EQ(pooled[r].to_vector<float>(), (std::vector<float>{f, f + 1, 0, 0, 2, 3}));
  }
}

TEST_P(EngineTest, SignedWeightsAreUsedAsTheyAre) {
  // Rows 3 and 5 of the counting table with weights 2 and -1; a weight of 0; weights 1 and -1.
  const auto lookup = [&](Combiner combiner) {
    EmbeddingEngine engine = engine_of({table(16, 2, combiner)}, {0});
    engine.load(0, 0, counting(16, 2));
    return strategy_.run([&] {
      return engine
          .lookup(strategy_.communicator(), {bags({{3, 5}, {4}, {1, 2}}, {2, -1, 0, 1, -1})})
          .values[0]
          .to_vector<float>();
    })[0];
  };
  EXPECT_EQ(lookup(Combiner::kSum), (std::vector<float>{2, 3, 0, 0, -2, -2}));
  EXPECT_EQ(lookup(Combiner::kMean), (std::vector<float>{2, 3, 0, 0, 0, 0}));
  const std::vector<float> sqrtn = lookup(Combiner::kSqrtN);
  EXPECT_NEAR(sqrtn[0], 0.8944272, 1e-6);
  EXPECT_NEAR(sqrtn[1], 1.3416408, 1e-6);
  EXPECT_NEAR(sqrtn[4], -1.4142136, 1e-6);
}

TEST_P(EngineTest, GradientsAreSummedOverSamplesFeaturesAndReplicasThenAppliedOnce) {
  // Adagrad shows whether a row is updated once: sum g = 2 per replica, a = g^2, w = -lr.
  EmbeddingEngine engine =
      engine_of({table(8, 1, Combiner::kSum, std::make_shared<AdagradRule>(0.0, 0.0))}, {0, 0});
  strategy_.run([&] {
    auto found = engine.lookup(strategy_.communicator(), {bags({{5}}), bags({{5}})});
    const Tensor one = Tensor::full<float>({1, 1}, 1);
    engine.apply(strategy_.communicator(), found.ticket, {one, one},
                 {{.learning_rate = 0.5, .iteration = 0}});
  });
  const float g = static_cast<float>(2 * replicas());
  EXPECT_FLOAT_EQ(engine.retrieve(0, 1).to_vector<float>()[5], g * g);
  EXPECT_FLOAT_EQ(engine.retrieve(0).to_vector<float>()[5], -0.5F);
  EXPECT_EQ(engine.retrieve(0).to_vector<float>()[4], 0);
}

// Tables may be frozen: work that only updates need stops after a while, but an update still works.
TEST_P(EngineTest, LookupsWithoutAnUpdateLeaveNoState) {
  EmbeddingEngine engine = engine_of({table(8, 1, Combiner::kSum)}, {0});
  std::vector<std::shared_ptr<EmbeddingEngine::Ticket>> last(replicas());
  const auto look_up = [&] {
    strategy_.run([&] {
      last[current_replica_context()->replica] =
          engine.lookup(strategy_.communicator(), {bags({{5, 3}})}).ticket;
    });
  };
  for (int i = 0; i < 20; ++i) look_up();
  profile::start();
  for (int i = 0; i < 5; ++i) look_up();
  const profile::Report report = profile::stop();
  EXPECT_EQ(std::ranges::count(report.rows, "group ids", &profile::Row::name), 0);
  strategy_.run([&] {
    engine.apply(strategy_.communicator(), last[current_replica_context()->replica],
                 {Tensor::full<float>({1, 1}, 1)}, {{.learning_rate = 0.5, .iteration = 0}});
  });
  EXPECT_FLOAT_EQ(engine.retrieve(0).to_vector<float>()[5], -0.5F * static_cast<float>(replicas()));
}

TEST_P(EngineTest, WithoutAccumulationEachOccurrenceIsAStep) {
  EngineTable t = table(8, 1, Combiner::kSum, std::make_shared<AdagradRule>(0.0, 0.0));
  t.update.use_gradient_accumulation = false;
  EmbeddingEngine engine = engine_of({t}, {0});
  strategy_.run([&] {
    auto found = engine.lookup(strategy_.communicator(), {bags({{3, 3}})});
    engine.apply(strategy_.communicator(), found.ticket, {Tensor::full<float>({1, 1}, 1)},
                 {{.learning_rate = 1, .iteration = 0}});
  });
  // Steps of 1, 1/sqrt 2, 1/sqrt 3, ... for 2 n occurrences with gradient 1.
  double expected = 0;
  for (int k = 1; k <= 2 * replicas(); ++k) expected -= 1 / std::sqrt(k);
  EXPECT_NEAR(engine.retrieve(0).to_vector<float>()[3], expected, 1e-5);
}

// A step has several blocks of rows, which the workers share.
TEST(EngineStepTest, SGDOfOneReplicaGivesTheSameBitsForAnyNumberOfWorkers) {
  constexpr int64_t kRows = 30000, kSamples = 3000;
  const auto trained = [&](int workers, Combiner combiner, int64_t dim) {
    const int before = num_workers();
    set_num_workers(workers);
    TPUStrategy strategy({.num_cores = 1});
    EmbeddingEngine engine(
        configuration({table(kRows, dim, combiner), table(40, dim, combiner)}, {0, 1, 0}, {}));
    for (int64_t step = 0; step < 3; ++step) {
      std::vector<FeatureBatch> features;
      std::vector<Tensor> gradients;
      for (int64_t f = 0; f < 3; ++f) {
        std::vector<std::vector<int64_t>> rows(kSamples);
        std::vector<float> values(kSamples * dim);
        int64_t next = 17 * step + f;
        for (auto& bag : rows) {
          for (int64_t i = next % 5; i > 0; --i) {
            const int64_t scattered = next * 2654435761 % 1000003;
            bag.push_back(scattered % (f == 1 ? 40 : next % 3 == 0 ? 7 : kRows));
            ++next;
          }
          ++next;
        }
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i + 1)));
        }
        features.push_back(bags(rows));
        gradients.push_back(Tensor::from(values, {kSamples, dim}));
      }
      strategy.run([&] {
        auto found = engine.lookup(strategy.communicator(), features);
        const TableStep by = {.learning_rate = 0.1, .iteration = step};
        engine.apply(strategy.communicator(), found.ticket, gradients, {by, by});
      });
    }
    set_num_workers(before);
    auto out = engine.retrieve(0).to_vector<float>();
    for (const float x : engine.retrieve(1).to_vector<float>()) out.push_back(x);
    return out;
  };
  for (const int64_t dim : {1, 16, 24}) {
    for (const Combiner combiner : {Combiner::kSum, Combiner::kMean}) {
      EXPECT_EQ(trained(1, combiner, dim), trained(3, combiner, dim)) << dim;
    }
  }
}

TEST_P(EngineTest, GradientOfAMeanIsDividedByTheWeights) {
  EmbeddingEngine engine = engine_of({table(4, 1, Combiner::kMean)}, {0});
  strategy_.run([&] {
    const bool first = current_replica_context()->replica == 0;
    auto found =
        engine.lookup(strategy_.communicator(), {first ? bags({{0, 1}}, {1, 3}) : bags({{}})});
    engine.apply(strategy_.communicator(), found.ticket, {Tensor::full<float>({1, 1}, 1)},
                 {{.learning_rate = 1, .iteration = 0}});
  });
  EXPECT_EQ(engine.retrieve(0).to_vector<float>(), (std::vector<float>{-0.25, -0.75, 0, 0}));
}

TEST_P(EngineTest, ClippingAndDecaySurroundTheRule) {
  EngineTable t = table(4, 1, Combiner::kSum);
  t.update.clip_gradient_min = -2;
  t.update.clip_gradient_max = 2;
  t.update.weight_decay_factor = 0.1;
  t.update.clip_weight_max = 7;
  EmbeddingEngine engine = engine_of({t}, {0});
  engine.load(0, 0, Tensor::from<float>({10, 10, 10, 10}, {4, 1}));
  strategy_.run([&] {
    const bool first = current_replica_context()->replica == 0;
    auto found =
        engine.lookup(strategy_.communicator(), {first ? bags({{1}, {2}}) : bags({{}, {}})});
    engine.apply(strategy_.communicator(), found.ticket, {Tensor::from<float>({100, 1}, {2, 1})},
                 {{.learning_rate = 1, .iteration = 0}});
  });
  // Row 1: 10 - 1 - 2 = 7; row 2: 10 - 1 - 1 = 8, clipped to 7; the others are unchanged.
  EXPECT_EQ(engine.retrieve(0).to_vector<float>(), (std::vector<float>{10, 7, 7, 10}));
}

TEST_P(EngineTest, ANonLazyRuleUpdatesEveryRow) {
  EngineTable t = table(3, 1, Combiner::kSum, std::make_shared<SGDRule>(0.5));
  t.update.lazy = false;
  EmbeddingEngine engine = engine_of({t}, {0});
  for (int step = 0; step < 2; ++step) {
    strategy_.run([&] {
      const bool look = step == 0 && current_replica_context()->replica == 0;
      auto found = engine.lookup(strategy_.communicator(), {look ? bags({{1}}) : bags({{}})});
      engine.apply(strategy_.communicator(), found.ticket, {Tensor::full<float>({1, 1}, 1)},
                   {{.learning_rate = 1, .iteration = step}});
    });
  }
  // The momentum of row 1 moves it in the second step too, which does not look it up.
  EXPECT_EQ(engine.retrieve(0).to_vector<float>(), (std::vector<float>{0, -1.5, 0}));
}

TEST_P(EngineTest, AnIdOutsideItsTableIsAnErrorBeforeAnythingChanges) {
  EmbeddingEngine engine = engine_of({table(4, 1, Combiner::kSum)}, {0});
  for (int64_t id : {int64_t{4}, int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_THAT(
        message_of<ValueError>([&] {
          strategy_.run([&] { engine.lookup(strategy_.communicator(), {bags({{0}, {id}})}); });
        }),
        HasSubstr(std::to_string(id)));
  }
}

TEST_P(EngineTest, ATicketIsUsedOnce) {
  EmbeddingEngine engine = engine_of({table(4, 1, Combiner::kSum)}, {0});
  EXPECT_THROW(strategy_.run([&] {
    auto found = engine.lookup(strategy_.communicator(), {bags({{0}})});
    const std::vector<Tensor> g = {Tensor::full<float>({1, 1}, 1)};
    engine.apply(strategy_.communicator(), found.ticket, g, {{}});
    engine.apply(strategy_.communicator(), found.ticket, g, {{}});
  }),
               RuntimeError);
}

TEST_P(EngineTest, IncompatibleArgumentsALookupIsRejectedBeforeItsTicketIsUsed) {
  for (const bool pipelined : {false, true}) {
    EngineConfiguration c = configuration(
        {table(4, 2, Combiner::kSum), table(4, 1, Combiner::kSum)}, {0, 1}, GetParam());
    c.pipeline_execution_with_tensor_core = pipelined;
    EmbeddingEngine engine(c);
    Communicator& all = strategy_.communicator();
    const FeatureBatch one_each = {
        .ids = Tensor::from<int64_t>({1, 2}, {2}), .row_splits = {}, .weights = {}};
    strategy_.run([&] {
      auto found = engine.lookup(all, {bags({{0}, {1}, {}}), one_each});
      const Tensor a = Tensor::full<float>({3, 2}, 1), b = Tensor::full<float>({2, 1}, 1);
      const std::vector<TableStep> steps(2, {.learning_rate = 1});
      const auto apply = [&](std::vector<Tensor> gradients, std::vector<TableStep> by) {
        engine.apply(all, found.ticket, std::move(gradients), std::move(by));
      };
      for (const Shape& shape : {Shape{}, Shape{1, 2}, Shape{2, 3}, Shape{3, 1}, Shape{6}}) {
        EXPECT_THROW(apply({Tensor::full<float>(shape, 1), b}, steps), ValueError);
      }
      EXPECT_THROW(apply({a, Tensor::full<float>({3, 1}, 1)}, steps), ValueError);
      EXPECT_THROW(apply({a, Tensor::full<double>({2, 1}, 1)}, steps), TypeError);
      EXPECT_THROW(apply({a}, steps), ValueError);
      EXPECT_THROW(apply({a, b, b}, steps), ValueError);
      EXPECT_THROW(apply({a, b}, {steps[0]}), ValueError);
      apply({Tensor(), b}, steps);
    });
    strategy_.run([&] { engine.drain(all); });
    const auto n = static_cast<float>(replicas());
    EXPECT_EQ(engine.retrieve(0).to_vector<float>(), std::vector<float>(8, 0));
    EXPECT_EQ(engine.retrieve(1).to_vector<float>(), (std::vector<float>{0, -n, -n, 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, EngineTest,
                         testing::Values(Cores{1, 1}, Cores{1, 2}, Cores{1, 3}, Cores{1, 4},
                                         Cores{1, 7}, Cores{2, 2}, Cores{3, 1}, Cores{3, 2}));

TEST(EngineInitializationTest, ShardsInitializeRowsAsOneTableWould) {
  const Initializer glorot = "glorot_uniform";
  const RandomStream stream{.seed = 3, .purpose = 5};
  EmbeddingEngine one(configuration({table(13, 5, Combiner::kSum)}, {0}, {1, 1}));
  EmbeddingEngine six(configuration({table(13, 5, Combiner::kSum)}, {0}, {3, 2}));
  one.initialize(0, 0, 13, glorot.function(), stream);
  six.initialize(0, 0, 13, glorot.function(), stream);
  std::vector<float> whole(13 * 5);
  glorot.function().fill(whole, 0, {13, 5}, stream);
  EXPECT_EQ(one.retrieve(0).to_vector<float>(), whole);
  EXPECT_EQ(six.retrieve(0).to_vector<float>(), whole);
}

TEST(EngineInitializationTest, RowsBeyondThoseInitializedStayZero) {
  EmbeddingEngine engine(configuration({table(5, 1, Combiner::kSum)}, {0}, {2, 1}));
  engine.initialize(0, 0, 3, Initializer("ones").function(), {});
  EXPECT_EQ(engine.retrieve(0).to_vector<float>(), (std::vector<float>{1, 1, 1, 0, 0}));
}

TEST(EngineProcessesTest, TablesOfOtherSizesInAnotherProcessAreAnErrorInBoth) {
  FakeJob job(2);
  const auto errors = job.run([](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 1}, group);
    EmbeddingEngine engine(configuration({table(4 + group.rank(), 1, Combiner::kSum)}, {0}, {2, 1}),
                           {.first = strategy.first_local_replica(), .count = 1});
    strategy.run([&] { engine.lookup(strategy.communicator(), {bags({{2}})}); });
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("lookup of ids in tables"));
  }
}

// Looks up one id in every step; learning rate 0.1, gradient 1.
std::vector<float> seen_by_training(bool pipelined, bool evaluate_between) {
  TPUStrategy strategy({.num_cores = 2});
  EngineConfiguration c = configuration({table(4, 1, Combiner::kSum)}, {0}, {1, 2});
  c.pipeline_execution_with_tensor_core = pipelined;
  EmbeddingEngine engine(c);
  std::vector<float> seen;
  for (int step = 0; step < 4; ++step) {
    const auto values = strategy.run([&] {
      Communicator& all = strategy.communicator();
      const FeatureBatch batch = bags({{1}});
      const auto found = engine.lookup(all, {batch});
      engine.apply(all, found.ticket, {Tensor::full<float>({1, 1}, 0.5F)},
                   {{.learning_rate = 0.1}});
      if (evaluate_between) engine.lookup(all, {batch}, false);
      return found.values[0].item<float>();
    });
    seen.push_back(values[0]);
  }
  EXPECT_EQ(engine.has_pending(), pipelined && !evaluate_between);
  strategy.run([&] { engine.drain(strategy.communicator()); });
  EXPECT_FALSE(engine.has_pending());
  EXPECT_NEAR(engine.retrieve(0).to_vector<float>()[1], -0.4, 1e-6);
  return seen;
}

TEST(EnginePipelineTest, APipelinedStepSeesAllUpdatesButTheLast) {
  const std::vector<float> off = {0, -0.1F, -0.2F, -0.3F};
  const std::vector<float> on = {0, 0, -0.1F, -0.2F};
  const std::vector<float> unpipelined = seen_by_training(false, false);
  const std::vector<float> pipelined = seen_by_training(true, false);
  for (size_t i = 0; i < off.size(); ++i) {
    EXPECT_NEAR(unpipelined[i], off[i], 1e-6);
    EXPECT_NEAR(pipelined[i], on[i], 1e-6);
  }
}

TEST(EnginePipelineTest, InferenceSeesEveryUpdate) {
  const std::vector<float> seen = seen_by_training(true, true);
  EXPECT_NEAR(seen[3], -0.3, 1e-6);
}

TEST(EnginePipelineTest, APendingUpdateSurvivesAFailedRun) {
  TPUStrategy strategy({.num_cores = 2});
  EngineConfiguration c = configuration({table(4, 1, Combiner::kSum)}, {0}, {1, 2});
  c.pipeline_execution_with_tensor_core = true;
  const auto engine = std::make_shared<EmbeddingEngine>(c);
  set_active_engine(strategy, engine, "test");
  Communicator& all = strategy.communicator();
  strategy.run([&] {
    const auto found = engine->lookup(all, {bags({{1}})});
    engine->apply(all, found.ticket, {Tensor::full<float>({1, 1}, 0.5F)}, {{.learning_rate = 0.1}});
  });
  for (const bool training : {false, true}) {
    EXPECT_THROW(strategy.run([&] {
      const int64_t bad = current_replica_context()->replica == 1 ? 4 : 0;
      engine->lookup(all, {bags({{bad}})}, training);
    }),
                 ValueError);
    EXPECT_TRUE(engine->has_pending());
  }
  strategy.run([&] { engine->drain(all); });
  EXPECT_NEAR(engine->retrieve(0).to_vector<float>()[1], -0.1, 1e-6);
}

// SGD that throws at the third row, once.
struct FailingRule final : UpdateRule {
  mutable std::atomic<int> rows = 0;
  void update(float* w, const float* g, float* const*, int64_t n, const Step&) const override {
    if (++rows == 3) throw ValueError("planned");
    for (int64_t i = 0; i < n; ++i) w[i] -= g[i];
  }
  void update(double*, const double*, double* const*, int64_t, const Step&) const override {}
};

TEST(EnginePipelineTest, AnUpdateThatFailsBetweenItsRowsIsNotRepeated) {
  for (const int replicas : {1, 2}) {
    TPUStrategy strategy({.num_cores = replicas});
    EngineConfiguration c =
        configuration({table(8, 1, Combiner::kSum, std::make_shared<FailingRule>())}, {0},
                      {.per_host = replicas});
    c.pipeline_execution_with_tensor_core = true;
    const auto engine = std::make_shared<EmbeddingEngine>(c);
    set_active_engine(strategy, engine, "test");
    Communicator& all = strategy.communicator();
    const auto step = [&] {
      strategy.run([&] {
        const auto found = engine->lookup(all, {bags({{0}, {1}, {2}, {3}})});
        engine->apply(all, found.ticket, {Tensor::full<float>({4, 1}, 1)}, {{}});
      });
    };
    step();
    EXPECT_THROW(strategy.run([&] { engine->drain(all); }), ValueError);
    EXPECT_FALSE(engine->has_pending());
    const std::vector<float> once = engine->retrieve(0).to_vector<float>();
    strategy.run([&] { engine->drain(all); });
    EXPECT_EQ(engine->retrieve(0).to_vector<float>(), once);
    // The engine can be used afterwards.
    step();
    strategy.run([&] { engine->drain(all); });
    const std::vector<float> again = engine->retrieve(0).to_vector<float>();
    for (int row = 0; row < 4; ++row) {
      EXPECT_EQ(again[row], once[row] - static_cast<float>(replicas)) << row;
    }
  }
}

TEST(EngineQuantizationTest, RoundsRowsBeforeTheyAreCombinedAndStoresThemExactly) {
  // Five values from -1 to 1: 0.3 -> 0.5, -0.3 -> -0.5, 0.24 -> 0, 2 -> 1.
  TPUStrategy strategy({.num_cores = 1});
  EngineTable t = table(2, 2, Combiner::kMean);
  t.quantization = Quantization{.num_buckets = 5, .lower = -1, .upper = 1};
  EmbeddingEngine engine(configuration({t}, {0}, {1, 1}));
  const Tensor rows = Tensor::from<float>({0.3F, -0.3F, 0.24F, 2}, {2, 2});
  engine.load(0, 0, rows);
  strategy.run([&] {
    const auto found = engine.lookup(strategy.communicator(), {bags({{0, 1}})});
    EXPECT_EQ(found.values[0].to_vector<float>(), (std::vector<float>{0.25F, 0.25F}));
  });
  EXPECT_EQ(engine.retrieve(0).to_vector<float>(), rows.to_vector<float>());
}

}  // namespace keel::distribute::engine_test

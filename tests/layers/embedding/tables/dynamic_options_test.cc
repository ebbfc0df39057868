// Tests of options of tables with dynamic ids: prefetching, 16-bit rows, quantization, l2,
// max_norm, trainable, the combiner max and row-wise Adagrad.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/partial_tpu_embedding.h>
#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/embedding/rowwise_adagrad.h>
#include <keel/optimizers/sgd.h>

#include "tests/layers/embedding/tables/dynamic_job.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_options_test {

using dynamic_job::Job;
using dynamic_job::table_with;
using dynamic_job::twin_batches;
using dynamic_job::twin_rows;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;

TEST(DynamicTableTest, D071D073PrefetchingChangesNoBit) {
  const int before = num_workers();
  set_num_workers(2);
  const DynamicVocabulary dynamic = {.capacity = 20,
                                     .admission = Admission::count(2),
                                     .eviction = Eviction::lru(),
                                     .not_admitted = NotAdmitted::default_row("ones")};
  for (const bool pipelined : {false, true}) {
    const auto run = [&](bool prefetches) {
      TPUEmbeddingOptions options;
      options.pipeline_execution_with_tensor_core = pipelined;
      options.pipeline_lookups = true;
      Job job({.table = table_with(dynamic, "adagrad")}, 1, options);
      std::vector<std::vector<float>> out;
      for (uint64_t step = 0; step < 12; ++step) {
        const TensorLike batch = twin_batches(step, 1)[0];
        if (prefetches && step > 0) {
          job.strategy().run([&] { job.layer()->prefetch(Tensors(batch)); });
        }
        out.push_back(job.train(batch));
        // D-072: a change after a prefetch is seen by the lookup.
        if (step == 6) job.dynamic().prune({.max_rows = 3});
      }
      out.push_back(job.rows());
      return out;
    };
    EXPECT_EQ(run(true), run(false)) << pipelined;
  }
  set_num_workers(before);
}

TEST(DynamicTableTest, D074SixteenBitRowsAreReproducibleAndUnbiased) {
  for (const char* const dtype : {"bfloat16", "float16"}) {
    const auto table = [&] {
      return make_table({.dim = 2,
                         .initializer = "ones",
                         .optimizer = tpu::SGD{.learning_rate = 0.001},
                         .combiner = "sum",
                         .name = "items",
                         .storage_dtype = dtype,
                         .dynamic = DynamicVocabulary{}});
    };
    Job whole(table(), 2);
    for (uint64_t step = 0; step < 10; ++step) whole.train(twin_batches(step, 2));
    Job again(table(), 2);
    for (uint64_t step = 0; step < 10; ++step) again.train(twin_batches(step, 2));
    EXPECT_EQ(whole.rows(), again.rows());
    // Many rows that take the same small steps: the mean is that of exact arithmetic.
    Job mean(table());
    std::vector<int64_t> keys(4000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
    for (int step = 0; step < 5; ++step) mean.train(ragged(IdRows{keys}));
    double sum = 0;
    const std::vector<float> rows = mean.rows();
    for (size_t i = 0; i < rows.size(); i += 2) sum += rows[i];
    EXPECT_NEAR(sum / 4000, 1 - 5 * 0.001 / 8, 1e-4) << dtype;
  }
}

TEST(DynamicTableTest, D075QuantizationRoundsFreshFallbackAndKnownRowsAlike) {
  const auto table = [](const DynamicVocabulary& dynamic) {
    return make_table({.dim = 1,
                       .initializer = initializers::constant(0.3),
                       .optimizer = tpu::SGD{.learning_rate = 0},
                       .combiner = "sum",
                       .name = "items",
                       .quantization_config = QuantizationConfig(3, 0, 1),
                       .dynamic = dynamic});
  };
  Job job(table({}));
  EXPECT_THAT(job.train(ragged(IdRows{{1}})), ElementsAre(0.5F));  // fresh
  EXPECT_THAT(job.train(ragged(IdRows{{1}})), ElementsAre(0.5F));  // known
  EXPECT_THAT(job.rows(), ElementsAre(0.3F));
  Job fallback(table({.admission = Admission::count(9),
                      .not_admitted = NotAdmitted::default_row(initializers::constant(0.8))}));
  EXPECT_THAT(fallback.train(ragged(IdRows{{1, 2}})), ElementsAre(2));
}

// Completes the options of a table with dynamic ids, or of its static twin: the table with a
// vocabulary whose row i starts as the initial row of id i.
Table table_of(TableConfig options, bool dynamic) {
  options.dim = 2;
  options.initializer = tpu::RowIdInitializer();
  options.name = "items";
  if (dynamic) {
    if (!options.dynamic) options.dynamic = DynamicVocabulary{};
  } else {
    options.vocabulary_size = 50;
  }
  return make_table(options);
}

void expect_bits_of_static_twin(const TableConfig& options, std::initializer_list<int> cores) {
  for (const int count : cores) {
    SCOPED_TRACE(count);
    std::vector<std::vector<std::vector<float>>> activations;
    Job dynamic(table_of(options, true), count);
    if (count == Job::kVariable) dynamic.use(dynamic_job::sgd(0.125));
    for (uint64_t step = 0; step < 15; ++step) {
      activations.push_back(dynamic.train(twin_batches(step, std::max(count, 1))));
    }
    const std::vector<int64_t> keys = dynamic.keys();
    Job twin(table_of(options, false), count);
    if (count == Job::kVariable) twin.use(dynamic_job::sgd(0.125));
    for (uint64_t step = 0; step < 15; ++step) {
      ASSERT_EQ(twin.train(twin_batches(step, std::max(count, 1))), activations[step]) << step;
    }
    ASSERT_EQ(dynamic.rows(), twin_rows(twin, keys));
  }
}

TEST(DynamicTableTest, PenaltiesAndLimitsOfRowsAreThoseOfTheStaticTwin) {
  for (const auto& [l2, max_norm] : {std::pair(0.25, 0.0), {0.0, 10.0}, {0.125, 20.0}}) {
    SCOPED_TRACE(str(l2, ' ', max_norm));
    expect_bits_of_static_twin({.optimizer = tpu::SGD{.learning_rate = 0.125},
                                .combiner = "sum",
                                .l2 = l2,
                                .max_norm = max_norm},
                               {Job::kVariable, 1, 3});
  }
  Job job(table_of({.optimizer = "sgd", .combiner = "sum", .max_norm = 5}, true));
  job.train(ragged(IdRows{{30, 2}}));
  const std::vector<float> rows = job.rows();
  EXPECT_NEAR(std::hypot(rows[2], rows[3]), 5, 1e-5);  // id 30
  EXPECT_LT(std::hypot(rows[0], rows[1]), 4);          // id 2
}

TEST(DynamicTableTest, FallbackRowsHaveThePenaltyToo) {
  for (const int cores : {Job::kVariable, 1}) {
    const DynamicVocabulary dynamic = {
        .admission = Admission::count(9),
        .not_admitted = NotAdmitted::default_row(initializers::constant(2))};
    Job job(table_of({.optimizer = tpu::SGD{.learning_rate = 1},
                      .combiner = "sum",
                      .dynamic = dynamic,
                      .l2 = 0.125},
                     true),
            cores);
    if (cores == Job::kVariable) job.use(dynamic_job::sgd(1));
    job.train(ragged(IdRows{{1, 2}}));
    // The gradient of each occurrence is 1 / 8 and 2 / 8, that of the penalty 2 x 0.125 x 2.
    EXPECT_THAT(job.dynamic().state().fallback.to_vector<float>(),
                ElementsAre(2 - 0.25F - 0.5F, 2 - 0.5F - 0.5F));
  }
}

TEST(DynamicTableTest, MaximaAreThoseOfTheStaticTwin) {
  expect_bits_of_static_twin({.optimizer = tpu::SGD{.learning_rate = 0.125}, .combiner = "max"},
                             {Job::kVariable, 1, 3});
  expect_bits_of_static_twin({.optimizer = tpu::Adagrad{.learning_rate = 0.5}, .combiner = "max"},
                             {1, 2});
}

TEST(DynamicTableTest, MaximaOfIdsWithoutARowAreThoseOfTheRowsThatTheyRead) {
  for (const int cores : {Job::kVariable, 1}) {
    const DynamicVocabulary dynamic = {
        .admission = Admission::count(9),
        .not_admitted = NotAdmitted::default_row(initializers::constant(-2))};
    Job job(
        table_of({.optimizer = tpu::SGD{.learning_rate = 1}, .combiner = "max", .dynamic = dynamic},
                 true),
        cores);
    if (cores == Job::kVariable) job.use(dynamic_job::sgd(1));
    job.evaluate(ragged(IdRows{{1}}));
    job.dynamic().assign_rows(ids({-7, 5}), testing_support::floats({-7, -1, 5, -5}, {2, 2}));
    EXPECT_THAT(job.evaluate(ragged(IdRows{{1, -7}, {5, 2}, {}})),
                ElementsAre(-2, -1, 5, -2, 0, 0));
  }
}

TEST(DynamicTableTest, MaximaThatLeaveIdsOutAreRefused) {
  EXPECT_THAT(message_of<NotImplementedError>([] {
                make_table({.dim = 2,
                            .combiner = "max",
                            .name = "items",
                            .dynamic = DynamicVocabulary{.not_admitted = NotAdmitted::ignore()}});
              }),
              testing::AllOf(HasSubstr("items"), HasSubstr("max"), HasSubstr("ignore")));
}

TEST(DynamicTableTest, RowwiseAdagradIsThatOfTheStaticTwin) {
  for (const bool accumulates : {true, false}) {
    expect_bits_of_static_twin(
        {.optimizer = tpu::RowwiseAdagrad{.learning_rate = 0.5,
                                          .initial_accumulator_value = 0.25,
                                          .use_gradient_accumulation = accumulates},
         .combiner = "sum"},
        {1, 3});
  }
}

TEST(DynamicTableTest, SlotsWithOneValuePerRowAreSavedRestoredAndReported) {
  const DynamicVocabulary dynamic = {
      .capacity = 12,
      .eviction = Eviction::lru(),
      .not_admitted = NotAdmitted::hashed(3, initializers::constant(1))};
  const auto table = [&] {
    return table_of({.optimizer = tpu::RowwiseAdagrad{.learning_rate = 0.5},
                     .combiner = "sum",
                     .dynamic = dynamic},
                    true);
  };
  std::vector<float> rows, slots;
  std::map<std::string, Tensor> saved;
  {
    Job job(table());
    int64_t evicted = 0;
    job.evaluate(ragged(IdRows{{1}}));
    job.dynamic().on_evict([&](const EvictedRows& of) {
      evicted += of.keys.size();
      EXPECT_EQ(of.slots.at("accumulators").shape(), (Shape{of.keys.size(), 1}));
      for (const float a : of.slots.at("accumulators").data<float>()) EXPECT_GT(a, 0);
    });
    for (uint64_t step = 0; step < 10; ++step) {
      job.train(twin_batches(step, 1));
      if (step != 4) continue;
      for (const StateEntry& entry : job.layer()->state_entries()) {
        saved.emplace(entry.name, entry.get());
      }
    }
    EXPECT_GT(evicted, 0);
    rows = job.rows();
    const Tensor of_table = job.dynamic().slots("accumulators", job.dynamic().keys());
    EXPECT_EQ(of_table.shape(), (Shape{job.dynamic().size(), 1}));
    slots = of_table.to_vector<float>();
  }
  EXPECT_EQ(saved.at("items/fallback/accumulators").shape(), (Shape{3, 1}));
  Job restored(table());
  restored.evaluate(ragged(IdRows{{1}}));
  for (const StateEntry& entry : restored.layer()->state_entries()) {
    if (saved.contains(entry.name)) entry.set(saved.at(entry.name));
  }
  for (uint64_t step = 5; step < 10; ++step) restored.train(twin_batches(step, 1));
  EXPECT_EQ(restored.rows(), rows);
  EXPECT_EQ(restored.dynamic().slots("accumulators", restored.dynamic().keys()).to_vector<float>(),
            slots);
}

// A layer with a table that is trained and one that is not, and the optimizer of variables.
TEST(DynamicTableTest, ATableThatIsNotTrainedKeepsItsRowsAndAdmitsNoIds) {
  for (const int cores : {Job::kVariable, 1, 2}) {
    SCOPED_TRACE(cores);
    std::unique_ptr<distribute::Strategy> strategy;
    if (cores == Job::kVariable) {
      strategy = std::make_unique<distribute::CPUStrategy>();
    } else {
      strategy = std::make_unique<distribute::TPUStrategy>(
          distribute::TPUStrategyOptions{.num_cores = cores});
    }
    const auto scope = strategy->scope();
    const auto made = [](const std::string& name, bool trainable) {
      return make_table({.dim = 2,
                         .initializer = tpu::RowIdInitializer(),
                         .optimizer = "adagrad",
                         .combiner = "sum",
                         .name = name,
                         .dynamic = DynamicVocabulary{},
                         .trainable = trainable});
    };
    const Table trained = made("trained", true), frozen = made("frozen", false);
    const layers::TPUEmbedding layer({.feature_config = {{"a", FeatureConfig{.table = trained}},
                                                         {"b", FeatureConfig{.table = frozen}}}});
    const Tensors batch = {{"a", ragged(IdRows{{1, 2}})}, {"b", ragged(IdRows{{3, 4, 9}})}};
    layer->build(specs_of(batch));
    layer->dynamic_table(frozen).assign_rows(ids({3, 4}),
                                             testing_support::floats({1, 2, 3, 4}, {2, 2}));
    const OptimizerHandle optimizer = dynamic_job::sgd(1);
    for (int step = 0; step < 3; ++step) {
      strategy->run([&] {
        GradientTape tape;
        const Tensors found = layer(batch);
        EXPECT_THAT(found["b"].tensor().to_vector<float>(), ElementsAre(4, 6));
        const auto variables = layer->trainable_variables();
        const Tensor loss = ops::sum(found["a"].tensor()) + ops::sum(found["b"].tensor());
        optimizer->apply_gradients(tape.gradient(loss, variables), variables);
      });
    }
    const DynamicTable table = layer->dynamic_table(frozen);
    EXPECT_EQ(table.rows(table.keys()).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
    const DynamicTableStatistics counts = table.statistics();
    EXPECT_EQ(counts.updates, 0);
    EXPECT_EQ(counts.looked_up, 0);
    EXPECT_EQ(counts.inference_looked_up, 9 * std::max(cores, 1));
    EXPECT_EQ(counts.inference_hits, 6 * std::max(cores, 1));
    EXPECT_TRUE(table.state().slots.empty());
    EXPECT_EQ(layer->dynamic_table(trained).statistics().updates, 3);
    EXPECT_EQ(layer->dynamic_table(trained).size(), 2);
  }
}

}  // namespace keel::dynamic_options_test

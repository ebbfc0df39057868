// Tests layers/embedding/tables/internal/keyed_variable.cc and optimizers/step/keyed_updates.cc:
// training of tables with dynamic ids in an engine and as variables.
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
#include <keel/optimizers/sgd.h>

#include "tests/layers/embedding/tables/dynamic_job.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_training_test {

using dynamic_job::Job;
using dynamic_job::sgd;
using dynamic_job::static_twin;
using dynamic_job::table_with;
using dynamic_job::twin_batches;
using dynamic_job::twin_rows;
using layers::TPUEmbedding;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::expect_near;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;

TEST(DynamicTableTest, D017ReplicasCountAllOccurrences) {
  const DynamicVocabulary dynamic = {
      .capacity = 4, .headroom = 0, .admission = Admission::count(2), .eviction = Eviction::lfu()};
  const auto run = [&](int cores) {
    Job job(table_with(dynamic), cores);
    std::mt19937 random(5);
    for (int step = 0; step < 12; ++step) {
      IdRows samples(4);
      for (auto& sample : samples) {
        for (int i = 0; i < 3; ++i) sample.push_back(static_cast<int64_t>(random() % 9));
      }
      std::vector<TensorLike> batches;
      for (int r = 0; r < cores; ++r) {
        batches.push_back(
            ragged(IdRows(samples.begin() + r * 4 / cores, samples.begin() + (r + 1) * 4 / cores)));
      }
      job.train(batches);
    }
    return job.dynamic().state();
  };
  const DynamicTableState one = run(1);
  for (const int cores : {2, 4}) {
    const DynamicTableState other = run(cores);
    EXPECT_EQ(other.keys.to_vector<int64_t>(), one.keys.to_vector<int64_t>());
    EXPECT_EQ(other.count.to_vector<int64_t>(), one.count.to_vector<int64_t>());
    EXPECT_EQ(other.last.to_vector<int64_t>(), one.last.to_vector<int64_t>());
    EXPECT_EQ(other.pending_keys.to_vector<int64_t>(), one.pending_keys.to_vector<int64_t>());
    EXPECT_EQ(other.statistics, one.statistics);
  }
}

TEST(DynamicTableTest, D039AFullTableThrowsInAllReplicasAndChangesNothing) {
  Job job(table_with({.capacity = 5}), 4);
  const auto batch = [](int64_t last) {
    return std::vector<TensorLike>{ragged(IdRows{{1}}), ragged(IdRows{{2}}), ragged(IdRows{{3, 1}}),
                                   ragged(IdRows{{4, last}})};
  };
  job.train(batch(1));
  const DynamicTableState before = job.dynamic().state();
  EXPECT_THAT(message_of<RuntimeError>([&] {
                std::vector<TensorLike> too_many = batch(5);
                too_many[0] = ragged(IdRows{{6}});
                job.train(too_many);
              }),
              AllOf(HasSubstr("'items'"), HasSubstr("2 new ids"), HasSubstr("is 5")));
  EXPECT_EQ(job.dynamic().state().rows.to_vector<float>(), before.rows.to_vector<float>());
  EXPECT_EQ(job.dynamic().statistics(), before.statistics);
  job.train(batch(5));
  EXPECT_THAT(job.keys(), ElementsAre(1, 2, 3, 4, 5));
}

TEST(DynamicTableTest, D039AFullTableRefusesADelayedUpdateOnce) {
  TPUEmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Job job(FeatureConfig{.table = table_with({.capacity = 3})}, 2, options);
  const auto both = [](int64_t one, int64_t other) {
    return std::vector<TensorLike>{ragged(IdRows{{one}}), ragged(IdRows{{other}})};
  };
  job.train(both(1, 2));
  job.train(both(3, 1));
  job.train(both(4, 2));  // its update is delayed
  EXPECT_THAT(message_of<RuntimeError>([&] { job.train(both(1, 2)); }), HasSubstr("'items'"));
  job.dynamic().erase(Tensor::from<int64_t>({1}, {1}));
  job.train(both(2, 5));
  EXPECT_THAT(job.keys(), ElementsAre(2, 3, 5));
}

TEST(DynamicTableTest, D041StaticTwinInAnEngine) {
  const EmbeddingOptimizer all[] = {
      tpu::SGD{.learning_rate = 0.1},
      tpu::Adagrad{.learning_rate = 0.1},
      tpu::Adam{.learning_rate = 0.1},
      tpu::FTRL{.learning_rate = 0.1},
      tpu::AdagradMomentum{.learning_rate = 0.1},
      tpu::SGD{.learning_rate = 0.1, .use_gradient_accumulation = false},
      tpu::CustomOptimizer{.custom_computation =
                               [](const CustomRow& row) {
                                 for (size_t i = 0; i < row.row.size(); ++i) {
                                   row.slot(0)[i] += row.gradient[i];
                                   row.row[i] -= 0.1F * row.slot(0)[i];
                                 }
                               },
                           .slot_names = {"sum"},
                           .slot_initializers = {initializers::constant(0.5)}}};
  for (const EmbeddingOptimizer& optimizer : all) {
    for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
      for (const int cores : {1, 3}) {
        SCOPED_TRACE(str(optimizer->class_name, ' ', combiner, ' ', cores));
        Job dynamic(table_with({}, optimizer, combiner), cores);
        std::vector<std::vector<std::vector<float>>> activations;
        for (uint64_t step = 0; step < 20; ++step) {
          activations.push_back(dynamic.train(twin_batches(step, cores)));
        }
        const std::vector<int64_t> keys = dynamic.keys();
        Job twin(static_twin(optimizer, combiner), cores);
        for (uint64_t step = 0; step < 20; ++step) {
          ASSERT_EQ(twin.train(twin_batches(step, cores)), activations[step]);
        }
        ASSERT_EQ(dynamic.rows(), twin_rows(twin, keys));
      }
    }
  }
}

// The order of rows in memory is that of their arrival, or that of a checkpoint.
TEST(DynamicTableTest, D041NormsInAnEngineAreThoseOfTheStaticTwinAndHaveNoOrder) {
  const EmbeddingOptimizer all[] = {
      tpu::SGD{.learning_rate = 0.1, .clipnorm = 1},
      tpu::Adagrad{.learning_rate = 0.1, .global_clipnorm = 2},
      tpu::Adam{.learning_rate = 0.1, .lazy_adam = false, .clipnorm = 1}};
  const DynamicVocabulary dynamic = {.not_admitted = NotAdmitted::hashed(2, "ones")};
  for (const EmbeddingOptimizer& optimizer : all) {
    for (const int cores : {1, 3}) {
      SCOPED_TRACE(str(optimizer->class_name, ' ', cores));
      std::vector<int64_t> keys;
      std::vector<float> rows, restarted;
      DynamicTableState state;
      {
        Job job(table_with(dynamic, optimizer, "mean"), cores);
        for (uint64_t step = 0; step < 5; ++step) job.train(twin_batches(step, cores));
        state = job.dynamic().state();
        for (uint64_t step = 5; step < 10; ++step) job.train(twin_batches(step, cores));
        keys = job.keys();
        rows = job.rows();
      }
      {
        Job job(table_with(dynamic, optimizer, "mean"), cores);
        job.layer()->build(specs_of(Tensors(twin_batches(0, 1)[0])));
        job.dynamic().restore(state);
        for (uint64_t step = 5; step < 10; ++step) job.train(twin_batches(step, cores));
        restarted = job.rows();
      }
      Job twin(static_twin(optimizer, "mean"), cores);
      for (uint64_t step = 0; step < 10; ++step) twin.train(twin_batches(step, cores));
      expect_near(rows, twin_rows(twin, keys), {.absolute = 1e-5, .relative = 1e-5});
      // The engine's count of steps, which Adam reads, is not in the state of the table.
      if (optimizer->class_name != "Adam") {
        EXPECT_EQ(restarted, rows);
      }
    }
  }
}

// Trains a static table, alone or beside a dynamic one. Returns its activations and its rows.
std::vector<float> bits_of_static_table(const EmbeddingOptimizer& optimizer, int hosts, int cores,
                                        bool beside) {
  distribute::TPUStrategy strategy({.num_hosts = hosts, .num_cores = cores});
  const auto scope = strategy.scope();
  const Table fixed = static_twin(optimizer, "mean");
  Nest<FeatureConfig>::Dict features = {{"fixed", FeatureConfig{.table = fixed}}};
  if (beside) {
    features.emplace(
        "dynamic",
        FeatureConfig{.table = make_table({.dim = 3,
                                           .optimizer = optimizer,
                                           .name = "dynamic",
                                           .dynamic = DynamicVocabulary{
                                               .capacity = 20, .eviction = Eviction::lru()}})});
  }
  const TPUEmbedding layer({.feature_config = features});
  std::vector<std::vector<float>> found(hosts * cores);
  for (uint64_t step = 0; step < 10; ++step) {
    const std::vector<TensorLike> batches = twin_batches(step, hosts * cores);
    strategy.run([&] {
      const int replica = current_replica_context()->replica;
      Nest<TensorLike>::Dict ids = {{"fixed", batches[replica]}};
      if (beside) ids.emplace("dynamic", batches[replica]);
      GradientTape tape;
      const Tensors all = layer(Tensors(ids));
      Tensor loss;
      for (const auto& [name, leaf] : all.entries()) {
        const Tensor part = ops::sum(ops::square(leaf.tensor()) + leaf.tensor());
        loss = loss ? loss + part : part;
      }
      const std::vector<float> values = all["fixed"].tensor().to_vector<float>();
      found[replica].insert(found[replica].end(), values.begin(), values.end());
      tape.gradient(loss, layer->trainable_variables());
    });
  }
  std::vector<float> out;
  for (const auto& [table, rows] : layer->embedding_tables()) {
    if (table == fixed) out = rows.to_vector<float>();
  }
  for (const std::vector<float>& values : found)
    out.insert(out.end(), values.begin(), values.end());
  return out;
}

TEST(DynamicTableTest, D007StaticTablesKeepTheirBitsBesideADynamicOne) {
  const EmbeddingOptimizer all[] = {
      tpu::SGD{.learning_rate = 0.1},
      tpu::Adagrad{.learning_rate = 0.1},
      tpu::Adam{.learning_rate = 0.1},
      tpu::Adam{.learning_rate = 0.1, .lazy_adam = false},
      tpu::FTRL{.learning_rate = 0.1},
      tpu::AdagradMomentum{.learning_rate = 0.1},
      tpu::SGD{.learning_rate = 0.1, .clipnorm = 1},
      tpu::Adagrad{.learning_rate = 0.1, .use_gradient_accumulation = false}};
  for (const EmbeddingOptimizer& optimizer : all) {
    for (const auto& [hosts, cores] : {std::pair(1, 1), {1, 3}, {2, 2}}) {
      SCOPED_TRACE(str(optimizer->class_name, ' ', hosts, ' ', cores));
      const std::vector<float> alone = bits_of_static_table(optimizer, hosts, cores, false);
      EXPECT_GT(alone.size(), 100);
      EXPECT_EQ(bits_of_static_table(optimizer, hosts, cores, true), alone);
    }
  }
}

std::vector<OptimizerHandle> keras_optimizers(LazyRows lazy = LazyRows::kOff) {
  return {optimizers::SGD({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9, .lazy_rows = lazy}),
          optimizers::Adagrad({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::Adam({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::RMSprop({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::Adam({.learning_rate = 0.1, .clipnorm = 0.5, .lazy_rows = lazy})};
}

TEST(DynamicTableTest, D041StaticTwinAsAVariable) {
  const auto dynamic_optimizers = keras_optimizers(), static_optimizers = keras_optimizers();
  for (size_t i = 0; i < dynamic_optimizers.size(); ++i) {
    for (const char* const combiner : {"sum", "mean"}) {
      SCOPED_TRACE(str(dynamic_optimizers[i]->class_name(), ' ', i, ' ', combiner));
      Job dynamic(table_with({}, {}, combiner), Job::kVariable);
      Job twin(static_twin({}, combiner), Job::kVariable);
      const auto fresh = keras_optimizers(), others = keras_optimizers();
      dynamic.use(fresh[i]);
      twin.use(others[i]);
      for (uint64_t step = 0; step < 20; ++step) {
        ASSERT_EQ(dynamic.train(twin_batches(step, 1)), twin.train(twin_batches(step, 1)));
      }
      ASSERT_EQ(dynamic.rows(), twin_rows(twin, dynamic.keys()));
    }
  }
}

TEST(DynamicTableTest, D044ReplayedLazyRowsGiveTheBitsOfDenseUpdates) {
  const DynamicVocabulary dynamic = {.capacity = 20, .eviction = Eviction::lru({.ttl = 4})};
  for (size_t i = 0; i < keras_optimizers().size(); ++i) {
    Job dense(table_with(dynamic, {}), Job::kVariable),
        lazy(table_with(dynamic, {}), Job::kVariable);
    dense.use(keras_optimizers()[i]);
    lazy.use(keras_optimizers(LazyRows::kReplay)[i]);
    for (uint64_t step = 0; step < 15; ++step) {
      ASSERT_EQ(dense.train(twin_batches(step, 1)), lazy.train(twin_batches(step, 1))) << i;
    }
    ASSERT_EQ(dense.rows(), lazy.rows()) << i;
  }
}

TEST(DynamicTableTest, D045LazyRowsInClosedFormAreNearDenseUpdates) {
  const DynamicVocabulary dynamic = {.capacity = 20, .eviction = Eviction::lru({.ttl = 4})};
  constexpr double kTolerance = 1e-5;  // relative, of a row that misses some steps
  for (size_t i = 0; i < keras_optimizers().size(); ++i) {
    Job dense(table_with(dynamic, {}), Job::kVariable),
        lazy(table_with(dynamic, {}), Job::kVariable);
    dense.use(keras_optimizers()[i]);
    lazy.use(keras_optimizers(LazyRows::kClosedForm)[i]);
    for (uint64_t step = 0; step < 15; ++step) {
      dense.train(twin_batches(step, 1));
      lazy.train(twin_batches(step, 1));
    }
    ASSERT_EQ(dense.keys(), lazy.keys()) << i;
    const std::vector<float> expected = dense.rows(), found = lazy.rows();
    ASSERT_EQ(found.size(), expected.size()) << i;
    for (size_t k = 0; k < found.size(); ++k) {
      ASSERT_NEAR(found[k], expected[k], kTolerance * std::max(1.F, std::abs(expected[k]))) << i;
    }
  }
}

TEST(DynamicTableTest, D046RejectedOptimizerOptions) {
  const auto expect_refused = [](const OptimizerHandle& optimizer, const std::string& what) {
    Job job(table_with({}, {}), Job::kVariable);
    job.use(optimizer);
    EXPECT_THAT(message_of<ValueError>([&] { job.train(ragged(IdRows{{1}})); }),
                AllOf(HasSubstr(what), HasSubstr("items")));
    EXPECT_THAT(job.keys(), IsEmpty());
  };
  expect_refused(optimizers::SGD({.use_ema = true}), "use_ema");
  expect_refused(optimizers::SGD({.gradient_accumulation_steps = 2}),
                 "gradient_accumulation_steps");
  expect_refused(optimizers::Lamb({.learning_rate = 0.1}), "whole variables");
  Job job(table_with({}, {}), Job::kVariable);
  job.use(sgd());
  job.train(ragged(IdRows{{1}}));
  const Variable variable = job.layer()->trainable_variables()[0];
  EXPECT_THROW(sgd()->apply_gradients({Tensor::zeros(variable.shape())}, {variable}), TypeError);
  EXPECT_THROW(variable.assign(variable.read()), ValueError);
}

TEST(DynamicTableTest, TheValueOfAVariableIsItsRowsInAscendingOrderOfIds) {
  Job job(table_with({}, {}), Job::kVariable);
  job.use(sgd(0));
  job.train(ragged(IdRows{{9, -4}, {3}}));
  const Tensor value = job.layer()->trainable_variables()[0].read();
  EXPECT_EQ(value.shape(), (Shape{3, 2}));
  EXPECT_THAT(value.to_vector<float>(), ElementsAre(-4, -4, 3, 3, 9, 9));
}

TEST(DynamicTableTest, AVariableUpdatesOnceForALayerThatIsCalledTwice) {
  Job job(table_with({}, {}), Job::kVariable);
  const TPUEmbedding& layer = job.layer();
  GradientTape tape;
  const Tensor a = layer(Tensors(ragged(IdRows{{1, 2}}))).tensor();
  const Tensor b = layer(Tensors(ragged(IdRows{{2}}))).tensor();
  const Tensor unused = layer(Tensors(ragged(IdRows{{7}}))).tensor();
  const auto variables = layer->trainable_variables();
  const auto gradients = tape.gradient(ops::sum(a + b), variables);
  const OptimizerHandle optimizer = sgd();
  optimizer->apply_gradients(gradients, variables);
  EXPECT_THAT(job.keys(), ElementsAre(1, 2));
  EXPECT_THAT(job.rows(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(job.dynamic().info(2).count, 2);
  EXPECT_EQ(job.dynamic().statistics().updates, 1);
  EXPECT_THAT(message_of<RuntimeError>([&] { optimizer->apply_gradients(gradients, variables); }),
              HasSubstr("look up again"));
}

TEST(DynamicTableTest, D053TheNumberOfWorkersDoesNotMatter) {
  const int before = num_workers();
  std::vector<std::vector<float>> rows;
  for (const int workers : {1, 2, 7}) {
    set_num_workers(workers);
    Job job(table_with({.capacity = 30, .eviction = Eviction::lfu()}, "adagrad"), 2);
    for (uint64_t step = 0; step < 10; ++step) job.train(twin_batches(step, 2));
    rows.push_back(job.rows());
  }
  set_num_workers(before);
  EXPECT_EQ(rows[1], rows[0]);
  EXPECT_EQ(rows[2], rows[0]);
}

TEST(DynamicTableTest, D063OneStreamAsForAStaticTable) {
  const auto dense_weights = [](bool dynamic, int cores) {
    set_random_seed(3);
    TableConfig config = {.dim = 2, .optimizer = "sgd", .name = "items"};
    if (dynamic) {
      config.dynamic = DynamicVocabulary{.not_admitted = NotAdmitted::hashed(2)};
    } else {
      config.vocabulary_size = 10;
    }
    Job job(make_table(config), cores);
    job.evaluate(ragged(IdRows{{1}}));
    const layers::Dense dense({.units = 3});
    dense(Tensors(Tensor::zeros({1, 2})));
    return testing_support::weights_of(*dense);
  };
  for (const int cores : {Job::kVariable, 1}) {
    EXPECT_EQ(dense_weights(true, cores), dense_weights(false, cores));
  }
}

TEST(DynamicTableTest, EngineAndVariableStartWithEqualRows) {
  const auto rows = [](int cores) {
    set_random_seed(3);
    Job job(
        make_table({.dim = 2, .optimizer = "sgd", .name = "items", .dynamic = DynamicVocabulary{}}),
        cores);
    GradientTape tape;  // makes it a training lookup
    std::vector<float> out;
    job.strategy().run([&] {
      GradientTape inner;
      out = job.layer()(Tensors(ragged(IdRows{{5}, {-6}}))).tensor().to_vector<float>();
    });
    return out;
  };
  EXPECT_EQ(rows(Job::kVariable), rows(1));
}

TEST(DynamicTableTest, D018GradientsAreThoseOfFiniteDifferences) {
  for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
    const auto loss_of = [](const std::vector<float>& found) {
      double out = 0;
      for (const float x : found) out += double{x} * x;
      return out;
    };
    // Key 1 is known, key 2 is fresh; 3 and 4 read the fallback row.
    const DynamicVocabulary dynamic = {
        .capacity = 2,
        .not_admitted = NotAdmitted::default_row(initializers::constant(0.5)),
        .on_full = OnFull::kRefuse};
    const TensorLike batch = ragged(IdRows{{1, 2, 1}, {2}, {}});
    const TensorLike with_fallback = ragged(IdRows{{1, 3}, {4, 2, 3}});
    for (const TensorLike& tested : {batch, with_fallback}) {
      Job job(FeatureConfig{.table = table_with(dynamic, tpu::SGD{.learning_rate = 1}, combiner)});
      job.evaluate(tested);
      job.dynamic().assign_rows(ids({1}), testing_support::floats({0.25F, -0.5F}, {1, 2}));
      if (&tested != &batch) {
        job.dynamic().assign_rows(ids({2}), testing_support::floats({0.75F, 0.5F}, {1, 2}));
      }
      DynamicTableState before = job.dynamic().state();
      job.strategy().run([&] {
        GradientTape tape;
        const Tensor found = job.layer()(Tensors(tested)).tensor();
        tape.gradient(ops::sum(ops::square(found)), job.layer()->trainable_variables());
      });
      const DynamicTableState after = job.dynamic().state();
      // Starts from the table after the update with its rows before it.
      DynamicTableState base = after;
      std::vector<float> rows = {0.25F, -0.5F, 2, 2};
      if (&tested != &batch) rows = before.rows.to_vector<float>();
      base.rows = Tensor::from(rows, {2, 2});
      base.fallback = before.fallback;
      const auto numeric = [&](std::vector<float> values, size_t i, auto set) {
        double losses[2];
        for (const int side : {0, 1}) {
          std::vector<float> moved = values;
          moved[i] += side == 0 ? 0.01F : -0.01F;
          DynamicTableState state = base;
          set(state, moved);
          job.dynamic().restore(state);
          losses[side] = loss_of(job.evaluate(tested));
        }
        return (losses[0] - losses[1]) / 0.02;
      };
      const auto after_rows = after.rows.to_vector<float>();
      for (size_t i = 0; i < rows.size(); ++i) {
        const double gradient = numeric(rows, i, [](DynamicTableState& s, const auto& values) {
          s.rows = Tensor::from(values, {2, 2});
        });
        EXPECT_NEAR(rows[i] - after_rows[i], gradient, 1e-3) << combiner << ' ' << i;
      }
      const auto fallback = before.fallback.to_vector<float>();
      const auto after_fallback = after.fallback.to_vector<float>();
      for (size_t i = 0; i < fallback.size(); ++i) {
        const double gradient = numeric(fallback, i, [](DynamicTableState& s, const auto& values) {
          s.fallback = Tensor::from(values, {1, 2});
        });
        EXPECT_NEAR(fallback[i] - after_fallback[i], gradient, 1e-3) << combiner << ' ' << i;
      }
    }
  }
}

}  // namespace keel::dynamic_training_test

// Tests layers/embedding/tables/dynamic_table.cc, internal/dynamic_entries.cc, keyed_variable.cc
// and optimizers/step/keyed_updates.cc: tables with dynamic ids in an engine and as variables.
#include <keel/layers/embedding/tables/dynamic_table.h>

#include <algorithm>
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
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_table_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using layers::TPUEmbedding;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::strings;

Table table_with(const DynamicVocabulary& dynamic, const EmbeddingOptimizer& optimizer = "sgd",
                 const std::string& combiner = "sum") {
  return make_table({.dim = 2,
                     .initializer = tpu::RowIdInitializer(),
                     .optimizer = optimizer,
                     .combiner = combiner,
                     .name = "items",
                     .dynamic = dynamic});
}

// The gradient of the activations of the tests.
Tensor gradient_factors(const Shape& shape) {
  std::vector<float> out(shape.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>((i / 2 + 1) * (i % 2 + 1)) / 8;
  }
  return Tensor::from(out, shape);
}

// A layer with one feature, under a strategy of its own: a TPUStrategy with `cores`, or variables.
class Job {
 public:
  static constexpr int kVariable = 0;

  explicit Job(FeatureConfig feature, int cores = 1, TPUEmbeddingOptions options = {})
      : table_(feature.table),
        strategy_(cores == kVariable ? std::unique_ptr<Strategy>(std::make_unique<CPUStrategy>())
                                     : std::make_unique<TPUStrategy>(distribute::TPUStrategyOptions{
                                           .num_hosts = 1, .num_cores = cores})),
        scope_(strategy_->scope()) {
    options.feature_config = feature;
    layer_.emplace(options);
  }
  explicit Job(const Table& table, int cores = 1) : Job(FeatureConfig{.table = table}, cores) {}

  // Trains on one batch for each replica. The gradient of activation [s, j] is (s + 1) (j + 1) / 8.
  // Returns the activations.
  std::vector<std::vector<float>> train(const std::vector<TensorLike>& batches) {
    std::vector<std::vector<float>> out(batches.size());
    strategy_->run([&] {
      const int replica = replica_now();
      GradientTape tape;
      const Tensor found = (*layer_)(Tensors(batches[replica])).tensor();
      out[replica] = found.to_vector<float>();
      const auto variables = (*layer_)->trainable_variables();
      const auto gradients =
          tape.gradient(ops::sum(found * gradient_factors(found.shape())), variables);
      if (optimizer_) (*optimizer_)->apply_gradients(gradients, variables);
    });
    return out;
  }
  std::vector<float> train(const TensorLike& batch) {
    return train(std::vector<TensorLike>{batch})[0];
  }
  std::vector<float> evaluate(const TensorLike& batch) {
    std::vector<float> out;
    strategy_->run([&] {
      const Tensor found = (*layer_)(Tensors(batch)).tensor();
      if (replica_now() == 0) out = found.to_vector<float>();
    });
    return out;
  }

  void use(const OptimizerHandle& optimizer) { optimizer_ = optimizer; }
  DynamicTable dynamic() const { return (*layer_)->dynamic_table(table_); }
  Strategy& strategy() { return *strategy_; }
  const TPUEmbedding& layer() const { return *layer_; }
  std::vector<int64_t> keys() const { return dynamic().keys().to_vector<int64_t>(); }
  std::vector<float> rows() const { return dynamic().state().rows.to_vector<float>(); }

 private:
  static int replica_now() {
    const ReplicaContext* const context = current_replica_context();
    return context == nullptr ? 0 : context->replica;
  }
  const Table table_;
  const std::unique_ptr<Strategy> strategy_;
  const Strategy::Scope scope_;
  std::optional<TPUEmbedding> layer_;
  std::optional<OptimizerHandle> optimizer_;
};

OptimizerHandle sgd(double rate = 1) { return optimizers::SGD({.learning_rate = rate}); }

// Runs fn(job, cores) for variables and for an engine of one core.
template <class Fn>
void on_both(const FeatureConfig& feature, const Fn& fn) {
  for (const int cores : {Job::kVariable, 1}) {
    SCOPED_TRACE(cores == Job::kVariable ? "variable" : "engine");
    Job job(feature, cores);
    if (cores == Job::kVariable) job.use(sgd(0.01));
    fn(job);
  }
}

TEST(DynamicTableTest, D002VocabularySizeAndDynamicExcludeEachOther) {
  EXPECT_THAT(message_of<ValueError>([] {
                make_table({.vocabulary_size = 3, .dim = 2, .dynamic = DynamicVocabulary{}});
              }),
              HasSubstr("exclude each other"));
  EXPECT_THROW(make_table({.dim = 2}), ValueError);
}

TEST(DynamicTableTest, D003TheConfigOfALayerHoldsTheOptions) {
  const DynamicVocabulary dynamic = {.capacity = 3,
                                     .headroom = 0,
                                     .admission = Admission::count(2, {.window = 5}),
                                     .eviction = Eviction::lfu({.ttl = 9}),
                                     .not_admitted = NotAdmitted::hashed(2, "ones")};
  Job job(table_with(dynamic, "adagrad"));
  const Config config = job.layer()->get_config();
  const auto copy = TPUEmbeddingLayer::from_config(config);
  EXPECT_EQ(to_json(copy->get_config()), to_json(config));
  const Table table = flatten(copy->feature_config())[0].table;
  ASSERT_TRUE(table->dynamic);
  EXPECT_EQ(to_json(encode(*table->dynamic)), to_json(encode(dynamic)));
  Job other(table_with(*table->dynamic, table->optimizer));
  for (int step = 0; step < 3; ++step) {
    const TensorLike batch = ragged(IdRows{{1, 2, 2}, {3 + step, 1}});
    EXPECT_EQ(job.train(batch), other.train(batch));
  }
  EXPECT_EQ(job.rows(), other.rows());
}

TEST(DynamicTableTest, D004OtherKindsOfTablesAreNotSupported) {
  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  const auto scope = strategy.scope();
  const FeatureConfig feature = {.table = table_with({})};
  EXPECT_THAT(
      message_of<NotImplementedError>([&] { tpu::TPUEmbeddingV0 embedding(feature, "sgd"); }),
      HasSubstr("'items'"));
  EXPECT_THAT(message_of<NotImplementedError>([&] {
                TPUEmbedding({.feature_config = feature,
                              .embedding_feature = EmbeddingFeature::kUnsupported});
              }),
              HasSubstr("'items'"));
}

TEST(DynamicTableTest, D005DtypesOfFeatures) {
  const Nest<FeatureConfig>::Dict of_ints = {{"watched", FeatureConfig{.table = table_with({})}}};
  const Table words = make_table({.dim = 2,
                                  .optimizer = "sgd",
                                  .name = "words",
                                  .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  const Nest<FeatureConfig>::Dict of_strings = {{"watched", FeatureConfig{.table = words}}};
  const auto look_up = [](const Nest<FeatureConfig>::Dict& features, const Tensor& values) {
    const TPUEmbedding layer({.feature_config = Nest<FeatureConfig>(features)});
    Tensors::Dict batch = {{"watched", values}};
    layer(Tensors(batch));
  };
  for (const bool engine : {false, true}) {
    std::unique_ptr<Strategy> strategy = std::make_unique<CPUStrategy>();
    if (engine) {
      strategy = std::make_unique<TPUStrategy>(
          distribute::TPUStrategyOptions{.num_hosts = 1, .num_cores = 1});
    }
    const auto scope = strategy->scope();
    const auto message = [&](const Nest<FeatureConfig>::Dict& features, const Tensor& values) {
      return message_of<TypeError>([&] { strategy->run([&] { look_up(features, values); }); });
    };
    EXPECT_THAT(message(of_ints, testing_support::floats({1})), HasSubstr("'watched'"));
    EXPECT_THAT(message(of_ints, strings({"a"})), HasSubstr("'watched'"));
    if (!engine) {
      EXPECT_THAT(message(of_strings, ids({1})), HasSubstr("'watched'"));
      look_up(of_ints, ids({1}).cast(DType::kInt32));
    }
  }
}

TEST(DynamicTableTest, D006IdPolicyOfNegativeIds) {
  const IdRows batch = {{-1, 5}, {5}};
  on_both({.table = table_with({})}, [&](Job& job) {
    EXPECT_THAT(job.train(ragged(batch)), ElementsAre(4, 4, 5, 5));
    EXPECT_THAT(job.keys(), ElementsAre(-1, 5));
  });
  on_both({.table = table_with({}), .id_policy = IdPolicy::ignore()}, [&](Job& job) {
    EXPECT_THAT(job.train(ragged(batch)), ElementsAre(5, 5, 5, 5));
    EXPECT_THAT(job.keys(), ElementsAre(5));
    EXPECT_EQ(job.layer()->id_counts()[0].second.dropped, 1);
    // Sparse ids of a table with a vocabulary are pruned on the host; these are not.
    EXPECT_THAT(job.evaluate(sparse(batch, 2)),
                ElementsAre(job.rows()[0], job.rows()[1], job.rows()[0], job.rows()[1]));
  });
  on_both({.table = table_with({}), .id_policy = IdPolicy::error()}, [&](Job& job) {
    EXPECT_THAT(message_of<ValueError>([&] { job.train(ragged(batch)); }), HasSubstr("-1"));
  });
  EXPECT_THROW(Job({.table = table_with({}), .id_policy = IdPolicy::use_row(0)}), ValueError);
}

TEST(DynamicTableTest, D006IdPolicyOfEmptyStrings) {
  const auto words = [] {
    return make_table({.dim = 1,
                       .initializer = "ones",
                       .optimizer = "sgd",
                       .combiner = "sum",
                       .name = "words",
                       .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  };
  const TensorLike batch = RaggedTensor::from_rows<std::string>({{"", "a"}, {"a"}});
  on_both({.table = words()}, [&](Job& job) {
    EXPECT_THAT(job.train(batch), ElementsAre(2, 1));
    EXPECT_THAT(job.dynamic().keys().to_vector<std::string>(), ElementsAre("", "a"));
  });
  on_both({.table = words(), .id_policy = IdPolicy::ignore()}, [&](Job& job) {
    EXPECT_THAT(job.train(batch), ElementsAre(1, 1));
    EXPECT_THAT(job.dynamic().keys().to_vector<std::string>(), ElementsAre("a"));
  });
  on_both({.table = words(), .id_policy = IdPolicy::error()},
          [&](Job& job) { EXPECT_THROW(job.train(batch), ValueError); });
}

TEST(DynamicTableTest, D016InputLayoutsGiveEqualBits) {
  const std::vector<TensorLike> layouts = {
      ids({4, -7, 4}, {3, 1}), sparse(IdRows{{4}, {-7}, {4}}, 1), ragged(IdRows{{4}, {-7}, {4}})};
  std::vector<std::vector<float>> activations, rows;
  for (const TensorLike& batch : layouts) {
    Job job(table_with({}, "adagrad"));
    job.train(batch);
    activations.push_back(job.train(batch));
    rows.push_back(job.rows());
  }
  for (size_t i = 1; i < layouts.size(); ++i) {
    EXPECT_EQ(activations[i], activations[0]);
    EXPECT_EQ(rows[i], rows[0]);
  }
}

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

// The static table whose row i starts as the initial row of key i.
Table static_twin(const EmbeddingOptimizer& optimizer, const std::string& combiner) {
  return make_table({.vocabulary_size = 50,
                     .dim = 2,
                     .initializer = tpu::RowIdInitializer(),
                     .optimizer = optimizer,
                     .combiner = combiner,
                     .name = "items"});
}

std::vector<TensorLike> twin_batches(uint64_t seed, int replicas) {
  std::mt19937_64 random(seed);
  std::vector<TensorLike> out;
  for (int r = 0; r < replicas; ++r) {
    IdRows rows(6);
    for (auto& row : rows) {
      for (uint64_t n = random() % 4; n > 0; --n) {
        row.push_back(static_cast<int64_t>(random() % 50));
      }
    }
    out.push_back(ragged(rows));
  }
  return out;
}

// Returns the rows of the static table that the dynamic one has.
std::vector<float> twin_rows(const Job& job, const std::vector<int64_t>& keys) {
  const std::vector<float> all = job.layer()->embedding_tables()[0].second.to_vector<float>();
  std::vector<float> out;
  for (const int64_t key : keys) {
    out.insert(out.end(), all.begin() + key * 2, all.begin() + key * 2 + 2);
  }
  return out;
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

TEST(DynamicTableTest, D079NoticesNameSizeAndShares) {
  on_both({.table = table_with(
               {.capacity = 2, .admission = Admission::count(2), .on_full = OnFull::kRefuse})},
          [](Job& job) {
            for (int step = 0; step < 2; ++step) job.train(ragged(IdRows{{1, 2, 3}, {4}}));
            EXPECT_THAT(job.layer()->training_notices(),
                        ElementsAre(AllOf(HasSubstr("'items' has 2 rows"),
                                          HasSubstr("50 % of the ids were not admitted"),
                                          HasSubstr("0 ids were evicted, 2 were refused"))));
          });
}

TEST(DynamicTableTest, D085CallsInsideAReplicaAreRuntimeErrors) {
  Job job(table_with({}));
  job.train(ragged(IdRows{{1}}));
  const DynamicTable table = job.dynamic();
  const auto expect_refused = [&](const auto& call) {
    EXPECT_THAT(message_of<RuntimeError>([&] { job.strategy().run(call); }),
                HasSubstr("inside a replica"));
  };
  expect_refused([&] { table.prune({.max_rows = 0}); });
  expect_refused([&] { table.keys(); });
  expect_refused([&] { table.assign_rows(ids({1}), Tensor::zeros({1, 2})); });
  EXPECT_THAT(job.keys(), ElementsAre(1));
}

TEST(DynamicTableTest, D086HandlesOfOtherTablesAreValueErrors) {
  Job job(table_with({}));
  job.train(ragged(IdRows{{1}}));
  EXPECT_THAT(message_of<ValueError>([&] { job.layer()->dynamic_table(table_with({})); }),
              HasSubstr("not a table of layer"));
  const Table fixed = static_twin("sgd", "sum");
  Job other(fixed, Job::kVariable);
  other.evaluate(ragged(IdRows{{1}}));
  EXPECT_THAT(message_of<ValueError>([&] { other.layer()->dynamic_table(fixed); }),
              HasSubstr("vocabulary"));
  EXPECT_THROW(job.layer()->dynamic_table(nullptr), ValueError);
}

TEST(DynamicTableTest, UpdateEmbeddingTableNamesAssignRows) {
  const Table table = table_with({});
  on_both({.table = table}, [&](Job& job) {
    job.train(ragged(IdRows{{1}}));
    EXPECT_THAT(message_of<ValueError>(
                    [&] { job.layer()->update_embedding_table(table, Tensor::zeros({1, 2})); }),
                HasSubstr("assign_rows"));
  });
}

TEST(DynamicTableTest, CallsReadAndChangeRows) {
  on_both({.table = table_with({.capacity = 4}, "adagrad")}, [&](Job& job) {
    job.train(ragged(IdRows{{7, 3, 3}}));
    const DynamicTable table = job.dynamic();
    EXPECT_EQ(table.size(), 2);
    EXPECT_EQ(table.load(), 0.5);
    EXPECT_THAT(table.contains(ids({3, 4})), ElementsAre(1, 0));
    EXPECT_EQ(table.info(3).count, 2);
    EXPECT_FALSE(table.info(4).admitted);
    EXPECT_GT(table.memory().rows, 0);
    table.assign_rows(ids({4, 3}), testing_support::floats({1, 2, 3, 4}, {2, 2}));
    EXPECT_THAT(table.rows(ids({3, 4})).to_vector<float>(), ElementsAre(3, 4, 1, 2));
    EXPECT_THAT(job.evaluate(ragged(IdRows{{3, 4}})), ElementsAre(4, 6));
    EXPECT_THAT(message_of<ValueError>([&] { table.rows(ids({3, 8})); }), HasSubstr("id 8"));
    EXPECT_THROW(table.slots("nothing", ids({3})), ValueError);
    EXPECT_THROW(table.assign_rows(ids({5, 5}), Tensor::zeros({2, 2})), ValueError);
    EXPECT_THROW(table.assign_rows(ids({5}), Tensor::zeros({1, 3})), ValueError);
    EXPECT_THROW(table.assign_rows(ids({5, 6}), Tensor::zeros({2, 2})), ValueError);
    EXPECT_EQ(table.prune({.max_rows = 1}), 2);
  });
}

TEST(DynamicTableTest, D078TheMidLevelObjectEqualsTheLayer) {
  const DynamicVocabulary dynamic = {.capacity = 9, .headroom = 0, .eviction = Eviction::lru()};
  Job layer(table_with(dynamic, tpu::Adagrad{.learning_rate = 0.1}));
  std::vector<std::vector<float>> activations;
  for (uint64_t step = 0; step < 6; ++step) {
    activations.push_back(layer.train(twin_batches(step, 1)[0]));
  }
  const std::vector<float> rows = layer.rows();

  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  const auto scope = strategy.scope();
  const Table table = table_with(dynamic, tpu::Adagrad{.learning_rate = 0.1});
  tpu::TPUEmbedding embedding(FeatureConfig{.table = table}, {});
  for (uint64_t step = 0; step < 6; ++step) {
    const Tensors batch(twin_batches(step, 1)[0]);
    // Inference has no side effects.
    embedding.enqueue(distribute::PerReplica<Tensors>({batch}), {.training = false, .name = "i"});
    strategy.run([&] { embedding.dequeue("i"); });
    embedding.enqueue(distribute::PerReplica<Tensors>({batch}));
    strategy.run([&] {
      const Tensor found = embedding.dequeue().tensor();
      EXPECT_EQ(found.to_vector<float>(), activations[step]);
      embedding.apply_gradients(Gradient(gradient_factors(found.shape())));
    });
  }
  const DynamicTableState state = embedding.dynamic_table(table).state();
  EXPECT_EQ(state.rows.to_vector<float>(), rows);
  EXPECT_EQ(state.statistics.updates, 6);
  EXPECT_GT(state.statistics.inference_looked_up, 0);
  EXPECT_THROW(embedding.dynamic_table(table_with({})), ValueError);
}

TEST(DynamicTableTest, D087PartialAndServingObjects) {
  TPUStrategy strategy({.num_hosts = 1, .num_cores = 1});
  const auto scope = strategy.scope();
  const layers::PartialTPUEmbedding partial(
      {.feature_config = {{"f", FeatureConfig{.table = table_with({})}}},
       .optimizer = optimizers::SGD({.learning_rate = 0.1}),
       .size_threshold = 1000});
  strategy.run([&] { partial(Tensors({{"f", ids({3, 4})}})); });
  const auto engine = distribute::active_engine(strategy);
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->tables()[0].dynamic.has_value());
}

TEST(DynamicTableTest, D087TPUEmbeddingForServingTrainsAVariable) {
  const Table table = table_with({}, {});
  tpu::TPUEmbeddingForServing embedding(FeatureConfig{.table = table});
  embedding.build();
  GradientTape tape;
  const Tensor found = embedding(Tensors(ragged(IdRows{{3, 4}, {4}}))).tensor();
  EXPECT_THAT(found.to_vector<float>(), ElementsAre(7, 7, 4, 4));
  const std::vector<Variable> variables = {embedding.embedding_tables()[0].second};
  sgd()->apply_gradients(tape.gradient(ops::sum(found), variables), variables);
  const DynamicTableState state = embedding.dynamic_table(table).state();
  EXPECT_THAT(state.rows.to_vector<float>(), ElementsAre(2, 2, 2, 2));
}

// The loss is the sum of the squares of the activations, so its gradient is twice the activation.
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

TEST(DynamicTableTest, D090EntriesHoldTheWholeTable) {
  const FeatureConfig feature = {
      .table = table_with(
          {.admission = Admission::count(2), .not_admitted = NotAdmitted::default_row("ones")})};
  on_both(feature, [&](Job& job) {
    for (uint64_t step = 0; step < 4; ++step) job.train(twin_batches(step, 1));
    std::map<std::string, Tensor> saved;
    for (const StateEntry& entry : job.layer()->state_entries()) {
      saved[entry.name] = entry.get();
      EXPECT_EQ(saved[entry.name].spec(), entry.spec) << entry.name;
    }
    const DynamicTableState before = job.dynamic().state();
    for (uint64_t step = 4; step < 8; ++step) job.train(twin_batches(step, 1));
    for (const StateEntry& entry : job.layer()->state_entries()) entry.set(saved.at(entry.name));
    const DynamicTableState after = job.dynamic().state();
    EXPECT_EQ(after.keys.to_vector<int64_t>(), before.keys.to_vector<int64_t>());
    EXPECT_EQ(after.rows.to_vector<float>(), before.rows.to_vector<float>());
    EXPECT_EQ(after.fallback.to_vector<float>(), before.fallback.to_vector<float>());
    EXPECT_EQ(after.statistics, before.statistics);
    // Rows are in ascending order of key shards, whose first rows are saved.
    const auto shards = saved.at("items/shards").to_vector<int64_t>();
    ASSERT_EQ(shards.size(), 1025U);
    EXPECT_EQ(shards.back(), before.keys.size());
    EXPECT_TRUE(std::ranges::is_sorted(shards));
  });
}

}  // namespace keel::dynamic_table_test

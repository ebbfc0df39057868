// Tests optimizers/step/keyed_updates.cc and layers/embedding/tables/internal/keyed_variable.cc:
// tables with dynamic ids that are variables and have several replicas.
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/layers/embedding/tables/dynamic_job.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_replicas_test {

using distribute::TPUStrategy;
using dynamic_job::gradient_factors;
using dynamic_job::twin_batches;
using layers::EmbedReduce;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::message_of;
using testing_support::ragged;

constexpr int64_t kVocabulary = 50;  // of twin_batches()

// An EmbedReduce, a variable, in the replicas of a TPUStrategy.
class Replicas {
 public:
  // Without `dynamic`, the table has a vocabulary. Its rows start like those of dynamic ids.
  Replicas(int count, const std::optional<DynamicVocabulary>& dynamic,
           const std::string& combiner = "sum", const OptimizerHandle& optimizer = sgd())
      : strategy_({.num_cores = count}),
        scope_(strategy_.scope()),
        layer_({.input_dim = dynamic ? 0 : kVocabulary,
                .output_dim = 2,
                .embeddings_initializer = tpu::RowIdInitializer(),
                .combiner = combiner,
                .dynamic = dynamic,
                .name = "items"}),
        optimizer_(optimizer) {}

  static OptimizerHandle sgd() { return optimizers::SGD({.learning_rate = 0.125}); }

  // Trains on one batch for each replica; replicas without a batch have no gradient. Returns the
  // activations. Replica r sleeps for delays[r] milliseconds before its lookup.
  std::vector<std::vector<float>> train_some(const std::vector<std::optional<TensorLike>>& batches,
                                             const std::vector<int>& delays = {}) {
    std::vector<std::vector<float>> out(batches.size());
    strategy_.run([&] {
      const int replica = current_replica_context()->replica;
      if (!delays.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(delays[replica]));
      GradientTape tape;
      Tensor loss = Tensor::scalar(0.0F);
      if (batches[replica]) {
        const Tensor found = layer_(Tensors(*batches[replica])).tensor();
        out[replica] = found.to_vector<float>();
        loss = ops::sum(found * gradient_factors(found.shape()));
      }
      const auto variables = layer_->trainable_variables();
      optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
    });
    return out;
  }
  std::vector<std::vector<float>> train(const std::vector<TensorLike>& batches) {
    return train_some(std::vector<std::optional<TensorLike>>(batches.begin(), batches.end()));
  }
  void build() {
    strategy_.run([&] { layer_(Tensors(ragged(IdRows{{1}}))); });
  }

  DynamicTable dynamic() const { return layer_->dynamic_table(); }
  std::vector<int64_t> keys() const { return dynamic().keys().to_vector<int64_t>(); }
  std::vector<float> rows() const { return dynamic().state().rows.to_vector<float>(); }
  // Returns the rows of a table with a vocabulary that have these numbers.
  std::vector<float> rows(const std::vector<int64_t>& ids) const {
    const std::vector<float> all = layer_->embeddings().read().to_vector<float>();
    std::vector<float> out;
    for (const int64_t id : ids) out.insert(out.end(), &all[id * 2], &all[id * 2] + 2);
    return out;
  }

 private:
  TPUStrategy strategy_;
  const distribute::Strategy::Scope scope_;
  const EmbedReduce layer_;
  const OptimizerHandle optimizer_;
};

std::vector<OptimizerHandle> all_optimizers(LazyRows lazy = LazyRows::kOff) {
  return {optimizers::SGD({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9, .lazy_rows = lazy}),
          optimizers::Adagrad({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::Adam({.learning_rate = 0.1, .lazy_rows = lazy}),
          optimizers::RMSprop({.learning_rate = 0.1, .lazy_rows = lazy})};
}

TEST(DynamicReplicasTest, D017VariablesCountTheOccurrencesOfAllReplicas) {
  const DynamicVocabulary dynamic = {
      .capacity = 4, .headroom = 0, .admission = Admission::count(2), .eviction = Eviction::lfu()};
  const auto run = [&](int replicas) {
    Replicas job(replicas, dynamic);
    std::mt19937 random(5);
    for (int step = 0; step < 12; ++step) {
      IdRows samples(4);
      for (auto& sample : samples) {
        for (int i = 0; i < 3; ++i) sample.push_back(static_cast<int64_t>(random() % 9));
      }
      std::vector<TensorLike> batches;
      for (int r = 0; r < replicas; ++r) {
        batches.push_back(ragged(
            IdRows(samples.begin() + r * 4 / replicas, samples.begin() + (r + 1) * 4 / replicas)));
      }
      job.train(batches);
    }
    return job.dynamic().state();
  };
  const DynamicTableState one = run(1);
  EXPECT_GT(one.statistics.evicted_capacity, 0);
  for (const int replicas : {2, 4}) {
    const DynamicTableState other = run(replicas);
    EXPECT_EQ(other.keys.to_vector<int64_t>(), one.keys.to_vector<int64_t>());
    EXPECT_EQ(other.count.to_vector<int64_t>(), one.count.to_vector<int64_t>());
    EXPECT_EQ(other.last.to_vector<int64_t>(), one.last.to_vector<int64_t>());
    EXPECT_EQ(other.born.to_vector<int64_t>(), one.born.to_vector<int64_t>());
    EXPECT_EQ(other.pending_keys.to_vector<int64_t>(), one.pending_keys.to_vector<int64_t>());
    EXPECT_EQ(other.pending_count.to_vector<int64_t>(), one.pending_count.to_vector<int64_t>());
    EXPECT_EQ(other.statistics, one.statistics);
  }
}

TEST(DynamicReplicasTest, D041StaticTwinAsAVariableInSeveralReplicas) {
  for (size_t i = 0; i < all_optimizers().size(); ++i) {
    for (const char* const combiner : {"sum", "mean"}) {
      for (const int replicas : {2, 3, 5}) {
        SCOPED_TRACE(str(all_optimizers()[i]->class_name(), ' ', i, ' ', combiner, ' ', replicas));
        std::vector<std::vector<std::vector<float>>> activations;
        std::vector<int64_t> keys;
        std::vector<float> rows;
        {
          Replicas dynamic(replicas, DynamicVocabulary{}, combiner, all_optimizers()[i]);
          for (uint64_t step = 0; step < 12; ++step) {
            activations.push_back(dynamic.train(twin_batches(step, replicas)));
          }
          keys = dynamic.keys();
          rows = dynamic.rows();
        }
        Replicas twin(replicas, {}, combiner, all_optimizers()[i]);
        for (uint64_t step = 0; step < 12; ++step) {
          ASSERT_EQ(twin.train(twin_batches(step, replicas)), activations[step]);
        }
        ASSERT_EQ(rows, twin.rows(keys));
      }
    }
  }
}

TEST(DynamicReplicasTest, ClippingByNormIsThatOfTheStaticTwin) {
  const auto optimizer = [] {
    return optimizers::SGD({.learning_rate = 0.1, .global_clipnorm = 0.5});
  };
  std::vector<int64_t> keys;
  std::vector<float> rows;
  {
    Replicas dynamic(3, DynamicVocabulary{}, "sum", optimizer());
    for (uint64_t step = 0; step < 8; ++step) dynamic.train(twin_batches(step, 3));
    keys = dynamic.keys();
    rows = dynamic.rows();
  }
  Replicas twin(3, {}, "sum", optimizer());
  for (uint64_t step = 0; step < 8; ++step) twin.train(twin_batches(step, 3));
  const std::vector<float> expected = twin.rows(keys);
  ASSERT_EQ(rows.size(), expected.size());
  // The squares of rows are added in another order.
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], expected[i], 1e-5 * kVocabulary);
}

TEST(DynamicReplicasTest, D044ReplayedLazyRowsGiveTheBitsOfDenseUpdates) {
  const DynamicVocabulary dynamic = {.capacity = 20, .eviction = Eviction::lru({.ttl = 4})};
  for (size_t i = 0; i < all_optimizers().size(); ++i) {
    const auto run = [&](LazyRows lazy) {
      Replicas job(2, dynamic, "sum", all_optimizers(lazy)[i]);
      for (uint64_t step = 0; step < 15; ++step) job.train(twin_batches(step, 2));
      return job.rows();
    };
    EXPECT_EQ(run(LazyRows::kOff), run(LazyRows::kReplay)) << i;
  }
}

TEST(DynamicReplicasTest, D039AFullTableThrowsAndChangesNothing) {
  Replicas job(4, DynamicVocabulary{.capacity = 5});
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

TEST(DynamicReplicasTest, D052DelaysOfReplicasChangeNoBit) {
  const DynamicVocabulary dynamic = {.capacity = 15,
                                     .eviction = Eviction::lru(),
                                     .not_admitted = NotAdmitted::default_row("ones")};
  const auto run = [&](bool delayed) {
    Replicas job(3, dynamic, "mean", optimizers::Adagrad({.learning_rate = 0.1}));
    std::mt19937 random(1);
    for (uint64_t step = 0; step < 6; ++step) {
      const auto batches = twin_batches(step, 3);
      std::vector<int> delays(3);
      for (int& delay : delays) delay = delayed ? static_cast<int>(random() % 4) : 0;
      job.train_some({batches.begin(), batches.end()}, delays);
    }
    return job.dynamic().state();
  };
  const DynamicTableState a = run(false), b = run(true);
  EXPECT_EQ(a.keys.to_vector<int64_t>(), b.keys.to_vector<int64_t>());
  EXPECT_EQ(a.rows.to_vector<float>(), b.rows.to_vector<float>());
  EXPECT_EQ(a.statistics, b.statistics);
}

TEST(DynamicReplicasTest, AReplicaWithoutAGradientContributesNothing) {
  Replicas job(3, DynamicVocabulary{});
  job.build();
  job.train_some({std::nullopt, ragged(IdRows{{7, 8}}), std::nullopt});
  EXPECT_THAT(job.keys(), ElementsAre(7, 8));
  EXPECT_EQ(job.dynamic().statistics().updates, 1);
  // The gradient of activation j is (j + 1) / 8 and the rate 1 / 8.
  EXPECT_THAT(job.rows(), ElementsAre(7 - 1 / 64.0F, 7 - 2 / 64.0F, 8 - 1 / 64.0F, 8 - 2 / 64.0F));
}

TEST(DynamicReplicasTest, ACallbackThatThrowsFailsTheStepAfterTheTableHasChanged) {
  Replicas job(2, DynamicVocabulary{.capacity = 2, .headroom = 0, .eviction = Eviction::lru()});
  job.train({ragged(IdRows{{1}}), ragged(IdRows{{2}})});
  bool throws = true;
  std::vector<int64_t> evicted;
  job.dynamic().on_evict([&](const EvictedRows& rows) {
    evicted = rows.keys.to_vector<int64_t>();
    if (throws) throw ValueError("the callback fails");
  });
  EXPECT_THAT(
      message_of<ValueError>([&] { job.train({ragged(IdRows{{2, 3}}), ragged(IdRows{{3}})}); }),
      HasSubstr("the callback fails"));
  EXPECT_THAT(evicted, ElementsAre(1));
  EXPECT_THAT(job.keys(), ElementsAre(2, 3));
  throws = false;
  job.train({ragged(IdRows{{4}}), ragged(IdRows{{3}})});
  EXPECT_THAT(evicted, ElementsAre(2));
}

TEST(DynamicReplicasTest, FitTrainsTheTableOfAnEmbeddingWithDenseLayers) {
  const auto keys_after_fit = [](int replicas) {
    TPUStrategy strategy({.num_cores = replicas});
    const auto scope = strategy.scope();
    const Tensor item = layers::input({.shape = Shape{2}, .dtype = DType::kInt64, .name = "item"});
    const layers::Embedding items({.output_dim = 4, .dynamic = DynamicVocabulary{}});
    const Tensor embedded = ops::reshape(items(item), {-1, 8});
    const Functional model({.inputs = item, .outputs = layers::Dense({.units = 1})(embedded)});
    model->compile({.optimizer = "adam", .loss = "mse"});
    std::vector<int64_t> ids;
    std::vector<float> labels;
    for (int64_t i = 0; i < 24; ++i) {
      ids.insert(ids.end(), {i % 7, -i % 5});
      labels.push_back(static_cast<float>(i % 3));
    }
    model->fit(Tensor::from(ids, {24, 2}), Tensor::from(labels, {24, 1}),
               {.epochs = 2, .batch_size = 8, .verbose = Verbose::kSilent});
    const DynamicTableState state = items->dynamic_table().state();
    EXPECT_EQ(state.statistics.updates, 6);
    return std::pair(state.keys.to_vector<int64_t>(), state.count.to_vector<int64_t>());
  };
  EXPECT_EQ(keys_after_fit(2), keys_after_fit(1));
}

}  // namespace keel::dynamic_replicas_test

// Prefetching of lookups by a training loop.
// Tests layers/embedding/tables/internal/prefetch_queue.cc.
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/optimizers/adagrad.h>

#include "tests/support/embedding_fixture.h"

namespace keel::pipeline_lookups_test {

using distribute::TPUStrategy;
using layers::TPUEmbedding;

class PipelineLookupsTest : public testing::Test {
 protected:
  PipelineLookupsTest() { set_num_workers(3); }
  ~PipelineLookupsTest() override { set_num_workers(before_); }

  static TPUEmbedding layer(bool pipeline_lookups = false) {
    return TPUEmbedding({.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = 50,
                                                                              .dim = 2,
                                                                              .initializer = "ones",
                                                                              .combiner = "mean"})},
                         .optimizer = optimizers::Adagrad({.learning_rate = 0.1}),
                         .pipeline_lookups = pipeline_lookups});
  }

 private:
  const int before_ = num_workers();
};

// Sparse int32 ids, which depend on step and replica and are encoded into new tensors, and weights.
struct Step {
  Tensors ids;
  Nest<std::optional<TensorLike>> weights;
};
Step step_of(int number, int replica) {
  std::vector<int64_t> indices;
  std::vector<int32_t> ids;
  std::vector<float> weights;
  for (int i = 0; i < 12; ++i) {
    indices.insert(indices.end(), {i / 3, i % 3});
    ids.push_back((number * 7 + replica * 5 + i * i) % 50);
    weights.push_back(0.25F * static_cast<float>(1 + (i + number) % 5));
  }
  const Tensor at = Tensor::from(indices, {12, 2});
  return {
      .ids = Tensors(SparseTensor{at, Tensor::from(ids, {12}), {4, 3}}),
      .weights = std::optional<TensorLike>(SparseTensor{at, Tensor::from(weights, {12}), {4, 3}})};
}

std::vector<float> train(TPUStrategy& strategy, const TPUEmbedding& layer, bool prefetch) {
  constexpr int kSteps = 12;
  std::vector<std::vector<Step>> steps(kSteps + 1);
  for (int s = 0; s <= kSteps; ++s) {
    for (int r = 0; r < 2; ++r) steps[s].push_back(step_of(s, r));
  }
  layer->build(specs_of(steps[0][0].ids));
  for (int s = 0; s < kSteps; ++s) {
    strategy.run([&] {
      const int r = current_replica_context()->replica;
      const Step& next = steps[s + 1][r];
      if (prefetch) layer->prefetch(next.ids, next.weights);
      GradientTape tape;
      const Tensors found = layer(steps[s][r].ids, {.weights = steps[s][r].weights});
      tape.gradient(fixture::squares_loss(found, 4), layer->trainable_variables());
    });
  }
  return layer->embedding_tables()[0].second.to_vector<float>();
}

TEST_F(PipelineLookupsTest, ACustomLoopTrainsTheSameBitsWithPrefetch) {
  std::vector<float> plain;
  {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    plain = train(strategy, layer(), false);
  }
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  profile::start();
  EXPECT_EQ(train(strategy, layer(), true), plain);
  int64_t grouped_in_steps = 0;
  for (const profile::Row& row : profile::stop().rows) {
    if (row.name == "finish prefetch") grouped_in_steps = row.calls;
  }
  EXPECT_EQ(grouped_in_steps, 2 * 11) << "prefetched batches that lookups used";
}

TEST_F(PipelineLookupsTest, InvalidBatchesAreErrorsOfTheirLookup) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const TPUEmbedding embedding = layer();
  strategy.run([&] {
    const Tensors first = fixture::ids({1}, {1}), bad = fixture::ids({50}, {1});
    embedding->prefetch(first);  // not built: does nothing
    embedding(first);
    embedding->prefetch(bad);
    embedding->prefetch(Tensors::dict({{"other", first}}));
    embedding(first);
    GradientTape tape;
    EXPECT_THROW(embedding(bad), ValueError);
  });
  EXPECT_THROW(embedding->prefetch(fixture::ids({1}, {1})), RuntimeError) << "not in a replica";
}

TEST_F(PipelineLookupsTest, PrefetchIgnoresTablesThatAreVariables) {
  const TPUEmbedding embedding = layer(true);
  const Tensors ids = fixture::ids({1}, {1});
  embedding(ids);
  EXPECT_FALSE(embedding->supports_prefetch());
  embedding->prefetch(ids);

  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  EXPECT_THROW(
      TPUEmbedding(
          {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = 50, .dim = 2})},
           .pipeline_lookups = true,
           .embedding_feature = EmbeddingFeature::kUnsupported}),
      ValueError);
  const TPUEmbedding with_engine = layer(true);
  EXPECT_TRUE(with_engine->supports_prefetch());
  set_num_workers(1);
  EXPECT_FALSE(with_engine->supports_prefetch());
}

#if !defined(KEEL_ADDRESS_SANITIZER)  // it allocates every tensor separately

TEST_F(PipelineLookupsTest, ASteadyStepAllocatesNoTensorMemory) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding embedding = layer();
  std::vector<Step> steps;
  for (int i = 0; i < 8; ++i) steps.push_back(step_of(i, i));
  embedding->build(specs_of(steps[0].ids));
  size_t before = 0;
  for (size_t s = 0; s < 420; ++s) {
    if (s == 20) before = allocator_stats().system_calls;
    strategy.run([&] {
      const Step& now = steps[s % 8];
      const Step& next = steps[(s + 1) % 8];
      embedding->prefetch(next.ids, next.weights);
      GradientTape tape;
      const Tensors found = embedding(now.ids, {.weights = now.weights});
      tape.gradient(fixture::squares_loss(found, 4), embedding->trainable_variables());
    });
  }
  EXPECT_LE(allocator_stats().system_calls - before, 8U) << "in 400 steps";
}

#endif

TEST_F(PipelineLookupsTest, TheOptionRoundTripsThroughFiles) {
  const auto again = [](const TPUEmbedding& embedding) {
    return TPUEmbeddingLayer::from_config(embedding->get_config())->get_config();
  };
  EXPECT_TRUE(again(layer(true))["pipeline_lookups"].boolean());
  EXPECT_EQ(again(layer(false)).find("pipeline_lookups"), nullptr);
}

}  // namespace keel::pipeline_lookups_test

// A layer with tables for unbounded ids under a strategy of its own, and its static twin, for
// tests.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/tensors.h"

namespace keel::dynamic_job {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using layers::TPUEmbedding;
using testing_support::IdRows;
using testing_support::ragged;

inline Table table_with(const DynamicVocabulary& dynamic,
                        const EmbeddingOptimizer& optimizer = "sgd",
                        const std::string& combiner = "sum") {
  return make_table({.dim = 2,
                     .initializer = tpu::RowIdInitializer(),
                     .optimizer = optimizer,
                     .combiner = combiner,
                     .name = "items",
                     .dynamic = dynamic});
}

// The gradient of the activations of the tests.
inline Tensor gradient_factors(const Shape& shape) {
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

inline OptimizerHandle sgd(double rate = 1) { return optimizers::SGD({.learning_rate = rate}); }

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

// The static table whose row i starts as the initial row of key i.
inline Table static_twin(const EmbeddingOptimizer& optimizer, const std::string& combiner) {
  return make_table({.vocabulary_size = 50,
                     .dim = 2,
                     .initializer = tpu::RowIdInitializer(),
                     .optimizer = optimizer,
                     .combiner = combiner,
                     .name = "items"});
}

inline std::vector<TensorLike> twin_batches(uint64_t seed, int replicas) {
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
inline std::vector<float> twin_rows(const Job& job, const std::vector<int64_t>& keys) {
  const std::vector<float> all = job.layer()->embedding_tables()[0].second.to_vector<float>();
  std::vector<float> out;
  for (const int64_t key : keys) {
    out.insert(out.end(), all.begin() + key * 2, all.begin() + key * 2 + 2);
  }
  return out;
}

}  // namespace keel::dynamic_job

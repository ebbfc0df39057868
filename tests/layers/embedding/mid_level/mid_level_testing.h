// Helpers shared by the tests of the mid-level embedding objects.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>

#include "tests/support/embedding_fixture.h"

namespace keel::mid_level {

using Values = std::vector<float>;

inline FeatureConfig on(const Table& table) { return {.table = table}; }

// Returns the value of a table or slot, "video" or "video/accumulators", as a checkpoint holds it.
inline Tensor state_of(const tpu::EmbeddingBase& embedding, const std::string& name) {
  for (const StateEntry& entry : embedding.tracked()->state_entries()) {
    if (entry.name == name) return entry.get();
  }
  throw ValueError("no state ", name);
}
inline Values values_of(const tpu::EmbeddingBase& embedding, const std::string& name) {
  return state_of(embedding, name).to_vector<float>();
}
inline void set_state(const tpu::EmbeddingBase& embedding, const std::string& name,
                      const Tensor& value) {
  for (const StateEntry& entry : embedding.tracked()->state_entries()) {
    if (entry.name == name) return entry.set(value);
  }
  throw ValueError("no state ", name);
}

inline Values flat(const Tensors& activations) {
  Values out;
  for (const TensorLike& a : flatten(activations)) {
    const Values values = a.tensor().to_vector<float>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

// Returns the same features for every replica.
inline distribute::PerReplica<Tensors> for_all(const Tensors& features,
                                               const distribute::Strategy& strategy) {
  return distribute::PerReplica<Tensors>(
      std::vector<Tensors>(strategy.num_local_replicas(), features));
}

inline int this_replica() { return current_replica_context()->replica; }

// Returns gradients that are `value` everywhere, for activations of these shapes.
inline Nest<Gradient> filled_like(const Tensors& activations, float value) {
  return map_structure(activations, [&](const TensorLike& a) -> Gradient {
    return Tensor::full<float>(a.tensor().shape(), value);
  });
}

inline Table table_of(int64_t rows, int64_t dim, const std::string& name = "",
                      const Initializer& initializer = "zeros") {
  return make_table({.vocabulary_size = rows,
                     .dim = dim,
                     .initializer = initializer,
                     .combiner = "sum",
                     .name = name});
}
inline Nest<FeatureConfig> one_feature(const FeatureConfig& feature) { return {{"f", feature}}; }
inline Tensors f(const TensorLike& input) { return {{"f", input}}; }
inline InputShapes f_shape(const OptionalShape& shape) { return {{"f", shape}}; }
inline Tensor id(int64_t value) { return fixture::ids({value}, {1, 1}); }

// A table of zeros with 4 columns, looked up by one feature: the object, its strategy and its
// scope.
struct Small {
  explicit Small(int cores = 2,
                 const EmbeddingOptimizer& optimizer = tpu::SGD{.learning_rate = 0.1},
                 bool pipelined = false)
      : strategy({.num_cores = cores}), table(table_of(8, 4, "t")), embedding([&] {
          const auto scope = strategy.scope();
          return std::make_unique<tpu::TPUEmbedding>(one_feature(on(table)), optimizer, pipelined);
        }()) {}

  // Looks up id 0 in every replica and, in training, updates it with gradients that sum to 1.
  // Returns the first column of replica 0's activations.
  float step(bool training = true) {
    embedding->enqueue(for_all(f(id(0)), strategy), {.training = training});
    const float share = 1.0F / static_cast<float>(strategy.num_replicas_in_sync());
    return strategy
        .run([&] {
          const Tensors seen = embedding->dequeue();
          if (training) embedding->apply_gradients(filled_like(seen, share));
          return flat(seen)[0];
        })
        .values()[0];
  }

  distribute::TPUStrategy strategy;
  Table table;
  std::unique_ptr<tpu::TPUEmbedding> embedding;
};

}  // namespace keel::mid_level

// Models and batches for tests of serving plans.
#pragma once

#include <random>
#include <string>
#include <vector>

#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>

namespace keel::serving_test {

inline Tensor random_floats(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> in(-1, 1);
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  for (float& x : out.mutable_data<float>()) x = in(random);
  return out;
}

inline Tensor random_ids(const Shape& shape, int64_t limit, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor out = Tensor::uninitialized(shape, DType::kInt64);
  for (int64_t& x : out.mutable_data<int64_t>()) x = static_cast<int64_t>(random() % limit);
  return out;
}

inline Table table(int64_t rows, int64_t dim, const std::string& combiner = "mean") {
  return make_table({.vocabulary_size = rows, .dim = dim, .combiner = combiner});
}

inline Tensor concatenated(Tensors::Items parts) {
  return layers::Concatenate({})(Tensors::list(std::move(parts))).tensor();
}

// DLRM with five id features in tables of 50 rows, a tower for the numbers, and dot products of all
// pairs.
inline Functional dlrm(int64_t dim = 16) {
  Nest<FeatureConfig>::Dict features;
  Tensors::Dict inputs;
  for (int f = 0; f < 5; ++f) {
    const std::string name = "id" + std::to_string(f);
    features[name] = FeatureConfig{.table = table(50, dim)};
    inputs[name] = layers::input({.shape = {}, .dtype = DType::kInt64, .name = name});
  }
  Tensor x = layers::input({.shape = {7}, .name = "numbers"});
  const Tensors rows =
      layers::TPUEmbedding({.feature_config = Nest<FeatureConfig>(features)})(Tensors(inputs));
  inputs["numbers"] = x;
  for (int64_t units : {int64_t{40}, dim}) {
    x = layers::Dense({.units = units, .activation = "relu", .bias_initializer = "normal"})(x);
  }
  Tensors::Items all = {x};
  for (const TensorLike& row : flatten(rows)) all.emplace_back(row);
  const Tensor pairs = layers::DotInteraction({})(Tensors::list(all)).tensor();
  Tensor y = concatenated({x, pairs});
  y = layers::Dense({.units = 33, .activation = "relu"})(y);
  return Functional({.inputs = Tensors(inputs),
                     .outputs = layers::Dense({.units = 1, .activation = "sigmoid"})(y)});
}

inline Tensors dlrm_batch(int64_t rows, uint32_t seed = 1) {
  Tensors::Dict out = {{"numbers", random_floats({rows, 7}, seed)}};
  for (int f = 0; f < 5; ++f) {
    out["id" + std::to_string(f)] = random_ids({rows}, 50, seed + 10 + f);
  }
  return Tensors(std::move(out));
}

}  // namespace keel::serving_test

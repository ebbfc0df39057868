#include "tests/support/embedding_fixture.h"

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/distribute/tpu/tpu_strategy.h>

namespace keel::fixture {
namespace {

const IdRows kWatched = {{0}, {0, 1}, {0, 1}, {1}};
const IdRows kFavorited = {{0, 1}, {1}, {0}, {0, 1}};
const IdRows kFriends = {{3}, {0, 1, 2}, {3}, {0, 1, 2}};

IdRows cut(const IdRows& rows, int64_t begin, int64_t end) {
  return {rows.begin() + begin, rows.begin() + end};
}

Tensor look_up(const OneFeature& one, distribute::Strategy& strategy,
               std::optional<EmbeddingFeature> hardware = {}) {
  const auto scope = strategy.scope();
  TableConfig config = one.table;
  config.vocabulary_size = one.table_values.dim(0);
  config.dim = one.table_values.dim(1);
  const Table table = make_table(config);
  FeatureConfig feature = one.feature;
  feature.table = table;
  const Tensors input = {{"f", one.input}};
  const layers::TPUEmbedding layer(
      {.feature_config = {{"f", feature}}, .optimizer = "sgd", .embedding_feature = hardware});
  layer->build(specs_of(input));
  layer->update_embedding_table(table, one.table_values);
  std::optional<Nest<std::optional<TensorLike>>> weights;
  if (one.weights) weights = Nest<std::optional<TensorLike>>{{"f", one.weights}};
  const auto found = strategy.run([&] { return layer(input, {.weights = weights})["f"].tensor(); });
  return found[strategy.num_local_replicas() - 1];
}

}  // namespace

void expect_tensor(const Tensor& tensor, const Shape& shape, const std::vector<double>& values,
                   double rtol, double atol) {
  ASSERT_EQ(tensor.shape(), shape);
  const std::vector<float> got = tensor.to_vector<float>();
  ASSERT_EQ(got.size(), values.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], values[i], atol + rtol * std::abs(values[i])) << "element " << i;
  }
}

void expect_rows(const Tensor& tensor, const std::vector<std::vector<double>>& rows, double rtol,
                 double atol) {
  std::vector<double> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  expect_tensor(tensor,
                {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows.at(0).size())}, flat,
                rtol, atol);
}

Tensor look_up_on_host(const OneFeature& one) {
  distribute::CPUStrategy strategy;
  return look_up(one, strategy);
}

Tensor look_up_on_engine(const OneFeature& one, int cores) {
  distribute::TPUStrategy strategy({.num_cores = cores});
  return look_up(one, strategy);
}

Tensor look_up_on_v0(const OneFeature& one, int cores) {
  distribute::TPUStrategy strategy({.num_cores = cores});
  return look_up(one, strategy, EmbeddingFeature::kUnsupported);
}

Nest<FeatureConfig> Standard::features(int64_t video_steps, int64_t user_steps) const {
  const FeatureConfig on_video = {.table = video, .max_sequence_length = video_steps};
  const FeatureConfig on_user = {.table = user, .max_sequence_length = user_steps};
  return {{"watched", on_video}, {"favorited", on_video}, {"friends", on_user}};
}

Tensors Standard::sparse_batch(int64_t begin, int64_t end) {
  return {{"watched", sparse(cut(kWatched, begin, end), 2)},
          {"favorited", sparse(cut(kFavorited, begin, end), 2)},
          {"friends", sparse(cut(kFriends, begin, end), 3)}};
}

Tensors Standard::ragged_batch(int64_t begin, int64_t end) {
  return {{"watched", ragged(cut(kWatched, begin, end))},
          {"favorited", ragged(cut(kFavorited, begin, end))},
          {"friends", ragged(cut(kFriends, begin, end))}};
}

layers::TPUEmbedding Standard::unbuilt_layer(const EmbeddingOptimizer& optimizer) const {
  return layers::TPUEmbedding({.feature_config = features(), .optimizer = optimizer});
}

void Standard::load(const layers::TPUEmbedding& layer) const {
  layer->update_embedding_table(video, counting(8, 4));
  layer->update_embedding_table(user, counting(16, 2));
}

layers::TPUEmbedding Standard::layer(const EmbeddingOptimizer& optimizer, const Tensors& like,
                                     int64_t video_steps, int64_t user_steps) const {
  layers::TPUEmbedding out(
      {.feature_config = features(video_steps, user_steps), .optimizer = optimizer});
  out->build(specs_of(like));
  load(out);
  return out;
}

Tensor squares_loss(const Tensors& activations, double rows) {
  Tensor sum;
  for (const TensorLike& leaf : flatten(activations)) {
    const Tensor part = ops::sum(ops::square(leaf.tensor()));
    sum = sum ? sum + part : part;
  }
  return sum / rows;
}

Tensor state_of(const layers::TPUEmbedding& layer, const std::string& name) {
  for (const StateEntry& entry : layer->state_entries()) {
    if (entry.name == name) return entry.get();
  }
  throw ValueError("state_of: no entry '", name, "'");
}

}  // namespace keel::fixture

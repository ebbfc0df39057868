// A click model as a functional graph, trained with fit under a TPUStrategy.
#include <iostream>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/visualization/visualization.h>
#include <keel/optimizers/adagrad.h>

using namespace keel;

// Two users like even items, the others like odd items.
data::Dataset clicks(int64_t rows) {
  std::vector<int64_t> users, items;
  std::vector<float> labels;
  for (int64_t row = 0; row < rows; ++row) {
    users.push_back(row * 7 % 10);
    items.push_back(row * 3 % 50);
    labels.push_back((users.back() < 2) == (items.back() % 2 == 0) ? 1.0F : 0.0F);
  }
  const Tensors features = {{"user", Tensor::from(users, {rows})},
                            {"item", Tensor::from(items, {rows})}};
  return data::Dataset::from_tensor_slices(
             Tensors::tuple({features, Tensor::from(labels, {rows, 1})}))
      .shuffle(rows, {.seed = 1})
      .batch(64);
}

int main() {
  distribute::TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  const optimizers::Adagrad optimizer({.learning_rate = 0.1});

  const Tensors inputs = {
      {"user", layers::input({.dtype = DType::kInt64, .name = "user"})},
      {"item", layers::input({.dtype = DType::kInt64, .name = "item"})},
  };
  const layers::TPUEmbedding embedding({
      .feature_config = {{"user",
                          FeatureConfig{.table = make_table({.vocabulary_size = 10, .dim = 8})}},
                         {"item",
                          FeatureConfig{.table = make_table({.vocabulary_size = 50, .dim = 8})}}},
      .optimizer = optimizer,
  });
  const Tensors found = embedding(inputs);
  Tensor x = layers::Concatenate({})(Tensors::list({found["user"], found["item"]})).tensor();
  x = layers::Dense({.units = 32, .activation = "relu"})(x);
  x = layers::Dense({.units = 1, .activation = "sigmoid"})(x);
  const Functional model({.inputs = inputs, .outputs = x, .name = "clicks"});

  summary(*model);
  model->compile({.optimizer = optimizer, .loss = "binary_crossentropy", .metrics = {"auc"}});
  model->fit(clicks(4096), {.epochs = 5});
  for (const auto& [name, value] : model->evaluate(clicks(1000))) {
    std::cout << name << ' ' << value << '\n';
  }
  return std::cout.flush() ? 0 : 1;  // a full disk is an error
}

// A transformer that predicts the next item of a shopping session from the order of the previous
// ones (as SASRec, Kang and McAuley 2018), trained with fit, then saved, loaded and served by a
// ServingPlan.
#include <iostream>
#include <random>

#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/reshaping/padding.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/layers/visualization/visualization.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/saved_model.h>

using namespace keel;

namespace {

constexpr int64_t kItems = 30, kLength = 8, kDim = 32;

struct Sessions {
  Tensor items;  // int64 [rows, kLength]
  Tensor next;   // int64 [rows]
};

// Makes sessions of two shoppers who take turns. Each walks along a round shelf in one direction
// and takes the item in front of them. The next item thus depends on the second last and the fourth
// last one: a model that does not know the order cannot predict it.
Sessions make_sessions(int64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<int64_t> items, next;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at[] = {below(kItems), below(kItems)};
    const int64_t direction[] = {2 * below(2) - 1, 2 * below(2) - 1};
    for (int64_t i = 0; i <= kLength; ++i) {
      int64_t& own = at[i % 2];
      (i < kLength ? items : next).push_back(own);
      own = (own + direction[i % 2] + kItems) % kItems;
    }
  }
  return {.items = Tensor::from(items, {rows, kLength}), .next = Tensor::from(next, {rows})};
}

// Attention and a small network, each with a shortcut and a normalization.
Tensor transformer_block(const Tensor& x) {
  const Tensor attended = layers::MultiHeadAttention({.num_heads = 2, .key_dim = kDim / 2})(
                              Tensors::list({x, x}), {.use_causal_mask = true})
                              .tensor();
  const Tensor y =
      layers::LayerNormalization({})(layers::Add({})(Tensors::list({x, attended})).tensor());
  Tensor hidden = layers::Dense({.units = 2 * kDim, .activation = "relu"})(y);
  hidden = layers::Dense({.units = kDim})(hidden);
  return layers::LayerNormalization({})(layers::Add({})(Tensors::list({y, hidden})).tensor());
}

Functional make_model() {
  const Tensor items = layers::input({.shape = {kLength}, .dtype = DType::kInt64, .name = "items"});
  Tensor x = layers::Embedding({.input_dim = kItems, .output_dim = kDim})(items);
  // The bias has a row for each step: it is the embedding of the position.
  x = layers::EinsumDense({.equation = "btd,de->bte",
                           .output_shape = {kLength, kDim},
                           .bias_axes = "te",
                           .bias_initializer = "random_normal",
                           .name = "position"})(x);
  x = transformer_block(x);
  x = layers::Cropping1D({.cropping = {kLength - 1, 0}})(x);  // the last step
  x = layers::Flatten({})(x);
  x = layers::Dense({.units = kItems, .activation = "softmax", .name = "scores"})(x);
  return Functional({.inputs = items, .outputs = x, .name = "next_item"});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "next_item.keras";
  set_random_seed(1);
  const Functional model = make_model();
  summary(*model);
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 3e-3}),
                  .loss = "sparse_categorical_crossentropy",
                  .metrics = {"accuracy"}});
  const Sessions train = make_sessions(6000, 1), test = make_sessions(1000, 2);
  model->fit(train.items, train.next, {.epochs = 6, .batch_size = 64});
  const double accuracy = model->evaluate(test.items, test.next).at("accuracy");
  std::cout << "next items predicted " << accuracy << '\n';

  save_model(model, path);
  const ServingPlan plan(load_model(path, {.compile = false}));
  const auto trained = model->predict(test.items).tensor().to_vector<float>();
  const bool same = plan(test.items).tensor().to_vector<float>() == trained;
  std::cout << "predictions served from " << path << ": " << (same ? "the same bits" : "different")
            << '\n';
  return same && accuracy >= 0.95 && std::cout.flush() ? 0 : 1;
}

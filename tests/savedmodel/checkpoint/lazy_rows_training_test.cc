// Layers over tables with deferred rows (OptimizerOptions::lazy_rows): training, inference and
// saving.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/random.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"

namespace keel::lazy_rows_training_test {

using Values = std::vector<float>;
using layers::TPUEmbedding;
using testing_support::expect_same_bits;
using testing_support::TemporaryFolder;

constexpr int64_t kRows = 50;
constexpr int64_t kDim = 4;

Tensor ids(int64_t step) {
  RandomStream random{static_cast<uint64_t>(step + 1), 2};
  Tensor uniform = Tensor::uninitialized({12}, DType::kFloat32);
  random.uniform(uniform.mutable_data<float>(), 0, 0, kRows);
  return uniform.cast(DType::kInt64);
}

// One layer of each kind, each with its own table.
struct Layers {
  layers::Embedding embedding{EmbeddingOptions{.input_dim = kRows, .output_dim = kDim}};
  layers::EmbedReduce reduce{EmbedReduceOptions{.input_dim = kRows, .output_dim = kDim}};
  Table table = make_table({.vocabulary_size = kRows, .dim = kDim, .name = "table"});
  TPUEmbedding host{TPUEmbeddingOptions{
      .feature_config = Nest<FeatureConfig>(FeatureConfig{.table = table}), .optimizer = "sgd"}};

  Tensor operator()(int64_t step) {
    const Tensor found = ids(step);
    const Tensor bags = ops::reshape(found, {3, 4});
    const Tensor a = embedding(found);
    const Tensor b = reduce(bags);
    const Tensor c = host(found);
    return ops::concat({ops::reshape(a, {12, kDim}), ops::reshape(b, {3, kDim}), c}, 0);
  }

  std::vector<Variable> variables() const {
    std::vector<Variable> out = embedding->weights();
    for (const Variable& v : reduce->weights()) out.push_back(v);
    for (const Variable& v : host->weights()) out.push_back(v);
    return out;
  }

  void start() {
    (*this)(0);
    float x = 0;
    for (const Variable& v : variables()) {
      Tensor value = Tensor::zeros(v.shape());
      for (float& w : value.mutable_data<float>()) w = std::sin(x += 0.7F);
      v.assign(value);
    }
  }

  void train(Optimizer& optimizer, int64_t step) {
    GradientTape tape;
    const Tensor loss = ops::sum(ops::square((*this)(step)));
    const std::vector<Variable> all = variables();
    const std::vector<Gradient> gradients = tape.gradient(loss, all);
    for (const Gradient& g : gradients) ASSERT_TRUE(g.is_slices());
    optimizer.apply_gradients(gradients, all);
  }

  Checkpoint checkpoint(const OptimizerHandle& optimizer) const {
    std::map<std::string, Variable> named;
    for (const Variable& v : variables()) named.emplace(str("v", named.size()), v);
    for (const Variable& v : optimizer->variables(variables())) {
      named.emplace(str("v", named.size()), v);
    }
    return Checkpoint({.variables = named});
  }
};

std::vector<OptimizerHandle> optimizers_with(LazyRows lazy) {
  return {optimizers::AdamW({.learning_rate = 0.05, .weight_decay = 0.1, .lazy_rows = lazy}),
          optimizers::SGD({.learning_rate = 0.02, .momentum = 0.9, .lazy_rows = lazy})};
}

TEST(LazyRowsTrainingTest, LookupsAndFilesSeeCurrentTables) {
  for (size_t k = 0; k < 2; ++k) {
    const TemporaryFolder folder;
    const OptimizerHandle lazily = optimizers_with(LazyRows::kReplay)[k];
    const OptimizerHandle densely = optimizers_with(LazyRows::kOff)[k];
    Layers lazy, dense;
    lazy.start();
    dense.start();
    const auto train_both = [&](Layers& of, Optimizer& by, int64_t from, int64_t to) {
      for (int64_t step = from; step < to; ++step) {
        of.train(by, step);
        dense.train(*densely, step);
        if (step % 3 == 0) expect_same_bits(of(1000 + step), dense(1000 + step));
      }
    };
    train_both(lazy, *lazily, 0, 25);
    lazy.checkpoint(lazily).write(folder / "a.h5", 25);

    const OptimizerHandle other = optimizers_with(LazyRows::kReplay)[k];
    Layers restored;
    restored.start();
    restored.checkpoint(other).restore(folder / "a.h5").assert_consumed();
    train_both(restored, *other, 25, 50);
    const std::vector<Variable> received = restored.variables(), expected = dense.variables();
    ASSERT_EQ(received.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      const auto slots = other->slots(received[i]), expected_slots = densely->slots(expected[i]);
      for (size_t s = 0; s < slots.size(); ++s) {
        expect_same_bits(slots[s].read(), expected_slots[s].read());
      }
      expect_same_bits(received[i].read(), expected[i].read());
    }
  }
}

}  // namespace keel::lazy_rows_training_test

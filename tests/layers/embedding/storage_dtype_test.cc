#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>

namespace keel::storage_dtype_test {

using layers::TPUEmbedding;

constexpr int64_t kRows = 30, kDim = 8;

struct Trained {
  std::vector<float> losses;  // by step, in the first replica
  std::vector<float> table;
};

// Fits each row to a separate target. Every replica has all rows.
template <class Optimizer>
Trained fit(distribute::Strategy& strategy, const std::string& storage, int steps,
            const Optimizer& optimizer) {
  const auto scope = strategy.scope();
  set_random_seed(5);
  const TPUEmbedding layer(
      {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = kRows,
                                                            .dim = kDim,
                                                            .initializer = "random_uniform",
                                                            .name = "items",
                                                            .storage_dtype = storage})},
       .optimizer = optimizer});
  std::vector<int64_t> all(kRows);
  for (int64_t row = 0; row < kRows; ++row) all[row] = row;
  const Tensors ids = Tensor::from(all, {kRows});
  std::vector<float> targets(kRows * kDim);
  RandomStream{.seed = 9}.normal(targets, 0, 0, 1);
  const Tensor target = Tensor::from(targets, {kRows, kDim});
  Trained out;
  for (int step = 0; step < steps; ++step) {
    out.losses.push_back(strategy.run([&] {
      GradientTape tape;
      const Tensor error = layer(ids).tensor() - target;
      const Tensor loss = ops::mean(ops::sum(ops::square(error), {1}));
      const auto variables = layer->trainable_variables();
      optimizer->apply_gradients(
          tape.gradient(loss / static_cast<float>(strategy.num_replicas_in_sync()), variables),
          variables);
      return loss.template item<float>();
    })[0]);
  }
  out.table = layer->embedding_tables()[0].second.template to_vector<float>();
  return out;
}

TEST(StorageDTypeTest, TrainingInSixteenBitsConvergesAsInFloat32) {
  const auto train = [](const std::string& storage) {
    distribute::TPUStrategy strategy({.num_cores = 2});
    return fit(strategy, storage, 300, optimizers::Adagrad({.learning_rate = 0.3}));
  };
  const Trained floats = train("float32");
  EXPECT_LT(floats.losses.back(), 1e-3 * floats.losses.front());
  for (const std::string storage : {"bfloat16", "float16"}) {
    const Trained halves = train(storage);
    EXPECT_NE(halves.table, floats.table);
    // A weight near its target alternates between the two adjacent values, which are up to 2^-7 of
    // it apart (the targets' mean square is 1).
    const double noise = kDim * (storage == "bfloat16" ? 0x1p-14 : 0x1p-20);
    EXPECT_LT(halves.losses.back(), floats.losses.back() + noise) << storage;
  }
}

TEST(StorageDTypeTest, StepsBelowTheStorageResolutionChangeTheTable) {
  // Each step moves a weight by 1/1000 of its distance to the target. For most of the way, that is
  // less than half the spacing of bfloat16 values, so rounding to nearest would not change the
  // weight.
  distribute::TPUStrategy strategy({.num_cores = 1});
  const optimizers::SGD slow({.learning_rate = 1e-3 * kRows / 2});
  const Trained trained = fit(strategy, "bfloat16", 1500, slow);
  // (1 - 1/1000)^1500 of the distance remains. Its square is 0.0497.
  EXPECT_NEAR(trained.losses.back() / trained.losses.front(), 0.0497, 0.01);
}

TEST(StorageDTypeTest, TablesThatAreVariablesStayFloats) {
  const auto train = [](const std::string& storage) {
    distribute::CPUStrategy strategy;
    return fit(strategy, storage, 5, optimizers::SGD({.learning_rate = 0.1}));
  };
  EXPECT_EQ(train("bfloat16").table, train("float32").table);
}

TEST(StorageDTypeTest, UnknownStorageDtypesAreErrors) {
  for (const char* name : {"", "int8", "half", "BFLOAT16"}) {
    EXPECT_THROW(make_table({.vocabulary_size = 2, .dim = 2, .storage_dtype = name}), ValueError);
  }
}

}  // namespace keel::storage_dtype_test

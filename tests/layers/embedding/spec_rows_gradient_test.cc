#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"

namespace keel::spec_rows_gradient_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using fixture::expect_rows;
using fixture::expect_tensor;
using fixture::FloatRows;
using fixture::IdRows;
using fixture::matrix;
using fixture::ragged;
using fixture::Standard;
using fixture::state_of;
using layers::TPUEmbedding;
using Expected = std::vector<std::vector<double>>;

template <class Body>
void in_both_modes(Body&& body) {
  {
    CPUStrategy strategy;
    const auto scope = strategy.scope();
    body(strategy);
  }
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  body(strategy);
}

Tensor table_of(const TPUEmbedding& layer, int position = 0) {
  return layer->embedding_tables()[position].second;
}

// Expects the row gradients: a 4 x 2 table of zeros holds their negative after SGD at rate 1.
void expect_row_gradients(const char* combiner, const Expected& expected) {
  const Tensors features = ragged(IdRows{{0, 2, 2}, {1, 0}});
  const Nest<std::optional<TensorLike>> weights =
      std::optional<TensorLike>(ragged(FloatRows{{1, 1, 1}, {2, 0.5}}));
  in_both_modes([&](Strategy& strategy) {
    const optimizers::SGD sgd({.learning_rate = 1});
    const Table table =
        make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros", .combiner = combiner});
    const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table}, .optimizer = sgd});
    strategy.run([&] {
      GradientTape tape;
      const Tensor y = layer(features, {.weights = weights}).tensor();
      const auto variables = layer->trainable_variables();
      sgd->apply_gradients(tape.gradient(ops::sum(y * matrix({{1, 2}, {-1, 0.5F}})), variables),
                           variables);
    });
    expect_rows(table_of(layer) * -1, expected);
  });
}

TEST(SpecRowsC, C01_RowGradientsOfSumWithARepeatedIdAndWeights) {
  expect_row_gradients("sum", {{0.5, 2.25}, {-2, 1}, {2, 4}, {0, 0}});
}

TEST(SpecRowsC, C02_RowGradientsOfMeanWithARepeatedIdAndWeights) {
  expect_row_gradients("mean",
                       {{0.1333333, 0.7666667}, {-0.8, 0.4}, {0.6666667, 1.3333333}, {0, 0}});
}

TEST(SpecRowsC, C03_RowGradientsOfSqrtnWithARepeatedIdAndWeights) {
  expect_row_gradients(
      "sqrtn", {{0.3348146, 1.2759684}, {-0.9701425, 0.4850713}, {1.1547005, 2.3094011}, {0, 0}});
}

TEST(SpecRowsC, C04_FeaturesThatShareATableAddUp) {
  const Tensors features = {{"a", ragged(IdRows{{1}})}, {"b", ragged(IdRows{{1, 3}})}};
  in_both_modes([&](Strategy& strategy) {
    const optimizers::SGD sgd({.learning_rate = 1});
    const Table table =
        make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros", .combiner = "sum"});
    const TPUEmbedding layer({.feature_config = {{"a", FeatureConfig{.table = table}},
                                                 {"b", FeatureConfig{.table = table}}},
                              .optimizer = sgd});
    strategy.run([&] {
      GradientTape tape;
      const Tensors y = layer(features);
      const Tensor loss = ops::sum(y["a"].tensor() * matrix({{1, 0}})) +
                          ops::sum(y["b"].tensor() * matrix({{0.5F, -2}}));
      const auto variables = layer->trainable_variables();
      sgd->apply_gradients(tape.gradient(loss, variables), variables);
    });
    expect_rows(table_of(layer) * -1, {{0, 0}, {1.5, -2}, {0, 0}, {0.5, -2}});
  });
}

TEST(SpecRowsC, C05_ReplicasAreSummedNotAveraged) {
  TPUStrategy strategy({.num_cores = 8});
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros"});
  const TPUEmbedding layer(
      {.feature_config = FeatureConfig{.table = table}, .optimizer = tpu::SGD{.learning_rate = 1}});
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = ops::sum(layer(fixture::ids({0}, {1}))) / 8;
    tape.gradient(loss, layer->trainable_variables());
  });
  expect_rows(table_of(layer), {{-1, -1}, {0, 0}, {0, 0}, {0, 0}});
}

// The activations before and after one step of SGD with rate 0.1 on the first two rows of the
// fixture. Each named activation has a gradient of ones.
struct Activations {
  Tensors before, after;
};
Activations train_with_ones(Strategy& strategy, const Tensors& batch,
                            const std::vector<const char*>& names, int64_t video_steps = 0,
                            int64_t user_steps = 0) {
  const optimizers::SGD sgd({.learning_rate = 0.1});
  const TPUEmbedding layer = Standard().layer(sgd, batch, video_steps, user_steps);
  Activations out;
  strategy.run([&] {
    GradientTape tape;
    out.before = layer(batch);
    Tensor loss = Tensor::scalar<float>(0);
    for (const char* name : names) loss = loss + ops::sum(out.before[name].tensor());
    const auto variables = layer->trainable_variables();
    sgd->apply_gradients(tape.gradient(loss, variables), variables);
  });
  strategy.run([&] { out.after = layer(batch); });
  return out;
}

void expect_drops(const Activations& run, const char* name, const Shape& shape,
                  const std::vector<double>& drops) {
  expect_tensor(run.before[name].tensor() - run.after[name].tensor(), shape, drops);
}

TEST(SpecRowsC, C06_AFeatureWithoutGradientCountsAsZeros) {
  for (const Tensors& batch : {Standard::sparse_batch(0, 2), Standard::ragged_batch(0, 2)}) {
    in_both_modes([&](Strategy& strategy) {
      const Activations run = train_with_ones(strategy, batch, {"friends"});
      expect_drops(run, "watched", {2, 4}, std::vector<double>(8, 0.0));
      expect_drops(run, "favorited", {2, 4}, std::vector<double>(8, 0.0));
      expect_drops(run, "friends", {2, 2}, {0.1, 0.1, 1 / 30.0, 1 / 30.0});
    });
  }
}

// Returns `mask` times `drop`, for each of `dim` columns.
std::vector<double> masked(const std::vector<int>& mask, double drop, int dim) {
  std::vector<double> out;
  for (int step : mask) out.insert(out.end(), dim, step * drop);
  return out;
}

TEST(SpecRowsC, C07_PaddingOfSequencesTakesNoGradient) {
  for (const Tensors& batch : {Standard::sparse_batch(0, 2), Standard::ragged_batch(0, 2)}) {
    in_both_modes([&](Strategy& strategy) {
      const Activations run =
          train_with_ones(strategy, batch, {"watched", "favorited", "friends"}, 2, 3);
      expect_drops(run, "watched", {2, 2, 4}, masked({1, 0, 1, 1}, 0.3, 4));
      expect_drops(run, "favorited", {2, 2, 4}, masked({1, 1, 1, 0}, 0.3, 4));
      expect_drops(run, "friends", {2, 3, 2}, masked({1, 0, 0, 1, 1, 1}, 0.1, 2));
      EXPECT_EQ(run.after["watched"].tensor().to_vector<float>()[4], 0) << "padding stays 0";
    });
  }
}

TEST(SpecRowsC, C08_SumsOfAllOnesGradients) {
  for (const Tensors& batch : {Standard::sparse_batch(0, 2), Standard::ragged_batch(0, 2)}) {
    in_both_modes([&](Strategy& strategy) {
      const Activations run = train_with_ones(strategy, batch, {"watched", "favorited", "friends"});
      expect_drops(run, "watched", {2, 4}, {0.3, 0.3, 0.3, 0.3, 0.6, 0.6, 0.6, 0.6});
      expect_drops(run, "favorited", {2, 4}, {0.6, 0.6, 0.6, 0.6, 0.3, 0.3, 0.3, 0.3});
      expect_drops(run, "friends", {2, 2}, {0.1, 0.1, 1 / 30.0, 1 / 30.0});
    });
  }
}

constexpr float kLoss = 335;

// Runs one step on all four rows of the fixture on one replica. Returns the layer.
TPUEmbedding train_full(Strategy& strategy, const EmbeddingOptimizer& optimizer,
                        const Tensors& batch) {
  TPUEmbedding layer = Standard().layer(optimizer, batch);
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = fixture::squares_loss(layer(batch), 4);
    EXPECT_EQ(loss.item<float>(), kLoss);
    tape.gradient(loss, layer->trainable_variables());
  });
  return layer;
}

// Expects rows [0, n) of an entry of the layer's state, and that all later rows are unchanged.
void expect_first_rows(const TPUEmbedding& layer, const std::string& entry,
                       const Expected& expected, const std::vector<double>& rest,
                       double rtol = 2e-5, double atol = 2e-6) {
  Expected rows = expected;
  const auto dim = static_cast<int64_t>(expected[0].size());
  const Tensor values = state_of(layer, entry);
  for (auto row = static_cast<int64_t>(expected.size()); row < values.dim(0); ++row) {
    auto& added = rows.emplace_back();
    for (int64_t d = 0; d < dim; ++d) {
      added.push_back(rest.empty() ? static_cast<double>(row * dim + d) : rest[0]);
    }
  }
  expect_rows(values, rows, rtol, atol);
}
const std::vector<double> kUntouched = {};  // an unchanged table: 0, 1, 2, ... row by row

// Runs `check` on the layer after a full step, with sparse and with ragged rows.
template <class Check>
void after_full_step(const EmbeddingOptimizer& optimizer, Check&& check) {
  for (const Tensors& batch : {Standard::sparse_batch(), Standard::ragged_batch()}) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    check(train_full(strategy, optimizer, batch));
  }
}

TEST(SpecRowsC, C09_FullStepOfSGD) {
  for (const Tensors& batch : {Standard::sparse_batch(), Standard::ragged_batch()}) {
    in_both_modes([&](Strategy& strategy) {
      const optimizers::SGD sgd({.learning_rate = 0.1});
      const TPUEmbedding layer = Standard().layer(sgd, batch);
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = fixture::squares_loss(layer(batch), 4);
        EXPECT_EQ(loss.item<float>(), kLoss);
        const auto variables = layer->trainable_variables();
        sgd->apply_gradients(tape.gradient(loss, variables), variables);
      });
      expect_first_rows(layer, "video", {{-0.8, -0.3, 0.2, 0.7}, {2.8, 3.3, 3.8, 4.3}}, kUntouched);
      expect_first_rows(layer, "user",
                        {{-0.0666667, 0.9}, {1.9333333, 2.9}, {3.9333333, 4.9}, {5.4, 6.3}},
                        kUntouched);
    });
  }
}

const Expected kSquaresOfVideo = {{64.1, 169.1, 324.1, 529.1}, {144.1, 289.1, 484.1, 729.1}};

TEST(SpecRowsC, C10_FullStepOfAdagrad) {
  after_full_step(tpu::Adagrad{.learning_rate = 0.1}, [](const TPUEmbedding& layer) {
    expect_first_rows(layer, "video",
                      {{-0.099922, 0.9000296, 1.9000154, 2.9000095},
                       {3.9000347, 4.9000173, 5.9000103, 6.9000069}},
                      kUntouched);
    expect_first_rows(layer, "video/accumulators", kSquaresOfVideo, {0.1});
    expect_first_rows(layer, "user",
                      {{-0.0903508, 0.9046537},
                       {1.9096492, 2.9046537},
                       {3.9096492, 4.9046537},
                       {5.9001386, 6.9001019}},
                      kUntouched);
  });
}

TEST(SpecRowsC, C11_FullStepOfAdam) {
  after_full_step(tpu::Adam{.learning_rate = 0.1}, [](const TPUEmbedding& layer) {
    expect_first_rows(layer, "video",
                      {{-0.3162278, 0.6837722, 1.6837722, 2.6837722},
                       {3.6837722, 4.6837722, 5.6837722, 6.6837722}},
                      kUntouched);
    expect_first_rows(layer, "video/momenta", {{0.8, 1.3, 1.8, 2.3}, {1.2, 1.7, 2.2, 2.7}}, {0});
    expect_first_rows(layer, "video/velocities",
                      {{0.064, 0.169, 0.324, 0.529}, {0.144, 0.289, 0.484, 0.729}}, {0});
  });
}

TEST(SpecRowsC, C12_FullStepOfFTRL) {
  after_full_step(tpu::FTRL{.learning_rate = 0.1}, [](const TPUEmbedding& layer) {
    expect_first_rows(
        layer, "video",
        {{-0.099922, 0.8757116, 1.8648844, 2.8587662}, {3.794662, 4.8070252, 5.8137753, 6.8180275}},
        kUntouched);
    expect_first_rows(layer, "video/linears",
                      {{8, -113.8761782, -335.7309959, -657.5783813},
                       {-455.5175271, -817.3356578, -1279.1626906, -1840.9936816}},
                      {0});
    expect_first_rows(layer, "video/accumulators", kSquaresOfVideo, {0.1});
  });
}

TEST(SpecRowsC, C13_FullStepOfAdagradMomentum) {
  const tpu::AdagradMomentum optimizer = {.learning_rate = 0.1,
                                          .momentum = 0.9,
                                          .use_nesterov = true,
                                          .exponent = 3,
                                          .beta2 = 0.9,
                                          .epsilon = 0.1};
  after_full_step(optimizer, [](const TPUEmbedding& layer) {
    expect_first_rows(layer, "video",
                      {{-0.8144651, 0.0393895, 0.9283203, 1.8366167},
                       {3.0649988, 3.9486761, 4.8537948, 5.7725332}},
                      kUntouched);
    expect_first_rows(layer, "video/accumulators",
                      {{6.4, 16.9, 32.4, 52.9}, {14.4, 28.9, 48.4, 72.9}}, {0});
    expect_first_rows(layer, "video/momenta",
                      {{4.2866583, 5.0558445, 5.6404192, 6.1230698},
                       {4.9210591, 5.5332835, 6.0326589, 6.4603514}},
                      {0});
  });
}

}  // namespace keel::spec_rows_gradient_test

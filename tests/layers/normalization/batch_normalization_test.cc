#include <keel/layers/normalization/batch_normalization.h>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"
#include "tests/support/temporary_folder.h"

namespace keel::batch_normalization_test {

using layers::BatchNormalization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::TemporaryFolder;
using Values = std::vector<float>;

const Tensor& batch() {
  static const Tensor kBatch = Tensor::from<float>({1, 10, 3, 10}, {2, 2});
  return kBatch;
}

TEST(BatchNormalizationTest, TrainingNormalizesByTheBatch) {
  const BatchNormalization layer({.epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 3}, {2, 1});
  EXPECT_EQ(layer(x, {.training = true}).to_vector<float>(), (Values{-1, 1}));
}

TEST(BatchNormalizationTest, InferenceNormalizesByTheMovingAverages) {
  const BatchNormalization layer({.epsilon = 0});
  EXPECT_EQ(layer(batch()).to_vector<float>(), batch().to_vector<float>());
  layer->moving_mean().assign(Tensor::from<float>({1, 2}, {2}));
  layer->moving_variance().assign(Tensor::from<float>({4, 16}, {2}));
  EXPECT_EQ(layer(batch()).to_vector<float>(), (Values{0, 2, 1, 2}));
}

TEST(BatchNormalizationTest, MovingAveragesUseTheBiasedVariance) {
  const BatchNormalization layer({.momentum = 0.5});
  layer(batch(), {.training = true});
  EXPECT_EQ(layer->moving_mean().read().to_vector<float>(), (Values{1, 5}));
  EXPECT_EQ(layer->moving_variance().read().to_vector<float>(), (Values{1, 0.5}));
}

TEST(BatchNormalizationTest, WeightsHaveTheOrderOfFiles) {
  const BatchNormalization layer({});
  layer(batch());
  std::vector<std::string> names;
  for (const Variable& v : layer->weights()) names.push_back(v.name());
  EXPECT_EQ(names, (std::vector<std::string>{"gamma", "beta", "moving_mean", "moving_variance"}));
  EXPECT_EQ(layer->trainable_variables().size(), 2u);
}

TEST(BatchNormalizationTest, ABatchOfNoRowsLeavesTheAveragesAlone) {
  const BatchNormalization layer({});
  EXPECT_EQ(layer(Tensor::zeros({0, 2}), {.training = true}).shape(), Shape({0, 2}));
  EXPECT_EQ(layer->moving_mean().read().to_vector<float>(), (Values{0, 0}));
  EXPECT_EQ(layer->moving_variance().read().to_vector<float>(), (Values{1, 1}));
}

// Keras runs the calls of a graph by depth from the output, deepest first. It runs calls of one
// depth in the order in which a traversal from the output, through the last argument of the sum
// first, reaches them. Starting from 0 with momentum 1 / 2, the mean is (first / 2 + second) / 2.
TEST(BatchNormalizationTest, CallsOfOneLayerUpdateTheAveragesInTheOrderOfKeras) {
  const auto mean_after = [](bool later_a, bool later_b) {
    const Tensor a = layers::input({.shape = {1}, .name = "a"});
    const Tensor b = layers::input({.shape = {1}, .name = "b"});
    const BatchNormalization norm({.momentum = 0.5, .name = "norm"});
    Tensor of_a = norm(a), of_b = norm(b);
    if (later_a) of_a = layers::Identity({.name = "later_a"})(of_a);
    if (later_b) of_b = layers::Identity({.name = "later_b"})(of_b);
    const Functional model({.inputs = Tensors::list({a, b}),
                            .outputs = layers::Add({.name = "sum"})(Tensors::list({of_a, of_b}))});
    model(Tensors::list({Tensor::full<float>({2, 1}, 8), Tensor::full<float>({2, 1}, 16)}),
          {.training = true});
    return norm->moving_mean().read().item<float>();
  };
  constexpr float kAThenB = (8 / 2.0F + 16) / 2, kBThenA = (16 / 2.0F + 8) / 2;
  EXPECT_EQ(mean_after(false, false), kAThenB) << "sum meets a and b as its arguments";
  EXPECT_EQ(mean_after(true, false), kAThenB) << "a is deeper";
  EXPECT_EQ(mean_after(true, true), kBThenA) << "later_b meets b before later_a meets a";
}

// Each replica averages its own rows. Predictions use the mean over the replicas, which files
// store.
TEST(BatchNormalizationTest, ReplicasPredictTheSameBitsBeforeAndAfterTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "replicas.keras";
  for (const int cores : {2, 3, 4}) {
    distribute::TPUStrategy strategy({.num_cores = cores});
    const auto scope = strategy.scope();
    const Sequential model({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2}}),
                                       BatchNormalization({.momentum = 0.5})}});
    model->compile({.optimizer = "sgd", .loss = "mse"});
    const Tensor x = Tensor::from<float>(
        {.1F, 10, .3F, -1, 5, 5, .7F, 3, 2, 2, 8, .9F, 4, 4, 1, 1, 6, 6, 7, 3, 9, 2, .5F, .25F},
        {12, 2});
    model->fit(x, x, {.epochs = 2, .batch_size = 12});
    const std::vector<float> before = model->predict(x).tensor().to_vector<float>();
    const Logs logs = model->evaluate(x, x, {.batch_size = 12});
    save_model(model, path);
    const ModelHandle again = load_model(path);
    EXPECT_EQ(again->predict(x).tensor().to_vector<float>(), before) << cores;
    EXPECT_EQ(again->evaluate(x, x, {.batch_size = 12}).at("loss"), logs.at("loss"));
    // Outside of the replicas the model reads the same mean.
    EXPECT_EQ(model(Tensors(x)).tensor().to_vector<float>(), before) << cores;
  }
}

TEST(BatchNormalizationTest, AFrozenLayerUsesItsAveragesWhileTraining) {
  const BatchNormalization layer({.epsilon = 0});
  layer->set_trainable(false);
  EXPECT_EQ(layer(batch(), {.training = true}).to_vector<float>(), batch().to_vector<float>());
  EXPECT_EQ(layer->moving_mean().read().to_vector<float>(), (Values{0, 0}));
}

TEST(BatchNormalizationTest, OutsideTheReplicasTheAveragesAreTheirMean) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const BatchNormalization layer({.momentum = 0.5});
  const auto x = strategy.distribute_values_from_function(
      [](int r) { return Tensor::full<float>({3, 1}, static_cast<float>(4 * r)); });
  strategy.run([&](const Tensor& t) { layer(t, {.training = true}); }, x);
  // The averages in the replicas are 0 and 2.
  EXPECT_EQ(layer->moving_mean().read().item<float>(), 1);
}

// Returns the values of a model's weights after `fit`, with the batch split over `cores` replicas.
std::vector<std::vector<float>> synchronized_weights(int cores, int64_t batch_size, bool masked) {
  distribute::TPUStrategy strategy({.num_cores = cores});
  const auto scope = strategy.scope();
  std::vector<LayerHandle<Layer>> parts = {
      LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2, 2}}),
      layers::Dense({.units = 2, .kernel_initializer = initializers::constant(0.3)}),
      BatchNormalization({.momentum = 0.5, .synchronized = true}), layers::Flatten({}),
      layers::Dense({.units = 1, .kernel_initializer = initializers::constant(0.2)})};
  if (masked) parts.insert(parts.begin() + 1, layers::Masking({}));
  const Sequential model({.layers = parts});
  model->compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = Tensor::from<float>(
      {.1F, 10, .3F, -1, 0, 0, .7F, 3, 2, 2, 8, .9F, 4, 4, 1, 1, 6, 6, 7, 3, 9, 2, .5F, .25F},
      {6, 2, 2});
  const Tensor y = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6, 1});
  model->fit(x, y, {.epochs = 3, .batch_size = batch_size, .shuffle = false});
  std::vector<std::vector<float>> out;
  for (const Variable& v : model->weights()) out.push_back(v.read().to_vector<float>());
  return out;
}

TEST(BatchNormalizationTest, SynchronizedReplicasTrainLikeOne) {
  for (const bool masked : {false, true}) {
    for (const int64_t batch_size : {6, 4, 2}) {  // two rows give two of four replicas nothing
      const auto one = synchronized_weights(1, batch_size, masked);
      for (const int cores : {2, 4}) {
        const auto many = synchronized_weights(cores, batch_size, masked);
        ASSERT_EQ(many.size(), one.size());
        for (size_t i = 0; i < one.size(); ++i) {
          for (size_t k = 0; k < one[i].size(); ++k) {
            EXPECT_NEAR(many[i][k], one[i][k], 2e-5)
                << cores << " replicas, batch " << batch_size << ", weight " << i;
          }
        }
      }
    }
  }
}

TEST(BatchNormalizationTest, RenormKeepsItsAveragesAndWritesItsClipping) {
  const BatchNormalization layer({.momentum = 0.5,
                                  .epsilon = 0,
                                  .renorm = true,
                                  .renorm_clipping = RenormClipping{.rmax = 2}});
  const Tensor x = Tensor::from<float>({1, 5}, {2, 1});
  // Mean 3 and deviation 2 against averages of 0 and 1: r = 2 and d = 3.
  EXPECT_EQ(layer(x, {.training = true}).to_vector<float>(), (Values{-2 + 3, 2 + 3}));
  std::vector<std::string> names;
  for (const Variable& v : layer->weights()) names.push_back(v.name());
  EXPECT_EQ(names, (std::vector<std::string>{"gamma", "beta", "moving_mean", "moving_variance",
                                             "moving_stddev", "renorm_mean", "renorm_stddev"}));
  EXPECT_EQ(layer->moving_variance().read().item<float>(), 2.25F);
  EXPECT_EQ(to_json(layer->get_config()["renorm_clipping"]), R"({"rmax": 2.0})");
}

TEST(BatchNormalizationTest, TheAxisMayBeAny) {
  const BatchNormalization layer({.axis = {1}, .epsilon = 0, .center = false, .scale = false});
  const Tensor x = Tensor::from<float>({1, 3, 10, 30}, {1, 2, 2});
  EXPECT_EQ(layer(x, {.training = true}).to_vector<float>(), (Values{-1, 1, -1, 1}));
  EXPECT_TRUE(layer->trainable_variables().empty());
}

TEST(BatchNormalizationTest, SymbolicTrainingChangesNoAverage) {
  const BatchNormalization layer({.momentum = 0});
  EXPECT_EQ(layer(layers::input({.shape = {2}}), {.training = true}).shape(), Shape({kUnknown, 2}));
  EXPECT_EQ(layer->moving_variance().read().to_vector<float>(), (Values{1, 1}));
}

TEST(BatchNormalizationTest, StatisticsIgnoreMaskedSteps) {
  const BatchNormalization layer({.momentum = 0, .epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 3, 1000, 1000}, {2, 2, 1});
  const Tensor mask = Tensor::from<bool>({true, true, false, false}, {2, 2});
  const Tensor y = layer(x.with_mask(mask), {.training = true});
  EXPECT_NEAR(y.data<float>()[0], -1, 1e-5);
  EXPECT_NEAR(y.data<float>()[1], 1, 1e-5);
  EXPECT_NEAR(y.data<float>()[2], 998, 1e-2);
  EXPECT_TRUE(y.mask());
  EXPECT_NEAR(layer->moving_mean().read().item<float>(), 2, 1e-5);
  EXPECT_NEAR(layer->moving_variance().read().item<float>(), 1, 1e-5);
  EXPECT_TRUE(layer(x.with_mask(mask)).mask());
}

TEST(BatchNormalizationTest, AFullMaskGivesNoNaN) {
  const BatchNormalization layer({.momentum = 0});
  const Tensor x = Tensor::zeros({1, 2, 1}).with_mask(Tensor::full<bool>({1, 2}, false));
  EXPECT_EQ(layer(x, {.training = true}).to_vector<float>(), (Values{0, 0}));
  EXPECT_EQ(layer->moving_variance().read().item<float>(), 0);
}

TEST(BatchNormalizationTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({2, 2, 2});
  for (const int axis : {-1, 1}) {
    const BatchNormalization layer({.axis = axis, .dtype = DType::kFloat64});
    testing_support::expect_gradients_are_slopes(layer, x, true);
    testing_support::expect_gradients_are_slopes(layer, x);
  }
}

TEST(BatchNormalizationTest, AcceptsRegularizersAndConstraints) {
  const BatchNormalization layer({.beta_regularizer = "l1",
                                  .gamma_regularizer = "l2",
                                  .beta_constraint = "unit_norm",
                                  .gamma_constraint = "non_neg"});
  layer(batch());
  ASSERT_EQ(layer->losses().size(), 2u);
  EXPECT_NEAR(layer->losses()[0].item<float>(), 0.02, 1e-7);
  for (const Variable& v : layer->trainable_variables()) EXPECT_TRUE(v.constraint()) << v.name();
}

TEST(BatchNormalizationTest, RejectsInvalidOptionsAndInputs) {
  const Tensor masked = Tensor::zeros({1, 2, 3}).with_mask(Tensor::full<bool>({1}, true));
  EXPECT_THROW(BatchNormalization({})(masked, {.training = true}), ValueError);
  EXPECT_THROW(BatchNormalization({.axis = {1, 2}}), ValueError);
  EXPECT_THROW(BatchNormalization({.momentum = 1.5}), ValueError);
  EXPECT_THROW(BatchNormalization({.epsilon = -1}), ValueError);
  EXPECT_THROW(BatchNormalization({.renorm_momentum = 2}), ValueError);
  const RenormClipping crossed = {.rmax = 1, .rmin = 2}, negative = {.dmax = -1};
  EXPECT_THROW(BatchNormalization({.renorm_clipping = crossed}), ValueError);
  EXPECT_THROW(BatchNormalization({.renorm_clipping = negative}), ValueError);
  RenormClipping read;
  EXPECT_THROW(decode(Config::dict({{"rmean", 1}}), read), ValueError);
  EXPECT_THROW(BatchNormalization({.axis = 2})(batch()), ValueError);
  EXPECT_THROW(BatchNormalization({})(layers::input({.shape = {kUnknown}})), ValueError);
}

TEST(BatchNormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "BatchNormalization",
                         .config = "{}",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3}),
                         .trainable_weights = 2,
                         .weights = 4});
}

}  // namespace keel::batch_normalization_test

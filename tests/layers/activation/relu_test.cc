#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/activation/activation.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/layer_contract.h"
#include "tests/support/temporary_folder.h"

namespace keel::relu_test {

using layers::ReLU;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::TemporaryFolder;

const std::vector<float> kX = {-4, -1, 0, 0.5, 1, 2, 5, 6, 8};

struct Result {
  std::vector<float> y, gradient;
};

Result apply(const ReLU& relu) {
  const Tensor x = Tensor::from(kX, {9});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = relu(x);
  const Tensor gradient = tape.input_gradient(ops::sum(y), {x})[0].dense();
  return {y.to_vector<float>(), gradient.to_vector<float>()};
}

TEST(ReLUTest, IsReluByDefault) {
  const Result r = apply(ReLU({}));
  EXPECT_EQ(r.y, (std::vector<float>{0, 0, 0, 0.5, 1, 2, 5, 6, 8}));
  EXPECT_EQ(r.gradient, (std::vector<float>{0, 0, 0, 1, 1, 1, 1, 1, 1}));
}

TEST(ReLUTest, MaxValueIsTheLimit) {
  const Result r = apply(ReLU({.max_value = 5}));
  EXPECT_EQ(r.y, (std::vector<float>{0, 0, 0, 0.5, 1, 2, 5, 5, 5}));
  EXPECT_EQ(r.gradient, (std::vector<float>{0, 0, 0, 1, 1, 1, 1, 0, 0}));
}

TEST(ReLUTest, ALimitOfSixIsRelu6) {
  const Result r = apply(ReLU({.max_value = 6}));
  EXPECT_EQ(r.y, (std::vector<float>{0, 0, 0, 0.5, 1, 2, 5, 6, 6}));
  EXPECT_EQ(r.gradient, (std::vector<float>{0, 0, 0, 1, 1, 1, 1, 0, 0}));
}

TEST(ReLUTest, ALimitOfZeroGivesZeros) {
  EXPECT_EQ(apply(ReLU({.max_value = 0})).y, std::vector<float>(9, 0));
}

TEST(ReLUTest, NegativeSlopeIsLeakyRelu) {
  const Result r = apply(ReLU({.negative_slope = 0.25}));
  EXPECT_EQ(r.y, (std::vector<float>{-1, -0.25, 0, 0.5, 1, 2, 5, 6, 8}));
  EXPECT_EQ(r.gradient, (std::vector<float>{0.25, 0.25, 0.25, 1, 1, 1, 1, 1, 1}));
}

TEST(ReLUTest, ValuesUpToTheThresholdAreCut) {
  const Result r = apply(ReLU({.threshold = 1}));
  EXPECT_EQ(r.y, (std::vector<float>{0, 0, 0, 0, 0, 2, 5, 6, 8}));
  EXPECT_EQ(r.gradient, (std::vector<float>{0, 0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(ReLUTest, AllThreeTogether) {
  const Result r = apply(ReLU({.max_value = 6, .negative_slope = 0.5, .threshold = 1}));
  EXPECT_EQ(r.y, (std::vector<float>{-2.5, -1, -0.5, -0.25, 0, 2, 5, 6, 6}));
  EXPECT_EQ(r.gradient, (std::vector<float>{0.5, 0.5, 0.5, 0.5, 0, 1, 1, 1, 0}));
}

TEST(ReLUTest, CastsIntegersAndKeepsDoubles) {
  const ReLU relu({.threshold = 1});
  EXPECT_EQ(relu(Tensor::from<int32_t>({1, 3}, {2})).to_vector<float>(),
            (std::vector<float>{0, 3}));
  EXPECT_EQ(relu(Tensor::from<double>({1, 3}, {2})).to_vector<double>(),
            (std::vector<double>{0, 3}));
}

TEST(ReLUTest, PropagatesNaN) {
  const Tensor nan = Tensor::scalar<float>(NAN);
  EXPECT_TRUE(std::isnan(ReLU({.max_value = 6})(nan).item<float>()));
  const ReLU all({.max_value = 2, .negative_slope = 0.5, .threshold = 1});
  EXPECT_TRUE(std::isnan(all(nan).item<float>()));
  EXPECT_TRUE(std::isnan(ReLU({.threshold = 1})(nan).item<float>()));
}

TEST(ReLUTest, RejectsNegativeOptions) {
  EXPECT_THROW(ReLU({.max_value = -1}), ValueError);
  EXPECT_THROW(ReLU({.negative_slope = -0.1}), ValueError);
  EXPECT_THROW(ReLU({.threshold = -1}), ValueError);
}

LayerHandle<Layer> read(const char* config) {
  return layers::deserialize(
      Config::dict({{"class_name", "ReLU"}, {"config", parse_json(config)}}));
}

TEST(ReLUTest, ReadsConfigsOfKeras) {
  const auto keras3 = read(R"({"name": "r", "trainable": true,
      "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"},
                "registered_name": null},
      "max_value": null, "negative_slope": 0.0, "threshold": 0.0})");
  EXPECT_EQ(keras3(Tensor::full<float>({1, 1}, 9)).item<float>(), 9);
  const auto keras2 = read(R"({"name": "r", "trainable": true, "dtype": "float32",
      "batch_input_shape": [null, 1], "max_value": 6.0, "negative_slope": 0.0, "threshold": 0.0})");
  EXPECT_EQ(keras2(Tensor::full<float>({1, 1}, 9)).item<float>(), 6);
  EXPECT_NO_THROW(read(R"({"threshold": null})")) << "the default";
  EXPECT_THROW(read(R"({"threshold": "none"})"), TypeError);
}

TEST(ReLUTest, IsUnchangedInALoadedModel) {
  const TemporaryFolder folder;
  const Sequential model(
      {.layers = {make_layer<InputLayer>(InputLayer::Options{.batch_shape = {kUnknown, 9}}),
                  ReLU({.max_value = 5, .negative_slope = 0.5, .threshold = 1})}});
  save_model(model, folder / "relu.h5");
  const Tensor x = Tensor::from(kX, {1, 9});
  EXPECT_EQ(load_model(folder / "relu.h5")(x).to_vector<float>(), model(x).to_vector<float>());
}

TEST(ReLUTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "ReLU",
                         .config = R"({"max_value": 6.0, "threshold": 1.0})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::relu_test

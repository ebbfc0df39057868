#include <keel/layers/functional/sequential.h>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/layers/reshaping/reshaping.h>

#include "tests/support/layer_contract.h"

namespace keel::sequential_test {

using layers::Dense;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

LayerHandle<Layer> input_layer(Shape batch_shape) {
  return LayerHandle<InputLayer>(InputLayerOptions{.batch_shape = batch_shape});
}

TEST(SequentialTest, CallsItsLayersInOrder) {
  const Sequential model({.layers = {Dense({.units = 2, .kernel_initializer = "ones"}),
                                     Dense({.units = 1, .kernel_initializer = "ones"})}});
  EXPECT_EQ(model(Tensor::from<float>({1, 2}, {1, 2})).item<float>(), 6);
  EXPECT_EQ(model->layers().size(), 2u);
  EXPECT_EQ(model->input_spec()->shape, Shape({kUnknown, 2}));
}

TEST(SequentialTest, AnInputLayerBuildsAtOnceAndIsNotListed) {
  const Dense dense({.units = 3});
  const Sequential model({.layers = {input_layer({kUnknown, 2}), dense}});
  EXPECT_TRUE(dense->built());
  EXPECT_EQ(model->layers().size(), 1u);
  model->add(Dense({.units = 1}));
  EXPECT_EQ(model->count_params(), 9 + 4);
}

TEST(SequentialTest, IsALayerOfAGraph) {
  const Sequential model({.layers = {Dense({.units = 3})}});
  const Tensor y = model(layers::input({.shape = {2}}));
  EXPECT_EQ(y.shape(), Shape({kUnknown, 3}));
}

TEST(SequentialTest, ModelsRoundTripThroughTheirConfigs) {
  const Sequential model(
      {.layers = {input_layer({kUnknown, 2}), Dense({.units = 3}), layers::Dropout({.rate = 0.1})},
       .name = "mlp"});
  const Config config = model->get_config();
  const auto copy = SequentialModel::from_config(config);
  EXPECT_EQ(copy->get_config(), config);
  EXPECT_EQ(copy->count_params(), 9);
  model->set_trainable(false);
  EXPECT_TRUE(SequentialModel::from_config(model->get_config())->trainable_variables().empty());
}

TEST(SequentialTest, RejectsIncompatibleLayers) {
  const Sequential model({.layers = {Dense({.units = 1, .name = "a"})}});
  EXPECT_THROW(model->add(Dense({.units = 1, .name = "a"})), ValueError);
  EXPECT_THROW(model->add(input_layer({kUnknown, 2})), ValueError);
}

TEST(SequentialTest, AnIncompatibleLayerIsNotAdded) {
  const Sequential model(
      {.layers = {make_layer<InputLayer>(InputLayer::Options{.batch_shape = {kUnknown, 4}})}});
  EXPECT_THROW(model->add(layers::Reshape({.target_shape = {3}})), ValueError);
  EXPECT_TRUE(model->layers().empty());
}

class CountingLayer final : public Layer {
 public:
  explicit CountingLayer(int& calls) : Layer("CountingLayer"), calls_(calls) {}

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override {
    ++calls_;
    return inputs;
  }
  int& calls_;
};

TEST(SequentialTest, AddingALayerDoesNotCallTheLayersBeforeIt) {
  constexpr int kLayers = 200;
  int calls = 0;
  const Sequential model({.layers = {input_layer({kUnknown, 4})}});
  for (int i = 0; i < kLayers; ++i) model->add(make_layer<CountingLayer>(calls));
  const int of_one = calls / kLayers;
  EXPECT_LE(of_one, 2) << "calls of a layer";
  EXPECT_EQ(calls, of_one * kLayers);
  model->add(Dense({.units = 3}));
  EXPECT_EQ(model->count_params(), 4 * 3 + 3);
}

TEST(SequentialTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Sequential",
                         .config = R"({"name": "stack", "layers": [
    {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 3], "name": "stack_in"}},
    {"class_name": "Dense", "config": {"units": 2}}]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 2}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::sequential_test

// Tests layers/functional/clone_model.cc and internal/node_results.cc.
#include <keel/layers/functional/clone_model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/tensors.h"

namespace keel::clone_model_test {

using testing::ElementsAreArray;
using testing_support::counting;
using testing_support::values_of;
using testing_support::weights_of;

// Calls one layer twice and contains an op.
Functional graph() {
  const Tensor a = layers::input({.shape = {3}, .name = "a"});
  const Tensor b = layers::input({.shape = {3}, .name = "b"});
  const layers::Dense shared({.units = 2, .activation = "relu", .name = "shared"});
  const Tensor sum = shared(a) + shared(b);
  return Functional({.inputs = Tensors::dict({{"a", a}, {"b", b}}),
                     .outputs = layers::Dense({.units = 1, .name = "head"})(sum),
                     .name = "graph"});
}

Tensors batch() { return Tensors::dict({{"a", counting(2, 3)}, {"b", counting(2, 3)}}); }

void copy_weights(const Model& from, const Model& to) {
  const auto source = from.weights(), target = to.weights();
  ASSERT_EQ(source.size(), target.size());
  for (size_t i = 0; i < source.size(); ++i) target[i].assign(source[i].read());
}

TEST(CloneModelTest, GraphsKeepTheirStructureAndGetNewWeights) {
  const Functional model = graph();
  const ModelHandle clone = clone_model(model);
  EXPECT_EQ(clone->name(), "graph");
  EXPECT_EQ(clone->layers().size(), model->layers().size());
  EXPECT_EQ(clone->weights().size(), 4U) << "the shared layer is cloned once";
  EXPECT_FALSE(clone->get_layer("shared") == model->get_layer("shared"));
  EXPECT_NE(weights_of(*clone), weights_of(*model));
  copy_weights(*model, *clone);
  EXPECT_THAT(values_of(clone(batch())), ElementsAreArray(values_of(model(batch()))));
}

TEST(CloneModelTest, SequencesKeepTheirInput) {
  const Sequential model({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}),
                                     layers::Dense({.units = 2, .name = "one"})},
                          .name = "sequence"});
  const ModelHandle clone = clone_model(model);
  EXPECT_EQ(clone->class_name(), "Sequential");
  ASSERT_EQ(clone->weights().size(), 2U) << "it is built";
  copy_weights(*model, *clone);
  EXPECT_EQ(values_of(clone(Tensors(counting(2, 3)))), values_of(model(Tensors(counting(2, 3)))));
  const auto call = [](const LayerHandle<Layer>& layer, const Tensors& inputs,
                       const CallOptions& options) { return layer(inputs, options); };
  EXPECT_THROW(clone_model(model, {.call_function = call}), ValueError);
  const Sequential later({.layers = {layers::Dense({.units = 2})}});
  EXPECT_FALSE(clone_model(later)->built());
}

TEST(CloneModelTest, LayersMayBeReplaced) {
  const auto wider = [](const LayerHandle<Layer>& layer) -> LayerHandle<Layer> {
    if (layer->name() != "shared") return layer;
    return layers::Dense({.units = 2, .use_bias = false, .name = "new"});
  };
  const Functional model = graph();
  const ModelHandle clone = clone_model(model, {.clone_function = wider});
  EXPECT_EQ(clone->weights().size(), 3U);
  EXPECT_TRUE(clone->get_layer("head") == model->get_layer("head")) << "shared by both models";
  EXPECT_THROW(clone->get_layer("shared"), ValueError);
}

TEST(CloneModelTest, CallsMayAddLayers) {
  const auto with_dropout = [](const LayerHandle<Layer>& layer, const Tensors& inputs,
                               const CallOptions& options) -> Tensors {
    const Tensors out = layer(inputs, options);
    if (layer->name() != "head") return out;
    return layers::Dropout({.rate = 0.5, .name = "added"})(out);
  };
  const ModelHandle clone = clone_model(graph(), {.call_function = with_dropout});
  EXPECT_EQ(clone->get_layer("added")->class_name(), "Dropout");
}

TEST(CloneModelTest, InputsMayBeGiven) {
  const Functional model = graph();
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  const Tensor y = layers::input({.shape = {3}, .name = "y"});
  const ModelHandle clone =
      clone_model(model, {.input_tensors = Tensors::dict({{"a", x}, {"b", y}})});
  EXPECT_NO_THROW(clone->get_layer("x"));
  EXPECT_THROW(clone->get_layer("a"), ValueError);
  EXPECT_ANY_THROW(clone_model(model, {.input_tensors = Tensors(x)}));
  EXPECT_THROW(clone_model(model, {.input_tensors = batch()}), ValueError);
}

TEST(CloneModelTest, NestedModelsAreClonedAsAWholeOrLayerByLayer) {
  const Tensor x = layers::input({.shape = {3}});
  const Sequential inner({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}),
                                     layers::Dense({.units = 2, .name = "deep"})},
                          .name = "inner"});
  const Functional model({.inputs = x, .outputs = inner(x), .name = "outer"});
  std::vector<std::string> seen;
  const auto note = [&](const LayerHandle<Layer>& layer) {
    seen.push_back(layer->name());
    return layer;
  };
  clone_model(model, {.clone_function = note});
  EXPECT_EQ(seen, std::vector<std::string>{"inner"});
  seen.clear();
  const ModelHandle clone = clone_model(model, {.clone_function = note, .recursive = true});
  EXPECT_EQ(seen, std::vector<std::string>{"deep"});
  EXPECT_FALSE(clone->get_layer("inner") == model->get_layer("inner"));
}

class OwnModel final : public Model {
 public:
  OwnModel() : Model("OwnModel") {}

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }
};

TEST(CloneModelTest, OtherModelsAreMadeFromTheirConfigs) {
  const auto model = make_layer<OwnModel>();
  EXPECT_THROW(clone_model(model), NotImplementedError) << "it has no config";
  const auto same = [](const LayerHandle<Layer>& layer) { return layer; };
  EXPECT_THROW(clone_model(model, {.clone_function = same}), ValueError);
}

}  // namespace keel::clone_model_test

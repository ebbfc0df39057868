// Tests layers/internal/shared_layers.cc: layers that a model contains several times stay one layer
// in configs and files.
#include <keel/layers/internal/shared_layers.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/wrappers/wrappers.h>
#include <keel/savedmodel/model_json.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::shared_layers_test {

using testing::HasSubstr;
using testing::Not;
using testing_support::floats;
using testing_support::TemporaryFolder;

layers::Dense one_weight(const std::string& name) {
  return layers::Dense({.units = 1, .use_bias = false, .name = name});
}

// Returns tower(x_0) + tower(x_1) - tower(y), where the tower multiplies by one weight: it is used
// inside a wrapper, which is called first, and beside it.
Functional with_wrapper() {
  const layers::Dense tower = one_weight("tower");
  const Tensor x = layers::input({.shape = {2, 1}, .name = "x"});
  const Tensor y = layers::input({.shape = {1}, .name = "y"});
  const Tensor steps = layers::Flatten({})(layers::TimeDistributed({.layer = tower})(x));
  const Tensor sum =
      layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"})(steps);
  return Functional({.inputs = Tensors::list({x, y}),
                     .outputs = layers::Subtract({})(Tensors::list({sum, tower(y)}))});
}

// The same layer in two nested models and beside them.
Functional with_models() {
  const layers::Dense tower = one_weight("tower");
  const auto nested = [&](const std::string& name) {
    return Sequential(
        {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 1}}), tower}, .name = name});
  };
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  const Tensor y = layers::input({.shape = {1}, .name = "y"});
  const Tensor sum = layers::Add({})(Tensors::list({nested("a")(x), nested("b")(x)})).tensor();
  return Functional({.inputs = Tensors::list({x, y}),
                     .outputs = layers::Subtract({})(Tensors::list({sum, tower(y)}))});
}

// Sets all occurrences of the weight of the tower, and expects one.
void expect_shared(const ModelHandle& model, const Tensors& batch, float expected) {
  int towers = 0;
  for (const Variable& weight : model->weights()) {
    if (weight.path().find("tower") == std::string::npos) continue;
    ++towers;
    weight.assign(floats({3}, {1, 1}));
  }
  EXPECT_EQ(towers, 1);
  EXPECT_EQ(model(batch).tensor().item<float>(), expected);
}

TEST(SharedLayersTest, AreOneLayerAfterLoading) {
  const TemporaryFolder folder;
  const struct {
    Functional model;
    Tensors batch;
    float expected;
  } kCases[] = {
      {with_wrapper(), Tensors::list({floats({1, 2}, {1, 2, 1}), floats({5}, {1, 1})}), -6},
      {with_models(), Tensors::list({floats({1}, {1, 1}), floats({5}, {1, 1})}), -9}};
  for (const auto& [model, batch, expected] : kCases) {
    expect_shared(model, batch, expected);
    for (const char* name : {"m.keras", "m.h5"}) {
      save_model(model, folder / name);
      const ModelHandle loaded = load_model(folder / name);
      EXPECT_EQ(loaded(batch).tensor().item<float>(), expected) << name;
      expect_shared(loaded, batch, expected);
    }
    expect_shared(model_from_json(to_json(model)), batch, expected);
    expect_shared(FunctionalModel::from_config(model->get_config()), batch, expected);
  }
}

TEST(SharedLayersTest, OnlyTheyAreNumbered) {
  const std::string shared = to_json(layers::serialize(*with_wrapper()));
  EXPECT_THAT(shared, HasSubstr(kSharedObjectId));
  const Tensor x = layers::input({.shape = {1}});
  const layers::Dense twice = one_weight("twice");
  const Functional none({.inputs = x, .outputs = twice(twice(x))});
  EXPECT_THAT(to_json(layers::serialize(*none)), Not(HasSubstr(kSharedObjectId)));
}

TEST(SharedLayersTest, AnotherClassWithTheSameNumberIsAnotherLayer) {
  const Config config = parse_json(R"({"class_name": "Sequential", "config": {"layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 1]}},
    {"class_name": "ReLU", "config": {}, "shared_object_id": 7},
    {"class_name": "Flatten", "config": {}, "shared_object_id": 7},
    {"class_name": "ReLU", "config": {}, "shared_object_id": "7"}]}})");
  const LayerHandle<Layer> model = layers::deserialize(config);
  EXPECT_EQ(model(Tensors(floats({-1}, {1, 1}))).tensor().item<float>(), 0);
}

}  // namespace keel::shared_layers_test

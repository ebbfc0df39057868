#include <keel/layers/wrappers/wrapper.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::wrapper_test {

using layers::Dense;
using layers::Wrapper;
using testing::ElementsAre;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::message_of;
using Floats = std::vector<float>;

// Doubles its input, then calls its layer.
class Doubled final : public WrapperLayer {
 public:
  static constexpr char kClassName[] = "WrapperTest>Doubled";
  using Options = WrapperOptions;
  explicit Doubled(Options options) : WrapperLayer(kClassName, options) {}
  static std::shared_ptr<Layer> from_config(const Config& config) {
    return make_wrapper<Doubled>(config);
  }

 private:
  Tensors call(const Tensors& x, const CallContext&) override { return layer()(x.tensor() * 2); }
};

Dense summing() { return Dense({.units = 1, .kernel_initializer = "ones", .name = "sum"}); }

TEST(WrapperTest, CallsItsLayerAndOwnsItsWeights) {
  const Wrapper wrapper({.layer = summing(), .name = "outer"});
  const Tensor y = wrapper(Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({3, 7}));
  std::vector<std::string> paths;
  for (const Variable& weight : wrapper->weights()) paths.push_back(weight.path());
  EXPECT_THAT(paths, ElementsAre("outer/sum/kernel", "outer/sum/bias"));
}

TEST(WrapperTest, DerivedClassesChangeTheCallAndKeepTheConfig) {
  layer_registry().add<Doubled>();
  const auto wrapper = make_layer<Doubled>(WrapperOptions{.layer = summing()});
  const Tensor x = Tensor::from<float>({1, 2}, {1, 2});
  EXPECT_EQ(wrapper(x).to_vector<float>(), Floats({6}));
  const Config config = layers::serialize(*wrapper);
  EXPECT_EQ(config["config"]["layer"]["class_name"].string(), "Dense");
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(copy->class_name(), "WrapperTest>Doubled");
  EXPECT_EQ(copy(x).to_vector<float>(), Floats({6}));
}

TEST(WrapperTest, RequiresALayer) {
  EXPECT_THAT(message_of<ValueError>([] { Wrapper(WrapperOptions{}); }),
              testing::HasSubstr("Wrapper: layer is not set"));
  EXPECT_THROW(layers::deserialize(parse_json(R"({"class_name": "Wrapper", "config": {}})")),
               ValueError);
}

TEST(WrapperTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "Wrapper",
       .config = R"({"layer": {"class_name": "Dense", "config": {"units": 3}}, "name": "w"})",
       .inputs = float_spec({2, 5}),
       .output = float_spec({2, 3}),
       .trainable_weights = 2,
       .weights = 2});
}

}  // namespace keel::wrapper_test

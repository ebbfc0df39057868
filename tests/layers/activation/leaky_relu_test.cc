#include <gtest/gtest.h>

#include <keel/layers/activation/activation.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::leaky_relu_test {

using layers::LeakyReLU;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

TEST(LeakyReLUTest, HasASlopeBelowZero) {
  const Tensor x = Tensor::from<float>({-2, 0, 3}, {3});
  EXPECT_EQ(LeakyReLU({.negative_slope = 0.5})(x).to_vector<float>(), (Values{-1, 0, 3}));
  EXPECT_EQ(LeakyReLU({})->get_config()["negative_slope"].number(), 0.3);
}

TEST(LeakyReLUTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      LeakyReLU({.negative_slope = 0.25, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 4}));
}

TEST(LeakyReLUTest, CastsIntegersAndKeepsMasks) {
  const Tensor x = Tensor::from<int32_t>({-10, 4}, {1, 2});
  const Tensor y = LeakyReLU({})(x.with_mask(Tensor::full<bool>({1, 2}, true)));
  EXPECT_EQ(y.to_vector<float>(), (Values{-3, 4}));
  EXPECT_TRUE(y.mask());
}

TEST(LeakyReLUTest, ReadsTheNameThatKeras2HadForTheSlope) {
  const auto layer = layers::deserialize(
      parse_json(R"({"class_name": "LeakyReLU", "config": {"name": "l", "alpha": 0.5}})"));
  EXPECT_EQ(layer(Tensor::full<float>({1}, -1)).item<float>(), -0.5F);
}

TEST(LeakyReLUTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "LeakyReLU",
                         .config = R"({"negative_slope": 0.5})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::leaky_relu_test

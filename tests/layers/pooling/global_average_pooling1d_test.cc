#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/pooling/pooling.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::global_average_pooling1d_test {

using layers::GlobalAveragePooling1D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

Tensor sequence() { return Tensor::from<float>({1, 10, 3, 20, 5, 60}, {1, 3, 2}); }

TEST(GlobalAveragePooling1DTest, AveragesOverTheSteps) {
  EXPECT_EQ(GlobalAveragePooling1D({})(sequence()).to_vector<float>(), (Values{3, 30}));
  EXPECT_EQ(GlobalAveragePooling1D({.keepdims = true})(sequence()).shape(), Shape({1, 1, 2}));
  const Tensor y = GlobalAveragePooling1D({.data_format = "channels_first"})(
      Tensor::from<float>({1, 3, 5, 10, 20, 60}, {1, 2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Values{3, 30}));
  EXPECT_EQ(GlobalAveragePooling1D({})(layers::input({.shape = {kUnknown, 4}})).shape(),
            Shape({kUnknown, 4}));
}

TEST(GlobalAveragePooling1DTest, AveragesOverUnmaskedSteps) {
  const Tensor mask = Tensor::from<bool>({true, false, true}, {1, 3});
  const Tensor y = GlobalAveragePooling1D({})(sequence().with_mask(mask));
  EXPECT_EQ(y.to_vector<float>(), (Values{3, 35}));
  EXPECT_FALSE(y.mask());
  EXPECT_THROW(GlobalAveragePooling1D({})(sequence().with_mask(Tensor::full<bool>({1}, true))),
               ValueError);
}

TEST(GlobalAveragePooling1DTest, AFullMaskGivesNaN) {
  const Tensor mask = Tensor::full<bool>({1, 3}, false);
  EXPECT_TRUE(std::isnan(GlobalAveragePooling1D({})(sequence().with_mask(mask)).data<float>()[0]));
}

TEST(GlobalAveragePooling1DTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({2, 3, 2});
  const Tensor mask = Tensor::from<bool>({true, false, true, true, true, true}, {2, 3});
  const GlobalAveragePooling1D layer({.dtype = DType::kFloat64});
  testing_support::expect_gradients_are_slopes(layer, x);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = layer(x.with_mask(mask));
  const Tensor gradient = tape.input_gradient(ops::sum(y), {x})[0].dense();
  EXPECT_EQ(gradient.data<double>()[0], 0.5);
  EXPECT_EQ(gradient.data<double>()[2], 0);
  EXPECT_NEAR(gradient.data<double>()[6], 1.0 / 3, 1e-12);
}

TEST(GlobalAveragePooling1DTest, RejectsInvalidFormatsAndShapes) {
  EXPECT_THROW(GlobalAveragePooling1D({.data_format = "last"}), ValueError);
  EXPECT_THROW(GlobalAveragePooling1D({})(Tensor::zeros({1, 5})), ValueError);
}

TEST(GlobalAveragePooling1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GlobalAveragePooling1D",
                         .config = R"({"keepdims": true})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 1, 3})});
}

}  // namespace keel::global_average_pooling1d_test

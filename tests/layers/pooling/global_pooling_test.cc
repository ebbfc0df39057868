#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/pooling/pooling.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::global_pooling_test {

using layers::GlobalMaxPooling1D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

Tensor sequence() { return Tensor::from<float>({1, 60, 5, 20, 3, 10}, {1, 3, 2}); }

TEST(GlobalMaxPooling1DTest, ReturnsTheMaximumOverSteps) {
  EXPECT_EQ(GlobalMaxPooling1D({})(sequence()).to_vector<float>(), (Values{5, 60}));
  EXPECT_EQ(GlobalMaxPooling1D({.keepdims = true})(sequence()).shape(), Shape({1, 1, 2}));
  EXPECT_EQ(GlobalMaxPooling1D({.data_format = "channels_first"})(sequence()).to_vector<float>(),
            (Values{60, 20, 10}));
  EXPECT_EQ(GlobalMaxPooling1D({})(layers::input({.shape = {kUnknown, 4}})).shape(),
            Shape({kUnknown, 4}));
}

TEST(GlobalMaxPooling1DTest, IgnoresMasks) {
  const Tensor mask = Tensor::full<bool>({1, 3}, false);
  const Tensor y = GlobalMaxPooling1D({})(sequence().with_mask(mask));
  EXPECT_EQ(y.to_vector<float>(), (Values{5, 60}));
  EXPECT_FALSE(y.mask());
}

TEST(GlobalMaxPooling1DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(GlobalMaxPooling1D({.dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(GlobalMaxPooling1DTest, RejectsInvalidFormatsAndShapes) {
  EXPECT_THROW(GlobalMaxPooling1D({.data_format = "last"}), ValueError);
  EXPECT_THROW(GlobalMaxPooling1D({})(Tensor::zeros({1, 5})), ValueError);
}

TEST(GlobalPooling2DTest, PoolsAllPositions) {
  const Tensor x = Tensor::from<float>({1, 10, 2, 20, 3, 30, 6, 60}, {1, 2, 2, 2});
  EXPECT_EQ(layers::GlobalMaxPooling2D({})(x).to_vector<float>(), (Values{6, 60}));
  EXPECT_EQ(layers::GlobalAveragePooling2D({})(x).to_vector<float>(), (Values{3, 30}));
  const layers::GlobalAveragePooling2D first({.data_format = "channels_first"});
  EXPECT_EQ(first(x).to_vector<float>(), (Values{8.25, 24.75}));
  EXPECT_THROW(first(sequence()), ValueError);
}

TEST(GlobalPooling3DTest, KeepsDimensionsOnRequest) {
  const Tensor x = layers::input({.shape = {2, kUnknown, 3, 4}});
  EXPECT_EQ(layers::GlobalMaxPooling3D({.keepdims = true})(x).shape(),
            Shape({kUnknown, 1, 1, 1, 4}));
  EXPECT_EQ(layers::GlobalAveragePooling3D({.data_format = "channels_first", .keepdims = true})(x)
                .shape(),
            Shape({kUnknown, 2, 1, 1, 1}));
  testing_support::expect_gradients_are_slopes(
      layers::GlobalAveragePooling3D({.dtype = DType::kFloat64}),
      testing_support::distinct_doubles({1, 2, 2, 3, 2}));
}

TEST(GlobalMaxPooling1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GlobalAveragePooling2D",
                         .config = R"({"keepdims": true})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 1, 1, 3})});
  expect_layer_contract({.class_name = "GlobalAveragePooling3D",
                         .config = R"({"data_format": "channels_first"})",
                         .inputs = float_spec({2, 5, 4, 3, 2}),
                         .output = float_spec({2, 5})});
  expect_layer_contract({.class_name = "GlobalMaxPooling1D",
                         .config = R"({"data_format": "channels_first"})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 5})});
  expect_layer_contract({.class_name = "GlobalMaxPooling2D",
                         .config = "{}",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "GlobalMaxPooling3D",
                         .config = "{}",
                         .inputs = float_spec({2, 5, 4, 3, 2}),
                         .output = float_spec({2, 2})});
}

}  // namespace keel::global_pooling_test

#include <keel/layers/pooling/global_max_pooling1d.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::global_max_pooling1d_test {

using layers::GlobalMaxPooling1D;
using Values = std::vector<float>;

Tensor sequence() { return Tensor::from<float>({1, 60, 5, 20, 3, 10}, {1, 3, 2}); }

TEST(GlobalMaxPooling1DTest, TakesTheGreatestOfTheSteps) {
  EXPECT_EQ(GlobalMaxPooling1D({})(sequence()).to_vector<float>(), (Values{5, 60}));
  EXPECT_EQ(GlobalMaxPooling1D({.keepdims = true})(sequence()).shape(), Shape({1, 1, 2}));
  EXPECT_EQ(GlobalMaxPooling1D({.data_format = "channels_first"})(sequence()).to_vector<float>(),
            (Values{60, 20, 10}));
  EXPECT_EQ(GlobalMaxPooling1D({})(layers::input({.shape = {kUnknown, 4}})).shape(),
            Shape({kUnknown, 4}));
}

TEST(GlobalMaxPooling1DTest, TakesNoNoticeOfMasks) {
  const Tensor mask = Tensor::full<bool>({1, 3}, false);
  const Tensor y = GlobalMaxPooling1D({})(sequence().with_mask(mask));
  EXPECT_EQ(y.to_vector<float>(), (Values{5, 60}));
  EXPECT_FALSE(y.mask());
}

TEST(GlobalMaxPooling1DTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(GlobalMaxPooling1D({.dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(GlobalMaxPooling1DTest, RejectsBadFormatsAndShapes) {
  EXPECT_THROW(GlobalMaxPooling1D({.data_format = "last"}), ValueError);
  EXPECT_THROW(GlobalMaxPooling1D({})(Tensor::zeros({1, 5})), ValueError);
}

}  // namespace keel::global_max_pooling1d_test

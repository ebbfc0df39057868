#include <keel/layers/reshaping/up_sampling1d.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::up_sampling1d_test {

using layers::UpSampling1D;

TEST(UpSampling1DTest, RepeatsEachStep) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 2, 2});
  const Tensor y = UpSampling1D({})(x);
  EXPECT_EQ(y.shape(), Shape({1, 4, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(UpSampling1D({.size = 3})(layers::input({.shape = {2, 4}})).shape(),
            Shape({kUnknown, 6, 4}));
}

TEST(UpSampling1DTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(UpSampling1D({.size = 3}),
                                               testing_support::distinct_doubles({2, 2, 2}));
}

TEST(UpSampling1DTest, RejectsBadSizesAndShapes) {
  EXPECT_THROW(UpSampling1D({.size = 0}), ValueError);
  EXPECT_THROW(UpSampling1D({})(Tensor::zeros({1, 5})), ValueError);
}

}  // namespace keel::up_sampling1d_test

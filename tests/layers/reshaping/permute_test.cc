#include <keel/layers/reshaping/permute.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::permute_test {

using layers::Permute;

TEST(PermuteTest, OrdersTheDimensionsOfEachSample) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  const Tensor y = Permute({.dims = {2, 1}})(x);
  EXPECT_EQ(y.shape(), Shape({1, 3, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Permute({.dims = {3, 1, 2}})(layers::input({.shape = {2, kUnknown, 4}})).shape(),
            Shape({kUnknown, 4, 2, kUnknown}));
}

TEST(PermuteTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(Permute({.dims = {2, 1}}),
                                               testing_support::distinct_doubles({2, 2, 3}));
}

TEST(PermuteTest, RejectsWhatIsNoOrder) {
  EXPECT_THROW(Permute({}), ValueError);
  EXPECT_THROW(Permute({.dims = {0, 1}}), ValueError);
  EXPECT_THROW(Permute({.dims = {1, 1}}), ValueError);
  EXPECT_THROW(Permute({.dims = {2, 1}})(Tensor::zeros({2, 3})), ValueError);
}

}  // namespace keel::permute_test

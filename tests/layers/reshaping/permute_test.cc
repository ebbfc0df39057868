#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/reshaping/reshaping.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::permute_test {

using layers::Permute;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(PermuteTest, OrdersTheDimensionsOfEachSample) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  const Tensor y = Permute({.dims = {2, 1}})(x);
  EXPECT_EQ(y.shape(), Shape({1, 3, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Permute({.dims = {3, 1, 2}})(layers::input({.shape = {2, kUnknown, 4}})).shape(),
            Shape({kUnknown, 4, 2, kUnknown}));
}

TEST(PermuteTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(Permute({.dims = {2, 1}}),
                                               testing_support::distinct_doubles({2, 2, 3}));
}

TEST(PermuteTest, RejectsInvalidPermutations) {
  EXPECT_THROW(Permute({}), ValueError);
  EXPECT_THROW(Permute({.dims = {0, 1}}), ValueError);
  EXPECT_THROW(Permute({.dims = {1, 1}}), ValueError);
  EXPECT_THROW(Permute({.dims = {2, 1}})(Tensor::zeros({2, 3})), ValueError);
}

TEST(PermuteTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Permute",
                         .config = R"({"dims": [2, 1]})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 4, 3})});
}

}  // namespace keel::permute_test

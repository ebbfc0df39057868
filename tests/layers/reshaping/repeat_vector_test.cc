#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/reshaping/reshaping.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::repeat_vector_test {

using layers::RepeatVector;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(RepeatVectorTest, RepeatsEachVector) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  const Tensor y = RepeatVector({.n = 2})(x);
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(RepeatVector({.n = 3})(layers::input({.shape = {4}})).shape(), Shape({kUnknown, 3, 4}));
}

TEST(RepeatVectorTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(RepeatVector({.n = 3}),
                                               testing_support::distinct_doubles({2, 3}));
}

TEST(RepeatVectorTest, RejectsInvalidNumbersAndShapes) {
  EXPECT_THROW(RepeatVector({}), ValueError);
  EXPECT_THROW(RepeatVector({.n = 2})(Tensor::zeros({2, 3, 4})), ValueError);
}

TEST(RepeatVectorTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "RepeatVector",
                         .config = R"({"n": 4})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 4, 3})});
}

}  // namespace keel::repeat_vector_test

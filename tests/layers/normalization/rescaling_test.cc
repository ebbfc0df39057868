#include <gtest/gtest.h>

#include <keel/layers/normalization/normalization.h>

#include "tests/support/layer_contract.h"

namespace keel::rescaling_test {

using layers::Rescaling;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

TEST(RescalingTest, MultipliesThenAdds) {
  const Tensor y = Rescaling({.scale = 2, .offset = -1})(Tensor::from<int32_t>({0, 3}, {2}));
  EXPECT_EQ(y.to_vector<float>(), (Values{-1, 5}));
}

TEST(RescalingTest, AcceptsANumberForEachPositionOfTheLastAxis) {
  const Tensor y = Rescaling({.scale = {1, 10}})(Tensor::full<float>({2, 2}, 3));
  EXPECT_EQ(y.to_vector<float>(), (Values{3, 30, 3, 30}));
}

TEST(RescalingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Rescaling",
                         .config = R"({"scale": 0.5, "offset": [1, 2, 3]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::rescaling_test

#include <keel/layers/normalization/rescaling.h>

#include <gtest/gtest.h>

namespace keel::rescaling_test {

using layers::Rescaling;
using Values = std::vector<float>;

TEST(RescalingTest, MultipliesThenAdds) {
  const Tensor y = Rescaling({.scale = 2, .offset = -1})(Tensor::from<int32_t>({0, 3}, {2}));
  EXPECT_EQ(y.to_vector<float>(), (Values{-1, 5}));
}

TEST(RescalingTest, TakesANumberForEachPositionOfTheLastAxis) {
  const Tensor y = Rescaling({.scale = {1, 10}})(Tensor::full<float>({2, 2}, 3));
  EXPECT_EQ(y.to_vector<float>(), (Values{3, 30, 3, 30}));
}

}  // namespace keel::rescaling_test

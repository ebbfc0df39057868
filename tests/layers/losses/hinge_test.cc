#include <keel/layers/losses/hinge.h>

#include <gtest/gtest.h>

namespace keel::hinge_test {

TEST(HingeLossTest, MeasuresTheWayToTheMargin) {
  const Tensor y = Tensor::from<float>({-1, 1, 1}, {1, 3});
  const Tensor p = Tensor::from<float>({-2, .5f, -1}, {1, 3});
  EXPECT_FLOAT_EQ(losses::hinge(y, p).item<float>(), 2.5f / 3);
  EXPECT_FLOAT_EQ(losses::squared_hinge(y, p).item<float>(), 4.25f / 3);
}

TEST(HingeLossTest, LabelsOfZeroAndOneAreSigns) {
  const Tensor p = Tensor::from<float>({-2, .5f, -1}, {1, 3});
  const Tensor bits = Tensor::from<int32_t>({0, 1, 1}, {1, 3});
  EXPECT_FLOAT_EQ(losses::hinge(bits, p).item<float>(), 2.5f / 3);
  // One label with another value disables the conversion of all labels.
  const Tensor others = Tensor::from<float>({0, 1, 2}, {1, 3});
  EXPECT_FLOAT_EQ(losses::hinge(others, p).item<float>(), 4.5f / 3);
}

TEST(HingeLossTest, CategoricalComparesWithTheGreatestWrongClass) {
  const Tensor y = Tensor::from<float>({0, 1, 0}, {1, 3});
  const Tensor p = Tensor::from<float>({.3f, .9f, .2f}, {1, 3});
  EXPECT_FLOAT_EQ(losses::categorical_hinge(y, p).item<float>(), .4f);
  const Tensor sure = Tensor::from<float>({.3f, 9, .2f}, {1, 3});
  EXPECT_EQ(losses::categorical_hinge(y, sure).item<float>(), 0);
}

}  // namespace keel::hinge_test

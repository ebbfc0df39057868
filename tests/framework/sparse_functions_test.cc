#include <keel/framework/sparse_functions.h>

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace keel::sparse_functions_test {

using testing::ElementsAre;
using testing_support::floats;
using testing_support::ids;
using testing_support::strings;

TEST(ToDenseTest, ElementsWithoutAnEntryAreZero) {
  const Tensor y = to_dense({ids({0, 1, 1, 2}, {2, 2}), floats({5, 7}), {2, 3}});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 5, 0, 0, 0, 7));
  EXPECT_THAT(to_dense({ids({1}, {1, 1}), ids({4}), {3}}).to_vector<int64_t>(),
              ElementsAre(0, 4, 0));
  EXPECT_THAT(to_dense({ids({1}, {1, 1}), strings({"a"}), {2}}).to_vector<std::string>(),
              ElementsAre("", "a"));
  const Tensor none = Tensor::zeros({0}, DType::kFloat32);
  EXPECT_THAT(to_dense({Tensor::zeros({0, 1}, DType::kInt64), none, {2}}).to_vector<float>(),
              ElementsAre(0, 0));
}

TEST(ToDenseTest, EntriesOfOneElementAreAdded) {
  EXPECT_THAT(to_dense({ids({1, 1}, {2, 1}), floats({5, 7}), {2}}).to_vector<float>(),
              ElementsAre(0, 12));
}

TEST(ToDenseTest, IndicesOutOfRangeAreErrors) {
  EXPECT_THROW(to_dense({ids({2}, {1, 1}), floats({5}), {2}}), ValueError);
}

TEST(ToDenseTest, SumsOfIntegersWrapAround) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(to_dense({ids({1, 1}, {2, 1}), ids({kLargest, 1}), {2}}).to_vector<int64_t>(),
              ElementsAre(0, std::numeric_limits<int64_t>::min()));
}

}  // namespace keel::sparse_functions_test

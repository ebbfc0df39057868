#include <keel/layers/utils/datasets.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::datasets_test {

using data::Dataset;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using testing_support::floats;
using testing_support::ids;
using testing_support::message_of;
using utils::split_dataset;
using utils::SplitDatasetOptions;
using utils::timeseries_dataset_from_array;
using utils::TimeseriesOptions;
using Numbers = std::vector<int64_t>;

Tensor range(int64_t n) {
  Numbers out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = i;
  return ids(out);
}

Numbers numbers_of(const Dataset& dataset) {
  Numbers out;
  for (const Tensors& element : dataset) {
    const Tensor& x = element.is_leaf() ? element.leaf().tensor() : element[0].leaf().tensor();
    const Numbers values = x.to_vector<int64_t>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

TEST(SplitDatasetTest, PartsAreTheFirstAndTheLastElements) {
  const Dataset all = Dataset::from_tensor_slices(range(10));
  const auto [left, right] = split_dataset(all, {.left_size = 7});
  EXPECT_THAT(numbers_of(left), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(numbers_of(right), ElementsAre(7, 8, 9));
  EXPECT_EQ(left.cardinality(), 7);
  EXPECT_EQ(right.cardinality(), 3);
  const auto ends = split_dataset(range(10), {.left_size = 2, .right_size = 3});
  EXPECT_THAT(numbers_of(ends.first), ElementsAre(0, 1));
  EXPECT_THAT(numbers_of(ends.second), ElementsAre(7, 8, 9));
}

TEST(SplitDatasetTest, FractionsAreRounded) {
  const auto [left, right] = split_dataset(range(10), {.left_size = 0.77});
  EXPECT_EQ(left.cardinality(), 8);
  EXPECT_EQ(right.cardinality(), 2);
  // Python rounds 2.5 to 2.
  EXPECT_EQ(split_dataset(range(10), {.right_size = 0.25}).second.cardinality(), 2);
}

TEST(SplitDatasetTest, UnknownLengthsAreCounted) {
  const Dataset some = Dataset::from_tensor_slices(range(10)).filter(
      [](const Tensors& x) -> bool { return x.tensor().item<int64_t>() % 2 == 0; });
  const auto [left, right] = split_dataset(some, {.right_size = 0.4});
  EXPECT_THAT(numbers_of(left), ElementsAre(0, 2, 4));
  EXPECT_THAT(numbers_of(right), ElementsAre(6, 8));
}

TEST(SplitDatasetTest, ShufflesBeforeTheSplit) {
  const SplitDatasetOptions options = {.left_size = 15, .shuffle = true, .seed = 3};
  const auto [left, right] = split_dataset(range(20), options);
  Numbers all = numbers_of(left);
  EXPECT_EQ(all.size(), 15U);
  EXPECT_FALSE(std::ranges::is_sorted(all));
  EXPECT_EQ(numbers_of(left), all) << "the order of each iteration is the same";
  EXPECT_EQ(numbers_of(split_dataset(range(20), options).first), all);
  const Numbers others = numbers_of(right);
  all.insert(all.end(), others.begin(), others.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, numbers_of(Dataset::from_tensor_slices(range(20))));
}

TEST(SplitDatasetTest, RejectsInvalidSizes) {
  const auto rejected = [](const SplitDatasetOptions& options) {
    return message_of<ValueError>([&] { split_dataset(range(4), options); });
  };
  EXPECT_THAT(rejected({}), HasSubstr("set left_size, right_size or both"));
  EXPECT_THAT(rejected({.left_size = 4}), HasSubstr("positive and less than 4"));
  EXPECT_THAT(rejected({.left_size = 0}), HasSubstr("left_size must be positive"));
  EXPECT_THAT(rejected({.right_size = 1.0}), HasSubstr("right_size must be in (0, 1)"));
  EXPECT_THAT(rejected({.left_size = 0.1}), HasSubstr("the left part gets none"));
  EXPECT_THAT(rejected({.left_size = 3, .right_size = 2}), HasSubstr("exceed the dataset"));
  EXPECT_THAT(message_of<ValueError>([] {
                split_dataset(Dataset::from_tensor_slices(range(4)).repeat(), {.left_size = 1});
              }),
              HasSubstr("infinite"));
}

// The first example of Keras's documentation: windows of the steps 0, 2, ..., 18; 3, 5, ..., 21.
TEST(TimeseriesTest, WindowsAreStridedAndSampled) {
  const Dataset windows = timeseries_dataset_from_array(
      range(100), {}, {.sequence_length = 10, .sequence_stride = 3, .sampling_rate = 2});
  EXPECT_EQ(windows.cardinality(), 1);
  const Tensor batch = (*windows.begin()).tensor();
  EXPECT_EQ(batch.shape(), Shape({28, 10}));
  const Numbers values = batch.to_vector<int64_t>();
  EXPECT_THAT(Numbers(values.begin(), values.begin() + 10),
              ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18));
  EXPECT_THAT(Numbers(values.begin() + 10, values.begin() + 13), ElementsAre(3, 5, 7));
  EXPECT_THAT(Numbers(values.end() - 2, values.end()), ElementsAre(97, 99));
}

TEST(TimeseriesTest, TargetsBelongToTheFirstStepOfAWindow) {
  const Tensor data = floats({0, 1, 10, 11, 20, 21, 30, 31, 40, 41}, {5, 2});
  const Dataset windows = timeseries_dataset_from_array(data, floats({.5, 1.5, 2.5, 3.5, 4.5}),
                                                        {.sequence_length = 2, .batch_size = 3});
  auto it = windows.iterator();
  const Tensors first = *it->next();
  EXPECT_EQ(first[0].tensor().shape(), Shape({3, 2, 2}));
  EXPECT_THAT(first[1].tensor().to_vector<float>(), ElementsAre(.5, 1.5, 2.5));
  const Tensors last = *it->next();
  EXPECT_THAT(last[0].tensor().to_vector<float>(), ElementsAre(30, 31, 40, 41));
  EXPECT_THAT(last[1].tensor().to_vector<float>(), ElementsAre(3.5));
  EXPECT_FALSE(it->next());
}

TEST(TimeseriesTest, WindowsWithoutTargetsAreDropped) {
  const Dataset windows =
      timeseries_dataset_from_array(range(10), floats({1, 2}), {.sequence_length = 3});
  EXPECT_THAT(numbers_of(windows), ElementsAre(0, 1, 2, 1, 2, 3));
}

TEST(TimeseriesTest, StartAndEndLimitTheData) {
  const Dataset windows = timeseries_dataset_from_array(
      range(10), range(10),
      {.sequence_length = 2, .batch_size = {}, .start_index = 3, .end_index = 6});
  EXPECT_THAT(numbers_of(windows), ElementsAre(3, 4, 4, 5));
  Numbers targets;
  for (const Tensors& element : windows) targets.push_back(element[1].tensor().item<int64_t>());
  EXPECT_THAT(targets, ElementsAre(3, 4));
}

TEST(TimeseriesTest, ShufflingPermutesTheWindows) {
  const auto windows = [] {
    return timeseries_dataset_from_array(range(50), {},
                                         {.sequence_length = 1, .shuffle = true, .seed = 5});
  };
  Numbers values = numbers_of(windows());
  EXPECT_EQ(numbers_of(windows()), values);
  EXPECT_FALSE(std::ranges::is_sorted(values));
  std::ranges::sort(values);
  EXPECT_EQ(values, range(50).to_vector<int64_t>());
}

TEST(TimeseriesTest, RejectsInvalidOptions) {
  const auto rejected = [](const TimeseriesOptions& options) {
    return message_of<ValueError>([&] { timeseries_dataset_from_array(range(4), {}, options); });
  };
  EXPECT_THAT(rejected({}), HasSubstr("sequence_length must be positive"));
  EXPECT_THAT(rejected({.sequence_length = 1, .sequence_stride = 0}), HasSubstr("sequence_stride"));
  EXPECT_THAT(rejected({.sequence_length = 1, .sampling_rate = 4}), HasSubstr("less than 4"));
  EXPECT_THAT(rejected({.sequence_length = 1, .batch_size = 0}), HasSubstr("batch_size"));
  EXPECT_THAT(rejected({.sequence_length = 1, .start_index = 4}), HasSubstr("start_index"));
  EXPECT_THAT(rejected({.sequence_length = 1, .end_index = 5}), HasSubstr("end_index"));
}

TEST(TimeseriesTest, LongSequencesHaveNoWindows) {
  constexpr int64_t kLong = int64_t{1} << 62;
  const Dataset none = timeseries_dataset_from_array(
      range(4), {}, {.sequence_length = kLong, .sampling_rate = 3, .batch_size = {}});
  EXPECT_THAT(numbers_of(none), testing::IsEmpty());
}

}  // namespace keel::datasets_test

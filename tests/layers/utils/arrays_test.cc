#include <keel/layers/utils/arrays.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::arrays_test {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing_support::floats;
using testing_support::ids;
using testing_support::message_of;
using testing_support::strings;
using utils::normalize;
using utils::pad_sequences;
using utils::to_categorical;
using Lists = std::vector<std::vector<int64_t>>;

// The example of Keras's documentation.
TEST(ToCategoricalTest, ClassesBecomeUnitVectors) {
  const Tensor y = to_categorical(ids({0, 1, 2, 3}), 4);
  EXPECT_EQ(y.spec(), (TensorSpec{.shape = {4, 4}}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1));
}

TEST(ToCategoricalTest, TheLastDimensionOfOneIsReplaced) {
  EXPECT_EQ(to_categorical(ids({0, 2}, {2, 1})).shape(), Shape({2, 3}));
  EXPECT_EQ(to_categorical(ids({0, 2, 1, 1}, {2, 2})).shape(), Shape({2, 2, 3}));
  EXPECT_EQ(to_categorical(ids({1}, {1})).shape(), Shape({1, 2}));
  EXPECT_THAT(to_categorical(Tensor::scalar<float>(1)).to_vector<float>(), ElementsAre(0, 1));
}

TEST(ToCategoricalTest, RejectsClassesOutOfRange) {
  EXPECT_THAT(message_of<ValueError>([] { to_categorical(ids({0, 3}), 3); }),
              HasSubstr("in [0, 3), received 3"));
  EXPECT_THROW(to_categorical(ids({-1})), ValueError);
  EXPECT_THROW(to_categorical(ids({})), ValueError);
  EXPECT_EQ(to_categorical(ids({}), 2).shape(), Shape({0, 2}));
}

TEST(NormalizeTest, VectorsHaveLengthOne) {
  const Tensor x = floats({3, 4, 0, 0}, {2, 2});
  EXPECT_THAT(normalize(x).to_vector<float>(), ElementsAre(0.6F, 0.8F, 0, 0));
  EXPECT_THAT(normalize(x, 0).to_vector<float>(), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(normalize(floats({3, 4, 4, 3}, {2, 1, 2}), 0).to_vector<float>(),
              ElementsAre(0.6F, 0.8F, 0.8F, 0.6F));
}

TEST(NormalizeTest, NormsMayHaveAnyOrder) {
  const Tensor x = floats({-1, 0, 3, -4});
  EXPECT_THAT(normalize(x, -1, 1).to_vector<float>(), ElementsAre(-0.125F, 0, 0.375F, -0.5F));
  EXPECT_THAT(normalize(x, -1, INFINITY).to_vector<float>(), ElementsAre(-0.25F, 0, 0.75F, -1));
  EXPECT_THAT(normalize(x, -1, 0).to_vector<float>(),
              ElementsAre(FloatEq(-1 / 3.0F), 0, 1, FloatEq(-4 / 3.0F)));
  const double cube_root = std::cbrt(1 + 27 + 64);
  EXPECT_FLOAT_EQ(normalize(x, -1, 3).to_vector<float>()[2], static_cast<float>(3 / cube_root));
  EXPECT_THAT(normalize(floats({2, 4}), -1, -INFINITY).to_vector<float>(), ElementsAre(1, 2));
}

TEST(NormalizeTest, IntegersBecomeFloatsAndDoublesStay) {
  EXPECT_EQ(normalize(ids({3, 4})).to_vector<float>(), (std::vector<float>{0.6F, 0.8F}));
  EXPECT_EQ(normalize(Tensor::from<double>({3, 4}, {2})).to_vector<double>(),
            (std::vector<double>{0.6, 0.8}));
  EXPECT_THROW(normalize(ids({1}), 1), ValueError);
}

// The examples of Keras's documentation.
TEST(PadSequencesTest, ShortSequencesArePaddedAndLongOnesCut) {
  const Lists sequence = {{1}, {2, 3}, {4, 5, 6}};
  const Tensor padded = pad_sequences(sequence);
  EXPECT_EQ(padded.spec(), (TensorSpec{.shape = {3, 3}, .dtype = DType::kInt32}));
  EXPECT_THAT(padded.to_vector<int32_t>(), ElementsAre(0, 0, 1, 0, 2, 3, 4, 5, 6));
  EXPECT_THAT(pad_sequences(sequence, {.value = -1.0}).to_vector<int32_t>(),
              ElementsAre(-1, -1, 1, -1, 2, 3, 4, 5, 6));
  EXPECT_THAT(pad_sequences(sequence, {.padding = "post"}).to_vector<int32_t>(),
              ElementsAre(1, 0, 0, 2, 3, 0, 4, 5, 6));
  EXPECT_THAT(pad_sequences(sequence, {.maxlen = 2}).to_vector<int32_t>(),
              ElementsAre(0, 1, 2, 3, 5, 6));
  EXPECT_THAT(pad_sequences(sequence, {.maxlen = 2, .truncating = "post"}).to_vector<int32_t>(),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(PadSequencesTest, StepsMayBeVectors) {
  const RaggedTensor steps{floats({1, 2, 3, 4, 5, 6}, {3, 2}), ids({0, 1, 1, 3})};
  const Tensor y = pad_sequences(steps, {.dtype = DType::kFloat32, .value = 0.5});
  EXPECT_EQ(y.shape(), Shape({3, 2, 2}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(.5, .5, 1, 2, .5, .5, .5, .5, 3, 4, 5, 6));
}

TEST(PadSequencesTest, StringsArePaddedByStrings) {
  const std::vector<std::vector<std::string>> words = {{"a", "b"}, {"c"}};
  EXPECT_THAT(
      pad_sequences(words, {.dtype = DType::kString, .value = "<pad>"}).to_vector<std::string>(),
      ElementsAre("a", "b", "<pad>", "c"));
  EXPECT_THAT(pad_sequences(words, {.dtype = DType::kString}).to_vector<std::string>(),
              ElementsAre("a", "b", "", "c"));
  EXPECT_THROW(pad_sequences(words), TypeError);
  EXPECT_THROW(pad_sequences(Lists{{1}}, {.value = "x"}), TypeError);
}

TEST(PadSequencesTest, RejectsInvalidOptions) {
  EXPECT_THROW(pad_sequences(Lists{{1}}, {.padding = "left"}), ValueError);
  EXPECT_THROW(pad_sequences(Lists{{1}}, {.truncating = "left"}), ValueError);
  EXPECT_THROW(pad_sequences(Lists{{1}}, {.maxlen = -1}), ValueError);
  EXPECT_EQ(pad_sequences(Lists{}).shape(), Shape({0, 0}));
  EXPECT_EQ(pad_sequences(Lists{{1}, {2}}, {.maxlen = 0}).shape(), Shape({2, 0}));
}

TEST(UtilsTest, RandomSeedsCanBeSet) {
  utils::set_random_seed(7);
  const auto first = next_random_stream().bits(0);
  utils::set_random_seed(7);
  EXPECT_EQ(next_random_stream().bits(0), first);
  utils::set_random_seed(0);
}

TEST(UtilsTest, EmptyArraysAndExtremeNumbersAreHandled) {
  EXPECT_EQ(normalize(Tensor::zeros({2, 3, 0}), 1).shape(), Shape({2, 3, 0}));
  EXPECT_THROW(to_categorical(ids({std::numeric_limits<int64_t>::max()})), ValueError);
  EXPECT_THROW(pad_sequences(Lists{{1}}, {.value = 1e10}), ValueError);
  EXPECT_THROW(pad_sequences(Lists{{1}}, {.value = NAN}), ValueError);
}

}  // namespace keel::arrays_test

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/preprocessing/hashing.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::hashed_crossing_test {

using layers::HashedCrossing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::ids;
using testing_support::int_spec;
using testing_support::message_of;
using testing_support::string_spec;
using testing_support::strings;

Tensors features(const Shape& shape = {5}) {
  return Tensors::list(
      {strings({"A", "B", "A", "B", "A"}).reshaped(shape), ids({101, 101, 101, 102, 102}, shape)});
}

// Expected bins from Keras's documentation.
TEST(HashedCrossingTest, BinsMatchKeras) {
  const Tensor bins = HashedCrossing({.num_bins = 5})(features()).tensor();
  EXPECT_THAT(bins.to_vector<int64_t>(), ElementsAre(1, 4, 1, 1, 3));
  const Tensor column = HashedCrossing({.num_bins = 5})(features({5, 1})).tensor();
  EXPECT_EQ(column.shape(), Shape({5, 1}));
  EXPECT_THAT(column.to_vector<int64_t>(), ElementsAre(1, 4, 1, 1, 3));
}

TEST(HashedCrossingTest, ScalarsHaveOneBin) {
  const Tensors pair =
      Tensors::list({Tensor::scalar<std::string>("B"), Tensor::scalar<int32_t>(101)});
  EXPECT_EQ(HashedCrossing({.num_bins = 5})(pair).tensor().item<int64_t>(), 4);
  const Tensor encoded = HashedCrossing({.num_bins = 5, .output_mode = "one_hot"})(pair).tensor();
  EXPECT_THAT(encoded.to_vector<float>(), ElementsAre(0, 0, 0, 0, 1));
}

TEST(HashedCrossingTest, TheOrderOfTheFeaturesMatters) {
  const Tensor a = strings({"A", "B"}), b = strings({"u", "v"});
  const HashedCrossing crossing({.num_bins = 1000});
  EXPECT_NE(crossing(Tensors::list({a, b})).tensor().to_vector<int64_t>(),
            crossing(Tensors::list({b, a})).tensor().to_vector<int64_t>());
}

TEST(HashedCrossingTest, SparseEncodingsHaveOneEntryPerSample) {
  const HashedCrossing crossing({.num_bins = 5, .output_mode = "one_hot", .sparse = true});
  const SparseTensor y = crossing(features()).leaf().sparse();
  EXPECT_EQ(y.dense_shape, Shape({5, 5}));
  EXPECT_THAT(y.indices.to_vector<int64_t>(), ElementsAre(0, 1, 1, 4, 2, 1, 3, 1, 4, 3));
  EXPECT_THAT(y.values.to_vector<float>(), ElementsAre(1, 1, 1, 1, 1));
}

TEST(HashedCrossingTest, SymbolicSpecsFollowTheInputs) {
  const Tensor a = layers::input({.shape = {1}, .dtype = DType::kString});
  const Tensor b = layers::input({.shape = {1}, .dtype = DType::kInt64});
  const Tensors pair = Tensors::list({a, b});
  EXPECT_EQ(HashedCrossing({.num_bins = 5})(pair).leaf().spec(),
            (TensorSpec{.shape = {kUnknown, 1}, .dtype = DType::kInt64}));
  EXPECT_EQ(
      HashedCrossing({.num_bins = 5, .output_mode = "one_hot", .sparse = true})(pair).leaf().spec(),
      (TensorSpec{.shape = {kUnknown, 5}, .layout = Layout::kSparse}));
}

// Keras accepts no other dtype for bins.
TEST(HashedCrossingTest, ConfigsHaveTheDtypeOfTheBins) {
  EXPECT_EQ(HashedCrossing({.num_bins = 3})->get_config()["dtype"], Config("int64"));
  EXPECT_EQ(HashedCrossing({.num_bins = 3, .output_mode = "one_hot"})->get_config()["dtype"],
            Config("float32"));
}

TEST(HashedCrossingTest, RejectsInvalidOptions) {
  EXPECT_THROW(HashedCrossing({.num_bins = 0}), ValueError);
  EXPECT_THAT(
      message_of<ValueError>([] { HashedCrossing({.num_bins = 2, .output_mode = "count"}); }),
      HasSubstr("must be 'int' or 'one_hot'"));
  EXPECT_THAT(message_of<ValueError>([] { HashedCrossing({.num_bins = 2, .sparse = true}); }),
              HasSubstr("sparse requires an encoding"));
}

TEST(HashedCrossingTest, RejectsInvalidInputs) {
  const HashedCrossing crossing({.num_bins = 2});
  const Tensor a = strings({"A", "B"});
  EXPECT_THROW(crossing(Tensors(a)), ValueError);
  EXPECT_THROW(crossing(Tensors::list({a})), ValueError);
  EXPECT_THROW(crossing(Tensors::list({a, ids({1, 2, 3})})), ValueError);
  EXPECT_THROW(crossing(Tensors::list({ids({1, 2}, {1, 2}), ids({1, 2}, {1, 2})})), ValueError);
  EXPECT_THROW(crossing(Tensors::list({a, Tensor::from<float>({1, 2}, {2})})), TypeError);
  EXPECT_THROW(
      crossing(Tensors::list({a, RaggedTensor::from_rows<std::string>({{"a"}, {"b", "c"}})})),
      TypeError);
}

TEST(HashedCrossingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "HashedCrossing",
                         .config = R"({"num_bins": 7, "output_mode": "one_hot"})",
                         .inputs = Specs::list({string_spec({2, 1}), int_spec({2, 1})}),
                         .output = TensorSpec{.shape = {2, 7}}});
}

}  // namespace keel::hashed_crossing_test

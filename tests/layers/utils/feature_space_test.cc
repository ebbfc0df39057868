// Tests layers/utils/feature_space.cc and internal/feature_kinds.cc.
#include <keel/layers/utils/feature_space.h>

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/core.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/preprocessing/text_vectorization.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::feature_space_test {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::ids;
using testing_support::message_of;
using testing_support::string_spec;
using testing_support::strings;
using utils::FeatureSpace;

Tensors table() {
  return Tensors::dict({{"age", floats({1, 3, 1, 3})},
                        {"city", strings({"Rome", "Oslo", "Rome", "Bonn"})},
                        {"unused", floats({0, 0, 0, 0})},
                        {"visits", ids({7, 7, 8, 7})}});
}

data::Dataset rows() { return data::Dataset::from_tensor_slices(table()); }

// The vocabularies are {Rome, Oslo, Bonn}, by frequency and then in descending order, and {7, 8}.
FeatureSpaceOptions options(const std::string& output_mode) {
  return {.features = {{"age", "float_normalized"},
                       {"city", "string_categorical"},
                       {"visits", utils::integer_categorical({.output_mode = "one_hot"})}},
          .output_mode = output_mode,
          .crosses = {{{"city", "visits"}, 5, "int"}}};
}

std::vector<float> numbers(const Tensors& x) {
  return x.leaf().tensor().cast(DType::kFloat32).to_vector<float>();
}

TEST(FeatureSpaceTest, DictsHoldEachFeatureAndCross) {
  const FeatureSpace space(options("dict"));
  space->adapt(rows().batch(3));
  const Tensors out = space(table());
  EXPECT_EQ(out.structure(), "{age: *, city: *, city_X_visits: *, visits: *}");
  EXPECT_THAT(numbers(out["age"]), ElementsAre(-1, 1, -1, 1));
  EXPECT_EQ(out["city"].tensor().shape(), Shape({4, 4}));
  EXPECT_THAT(numbers(out["city"]), ElementsAre(0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1));
  EXPECT_THAT(numbers(out["visits"]), ElementsAre(0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0));
  const Tensors pair = Tensors::list({ids({1, 2, 1, 3}, {4, 1}), ids({1, 1, 2, 1}, {4, 1})});
  EXPECT_EQ(out["city_X_visits"].tensor().to_vector<int64_t>(),
            layers::HashedCrossing({.num_bins = 5})(pair).tensor().to_vector<int64_t>());
}

TEST(FeatureSpaceTest, PartsAreConcatenatedByNameWithCrossesLast) {
  FeatureSpaceOptions given = options("concat");
  given.crosses = {{"visits", "city"}};
  given.crossing_dim = 6;
  const FeatureSpace space(given);
  space->adapt(rows());
  const Tensor y = space(table()).tensor();
  EXPECT_EQ(y.spec(), (TensorSpec{.shape = {4, 1 + 4 + 3 + 6}}));
  const std::vector<float> values = y.to_vector<float>();
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 8),
              ElementsAre(-1, 0, 1, 0, 0, 0, 1, 0));
  EXPECT_EQ(std::accumulate(values.begin() + 8, values.begin() + 14, 0.0F), 1);
}

TEST(FeatureSpaceTest, ScalarsGiveOneRowWithoutABatch) {
  const FeatureSpace space(options("concat"));
  FeatureSpaceOptions given = options("concat");
  given.crosses = {};
  const FeatureSpace flat(given);
  flat->adapt(rows());
  const Tensors row = Tensors::dict({{"age", Tensor::scalar<float>(3)},
                                     {"city", Tensor::scalar<std::string>("Bonn")},
                                     {"visits", Tensor::scalar<int64_t>(9)}});
  EXPECT_THAT(numbers(flat(row)), ElementsAre(1, 0, 0, 0, 1, 1, 0, 0));
  // Rows of a dataset are encoded one by one, too.
  for (const Tensors& encoded : rows().map([=](const Tensors& one) { return flat(one); })) {
    EXPECT_EQ(encoded.leaf().spec().shape, Shape({8}));
  }
}

TEST(FeatureSpaceTest, EveryKindHasItsPreprocessor) {
  const FeatureSpace space({.features = {{"a", "float"},
                                         {"b", "float_rescaled"},
                                         {"c", "float_discretized"},
                                         {"d", "integer_hashed"},
                                         {"e", "string_hashed"},
                                         {"f", utils::float_rescaled({.scale = 2, .offset = 1})},
                                         {"g", utils::float_discretized({.num_bins = 2,
                                                                         .bin_boundaries = {{0.5}},
                                                                         .output_mode = "int",
                                                                         .name = "halves"})}},
                            .output_mode = "dict",
                            .hashing_dim = 3,
                            .num_discretization_bins = 2});
  const Tensors data = Tensors::dict({{"a", floats({1, 2})},
                                      {"b", floats({3, 4})},
                                      {"c", floats({5, 6})},
                                      {"d", ids({1, 2})},
                                      {"e", strings({"A", "B"})},
                                      {"f", floats({7, 8})},
                                      {"g", floats({0, 1})}});
  space->adapt(data::Dataset::from_tensors(data));
  const Tensors out = space(data);
  EXPECT_THAT(numbers(out["a"]), ElementsAre(1, 2));
  EXPECT_THAT(numbers(out["b"]), ElementsAre(3, 4));
  const layers::Discretization bins({.num_bins = 2, .output_mode = "one_hot"});
  bins->adapt(floats({5, 6}, {2, 1}));
  EXPECT_EQ(numbers(out["c"]), bins(floats({5, 6}, {2, 1})).to_vector<float>());
  EXPECT_THAT(numbers(out["d"]), ElementsAre(1, 0, 0, 0, 1, 0));  // bins 0 and 1
  EXPECT_THAT(numbers(out["e"]), ElementsAre(0, 1, 0, 1, 0, 0));  // bins 1 and 0
  EXPECT_THAT(numbers(out["f"]), ElementsAre(15, 17));
  EXPECT_THAT(numbers(out["g"]), ElementsAre(0, 1));
  EXPECT_EQ(space->preprocessor("d")->class_name(), "Hashing");
  EXPECT_EQ(space->preprocessor("d")->name(), "d_preprocessor");
  EXPECT_EQ(space->preprocessor("g")->name(), "halves_preprocessor");
  EXPECT_THROW(space->preprocessor("z"), ValueError);
}

TEST(FeatureSpaceTest, FeaturesMayHavePreprocessorsOfTheirOwn) {
  const layers::TextVectorization words({.output_mode = "count"});
  const FeatureSpace space(
      {.features = {{"text", utils::feature(DType::kString, words, "float")}}});
  const Tensors data = Tensors::dict({{"text", strings({"a b a", "b"})}});
  EXPECT_THAT(message_of<RuntimeError>([&] { space(data); }), HasSubstr("call adapt() first"));
  space->adapt(data::Dataset::from_tensors(data));
  EXPECT_THAT(numbers(space(data)), ElementsAre(0, 1, 2, 0, 1, 0));  // b before a
}

TEST(FeatureSpaceTest, SpacesWithoutStateNeedNoAdapt) {
  const layers::StringLookup words({.vocabulary = {{"a"}}});
  const FeatureSpace space(
      {.features = {{"w", utils::feature(DType::kString, words, "one_hot")}, {"x", "float"}}});
  const Tensors data = Tensors::dict({{"w", strings({"a"})}, {"x", floats({2})}});
  EXPECT_THAT(numbers(space(data)), ElementsAre(0, 1, 2));
}

TEST(FeatureSpaceTest, TheGraphComputesTheSameFromLayers) {
  const FeatureSpace space(options("concat"));
  EXPECT_THROW(space->get_inputs(), RuntimeError);
  FeatureSpaceOptions given = options("concat");
  given.crosses = {{{"city", "visits"}, 5}};
  const FeatureSpace crossed(given);
  crossed->adapt(rows());
  const Functional model(
      {.inputs = crossed->get_inputs(), .outputs = crossed->get_encoded_features()});
  Tensors::Dict columns = table().entries();
  for (auto& [name, column] : columns) column = column.tensor().reshaped({4, 1});
  columns.at("visits") = columns.at("visits").tensor().cast(DType::kInt32);
  const std::vector<float> expected = crossed(table()).tensor().to_vector<float>();
  EXPECT_THAT(model(Tensors(columns)).tensor().to_vector<float>(), ElementsAreArray(expected));
  // The graph consists of layers that files can name.
  const auto copy = layers::deserialize(layers::serialize(*model));
  EXPECT_EQ(copy->class_name(), "Functional");
}

TEST(FeatureSpaceTest, ASpaceIsALayerOfAGraph) {
  const layers::StringLookup words({.vocabulary = {{"a"}}});
  const FeatureSpace space(
      {.features = {{"w", utils::feature(DType::kString, words, "one_hot")}, {"x", "float"}}});
  const Tensors inputs =
      Tensors::dict({{"w", layers::input({.shape = {1}, .dtype = DType::kString})},
                     {"x", layers::input({.shape = {1}, .dtype = DType::kFloat64})}});
  const Tensors y = space(inputs);
  EXPECT_EQ(y.leaf().spec(), (TensorSpec{.shape = {kUnknown, 3}}));
}

TEST(FeatureSpaceTest, ConfigsHoldWhatAdaptLearned) {
  const FeatureSpace space(options("dict"));
  FeatureSpaceOptions given = options("dict");
  given.features.erase("age");
  const FeatureSpace learned(given);
  learned->adapt(rows());
  const auto copy = layers::deserialize(layers::serialize(*learned));
  const Tensors expected = learned(table()), got = copy(table());
  for (const char* name : {"city", "city_X_visits", "visits"}) {
    EXPECT_EQ(numbers(got[name]), numbers(expected[name])) << name;
  }
}

// A config as Keras writes it.
TEST(FeatureSpaceTest, ConfigsOfKerasAreRead) {
  const auto space = layers::deserialize(parse_json(R"({"class_name": "FeatureSpace", "config": {
      "features": {
        "x": {"module": "keras.src.layers.preprocessing.feature_space", "class_name": "Feature",
              "config": {"dtype": "float32", "preprocessor": {"module":
                  "keras.src.layers.preprocessing.feature_space", "class_name": "TFDIdentity",
                  "config": {"name": "x_preprocessor", "trainable": true, "dtype": "float32"}},
                  "output_mode": "float"}, "registered_name": "Feature"},
        "h": "integer_hashed", "i": "integer_hashed"},
      "output_mode": "concat", "crosses": [{"class_name": "Cross", "config": {
          "feature_names": ["h", "i"], "crossing_dim": 4, "output_mode": "one_hot"}}],
      "crossing_dim": 32, "hashing_dim": 3, "num_discretization_bins": 32}})"));
  const Tensors data =
      Tensors::dict({{"h", ids({1, 2})}, {"i", ids({2, 2})}, {"x", floats({5, 6})}});
  const std::vector<float> values = numbers(space(data));
  ASSERT_EQ(values.size(), 22U);
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 7),
              ElementsAre(1, 0, 0, 0, 1, 0, 5));
}

TEST(FeatureSpaceTest, RejectsInvalidOptions) {
  const auto rejected = [](const FeatureSpaceOptions& given) {
    return message_of<ValueError>([&] { FeatureSpace{given}; });
  };
  EXPECT_THAT(rejected({}), HasSubstr("there are no features"));
  EXPECT_THAT(rejected({.features = {{"x", "floating"}}}), HasSubstr("unknown kind 'floating'"));
  EXPECT_THAT(rejected({.features = {{"x", "float"}}, .output_mode = "list"}),
              HasSubstr("'concat' or 'dict'"));
  EXPECT_THAT(rejected({.features = {{"x", "float"}}, .crosses = {{"x", "y"}}}),
              HasSubstr("unknown feature 'y'"));
  EXPECT_THAT(rejected({.features = {{"x", "string_hashed"}}, .crosses = {{"x"}}}),
              HasSubstr("at least two features"));
  EXPECT_THAT(
      rejected({.features = {{"x", utils::string_hashed({.num_bins = 2, .output_mode = "int"})}}}),
      HasSubstr("cannot be concatenated"));
  EXPECT_THAT(
      rejected(
          {.features = {{"x", utils::feature(DType::kFloat32, layers::Identity({}), "one_hot")}}}),
      HasSubstr("preprocessor returns float32"));
  EXPECT_THAT(
      rejected(
          {.features = {{"x", utils::feature(DType::kInt64, layers::Identity({}), "one_hot")}}}),
      HasSubstr("unknown number of categories"));
}

TEST(FeatureSpaceTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "FeatureSpace",
       .config = R"({"features": {"w": "string_hashed", "x": "float"},
                                       "hashing_dim": 3})",
       .inputs = Specs::dict({{"w", string_spec({2, 1})}, {"x", float_spec({2})}}),
       .output = float_spec({2, 4})});
}

TEST(FeatureSpaceTest, RejectsInvalidData) {
  const FeatureSpace space({.features = {{"x", "float"}, {"y", "float_normalized"}}});
  EXPECT_THROW(space->adapt(data::Dataset::from_tensor_slices(table())), ValueError);
  EXPECT_THROW(space->adapt(rows().take(0)), ValueError);
  const FeatureSpace ready({.features = {{"x", "float"}}});
  EXPECT_THROW(ready(Tensors(floats({1}))), TypeError);
  EXPECT_THROW(ready(table()), ValueError);
}

}  // namespace keel::feature_space_test

#include <keel/layers/preprocessing/text_vectorization.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/data/dataset.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::text_vectorization_test {

using layers::TextVectorization;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::int_spec;
using testing_support::message_of;
using testing_support::string_spec;
using testing_support::strings;
using Words = std::vector<std::string>;

std::vector<int64_t> ids(const TextVectorization& layer, const Words& texts) {
  return layer(strings(texts)).to_vector<int64_t>();
}

Words split_by_nothing(const std::string& text) { return {text}; }

TEST(TextVectorizationTest, TextsBecomePaddedIds) {
  const TextVectorization layer({.vocabulary = {{"the", "fox"}}});
  const Tensor y = layer(strings({"The FOX, the dog!", " fox\t", "..."}));
  EXPECT_EQ(y.spec(), (TensorSpec{.shape = {3, 4}, .dtype = DType::kInt64}));
  EXPECT_THAT(y.to_vector<int64_t>(), ElementsAre(2, 3, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(layer->get_vocabulary(), ElementsAre("", "[UNK]", "the", "fox"));
  EXPECT_THAT(layer->get_vocabulary(false), ElementsAre("the", "fox"));
  EXPECT_EQ(layer->vocabulary_size(), 4);
}

TEST(TextVectorizationTest, TextsAreCutToTheSequenceLength) {
  const TextVectorization layer(
      {.output_sequence_length = 2, .vocabulary = {{"", "[UNK]", "a", "b"}}});
  EXPECT_THAT(ids(layer, {"a b a", "b"}), ElementsAre(2, 3, 3, 0));
}

TEST(TextVectorizationTest, ColumnsAndMoreAxesKeepTheirShape) {
  const TextVectorization layer({.vocabulary = {{"a", "b"}}});
  const Tensor column = layer(strings({"a b", "b"}).reshaped({2, 1}));
  EXPECT_EQ(column.shape(), Shape({2, 2}));
  EXPECT_THAT(column.to_vector<int64_t>(), ElementsAre(2, 3, 3, 0));
  const Tensor many = layer(strings({"a b", "b", "b b a", ""}).reshaped({2, 2, 1}));
  EXPECT_EQ(many.shape(), Shape({2, 2, 3}));
  EXPECT_THAT(many.to_vector<int64_t>(), ElementsAre(2, 3, 0, 3, 0, 0, 3, 3, 2, 0, 0, 0));
  const Tensor one = layer(Tensor::scalar<std::string>("b a"));
  EXPECT_EQ(one.shape(), Shape({2}));
  EXPECT_THAT(one.to_vector<int64_t>(), ElementsAre(3, 2));
}

TEST(TextVectorizationTest, RaggedResultsAreNotPadded) {
  const TextVectorization layer({.vocabulary = {{"a", "b"}}, .ragged = true});
  const RaggedTensor y = layer(Tensors(strings({"a b a", "", "z"}))).leaf().ragged();
  EXPECT_THAT(y.values.to_vector<int64_t>(), ElementsAre(2, 3, 2, 1));
  EXPECT_THAT(y.row_splits.to_vector<int64_t>(), ElementsAre(0, 3, 3, 4));
}

TEST(TextVectorizationTest, CharactersMayBeTokens) {
  const TextVectorization layer({.split = "character", .vocabulary = {{"a", "\xC3\xA9", " "}}});
  EXPECT_THAT(ids(layer, {"A \xC3\xA9z"}), ElementsAre(2, 4, 3, 1));
}

TEST(TextVectorizationTest, WithoutSplitEachStringIsAToken) {
  const TextVectorization layer({.split = {}, .vocabulary = {{"a b", "c"}}});
  EXPECT_THAT(ids(layer, {"A b!", "c", ""}), ElementsAre(2, 3, 0));
  const Tensor y = layer(strings({"c", "a b", "z", "c"}).reshaped({2, 2}));
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_THAT(y.to_vector<int64_t>(), ElementsAre(3, 2, 1, 3));
  const RaggedTensor rows = RaggedTensor::from_rows<std::string>({{"c"}, {"z", "A B"}});
  EXPECT_THAT(layer(Tensors(rows)).tensor().to_vector<int64_t>(), ElementsAre(3, 0, 1, 2));
}

TEST(TextVectorizationTest, NgramsJoinNeighboringTokens) {
  const TextVectorization layer(
      {.ngrams = 2, .vocabulary = {{"a", "b", "a b", "b a"}}, .ragged = true});
  EXPECT_THAT(layer(Tensors(strings({"a b b"}))).leaf().ragged().values.to_vector<int64_t>(),
              ElementsAre(2, 3, 3, 4, 1));
  const TextVectorization all(
      {.ngrams = int64_t{1} << 60, .vocabulary = {{"a b", "a"}}, .ragged = true});
  EXPECT_THAT(all(Tensors(strings({"a b"}))).leaf().ragged().values.to_vector<int64_t>(),
              ElementsAre(3, 1, 2));
  const TextVectorization pairs(
      {.split = {}, .ngrams = NgramWidths({2}), .vocabulary = {{"a b", "b b"}}});
  const Tensor y = pairs(strings({"a", "b", "b"}).reshaped({1, 3}));
  EXPECT_THAT(y.to_vector<int64_t>(), ElementsAre(2, 3));
}

TEST(TextVectorizationTest, EncodesPresenceAndCounts) {
  const auto encoded = [](const std::string& mode) {
    const TextVectorization layer({.output_mode = mode, .vocabulary = {{"a", "b"}}});
    return layer(strings({"a a z", "b", ""})).to_vector<float>();
  };
  EXPECT_THAT(encoded("multi_hot"), ElementsAre(1, 1, 0, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(encoded("count"), ElementsAre(1, 2, 0, 0, 0, 1, 0, 0, 0));
  const TextVectorization padded(
      {.max_tokens = 4, .output_mode = "count", .pad_to_max_tokens = true, .vocabulary = {{"a"}}});
  EXPECT_THAT(padded(strings({"a"})).to_vector<float>(), ElementsAre(0, 1, 0, 0));
}

TEST(TextVectorizationTest, SparseEncodingsHoldTheCountsThatAreNotZero) {
  const TextVectorization layer({.output_mode = "tf_idf",
                                 .vocabulary = {{"a", "b"}},
                                 .idf_weights = {{0.5, 2.0}},
                                 .sparse = true});
  const SparseTensor y = layer(Tensors(strings({"b b a", "", "z"}))).leaf().sparse();
  EXPECT_EQ(y.dense_shape, Shape({3, 3}));
  EXPECT_THAT(y.indices.to_vector<int64_t>(), ElementsAre(0, 1, 0, 2, 2, 0));
  EXPECT_THAT(y.values.to_vector<float>(), ElementsAre(0.5F, 4.0F, 1.25F));
}

TEST(TextVectorizationTest, AdaptLearnsTheVocabulary) {
  const TextVectorization layer({.max_tokens = 4});
  layer->adapt(strings({"b a!", "B c", "b"}));
  EXPECT_THAT(layer->get_vocabulary(), ElementsAre("", "[UNK]", "b", "c"));
}

TEST(TextVectorizationTest, AdaptReadsTheFirstBatchesOfADataset) {
  const auto batches =
      data::Dataset::from_tensor_slices(strings({"a a b", "b", "c c c c", "c"})).batch(2);
  const TextVectorization all({.output_mode = "tf_idf"}), some({});
  all->adapt(batches);
  EXPECT_THAT(all->get_vocabulary(), ElementsAre("[UNK]", "c", "b", "a"));
  // Each text is a document: b is in two of four.
  EXPECT_FLOAT_EQ(all(strings({"b"})).to_vector<float>()[2],
                  static_cast<float>(std::log(1 + 4.0 / 3)));
  some->adapt(batches, 1);
  EXPECT_THAT(some->get_vocabulary(), ElementsAre("", "[UNK]", "b", "a"));
  EXPECT_THROW(some->adapt(data::Dataset::from_tensors(Tensors::list({strings({"a"})}))),
               TypeError);
}

TEST(TextVectorizationTest, TheConfigContainsTheAdaptedState) {
  const TextVectorization layer({.ngrams = NgramWidths({1, 3}), .output_mode = "tf_idf"});
  layer->adapt(strings({"a b c", "b"}));
  const auto copy = layers::deserialize(layers::serialize(*layer));
  const Tensor x = strings({"a b", "z"});
  EXPECT_EQ(copy(x).to_vector<float>(), layer(x).to_vector<float>());
  EXPECT_EQ(layer->get_config()["ngrams"], Config::list({1, 3}));
  EXPECT_EQ(TextVectorization({.ngrams = 2})->get_config()["ngrams"], Config(2));
  EXPECT_TRUE(TextVectorization({})->get_config()["vocabulary"].is_null());
}

TEST(TextVectorizationTest, ShapesFollowFromSymbolicInputs) {
  const Tensor x = layers::input({.shape = {1}, .dtype = DType::kString});
  EXPECT_EQ(TextVectorization({.vocabulary = {{"a"}}})(x).spec(),
            (TensorSpec{.shape = {kUnknown, kUnknown}, .dtype = DType::kInt64}));
  EXPECT_EQ(TextVectorization({.output_sequence_length = 7})(x).shape(), Shape({kUnknown, 7}));
  EXPECT_EQ(TextVectorization({.output_mode = "count", .vocabulary = {{"a"}}})(x).shape(),
            Shape({kUnknown, 2}));
  EXPECT_EQ(TextVectorization({.ragged = true})(Tensors(x)).leaf().layout(), Layout::kRagged);
  const Tensor tokens = layers::input({.shape = {4}, .dtype = DType::kString});
  EXPECT_EQ(TextVectorization({.split = {}, .ngrams = 2})(tokens).shape(), Shape({kUnknown, 7}));
}

TEST(TextVectorizationTest, RejectsInvalidOptions) {
  const auto rejected = [](const TextVectorizationOptions& options) {
    return message_of<ValueError>([&] { TextVectorization{options}; });
  };
  EXPECT_THAT(rejected({.standardize = "upper"}),
              HasSubstr("standardize must be one of 'lower', 'lower_and_strip_punctuation'"));
  EXPECT_THAT(rejected({.split = "words"}), HasSubstr("split must be one of"));
  EXPECT_THAT(rejected({.output_mode = "one_hot"}), HasSubstr("output_mode must be 'int'"));
  EXPECT_THAT(rejected({.ngrams = 0}), HasSubstr("ngrams must be positive"));
  EXPECT_THAT(rejected({.ngrams = NgramWidths({2, -1})}), HasSubstr("ngrams must be positive"));
  EXPECT_THAT(rejected({.output_sequence_length = 0}), HasSubstr("must be positive"));
  EXPECT_THAT(rejected({.output_mode = "count", .output_sequence_length = 2}),
              HasSubstr("output_sequence_length requires output_mode 'int'"));
  EXPECT_THAT(rejected({.output_mode = "count", .ragged = true}),
              HasSubstr("ragged requires output_mode 'int'"));
  EXPECT_THAT(rejected({.sparse = true}), HasSubstr("sparse requires an encoding"));
  EXPECT_THAT(rejected({.output_mode = "tf_idf", .vocabulary = {{"a"}}}), HasSubstr("idf_weight"));
  EXPECT_THROW(TextVectorization({.encoding = "latin-1"}), NotImplementedError);
}

// A config as Keras writes it.
Config config_with_function(const std::string& name) {
  return parse_json(R"({"class_name": "TextVectorization", "config": {"name": "words",
      "standardize": {"module": "builtins", "class_name": "function", "config": ")" +
                    name + R"(", "registered_name": "function"}, "vocabulary": ["x", "a x"],
      "split": null}})");
}

TEST(TextVectorizationTest, PythonFunctionsAreRejectedWithTheirName) {
  const auto text = message_of<NotImplementedError>(
      [] { layers::deserialize(config_with_function("Package>unknown")); });
  EXPECT_THAT(text, HasSubstr("words"));
  EXPECT_THAT(text, HasSubstr("standardize is the Python function 'Package>unknown'"));
}

TEST(TextVectorizationTest, RegisteredFunctionsReplaceThoseOfPython) {
  register_standardize_function("TextVectorizationTest>x",
                                [](const std::string& text) { return text.substr(0, 2) + "x"; });
  register_split_function("TextVectorizationTest>commas", [](const std::string& text) {
    const size_t comma = text.find(',');
    return Words{text.substr(0, comma), text.substr(comma + 1)};
  });
  const auto layer = layers::deserialize(config_with_function("TextVectorizationTest>x"));
  EXPECT_THAT(layer(strings({"a bc", ""})).to_vector<int64_t>(), ElementsAre(3, 2));
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(config["config"]["standardize"],
            config_with_function("TextVectorizationTest>x")["config"]["standardize"]);
  EXPECT_NO_THROW(layers::deserialize(config));
  const TextVectorization commas(
      {.standardize = {}, .split = "TextVectorizationTest>commas", .vocabulary = {{"a", "b c"}}});
  EXPECT_THAT(ids(commas, {"b c,a"}), ElementsAre(3, 2));
  EXPECT_THROW(register_split_function("character", split_by_nothing), ValueError);
  EXPECT_THROW(register_standardize_function("empty", {}), ValueError);
}

TEST(TextVectorizationTest, RejectsInvalidInputs) {
  EXPECT_THROW(ids(TextVectorization({}), {"a"}), RuntimeError);
  const TextVectorization layer({.vocabulary = {{"a"}}});
  EXPECT_THROW(layer(Tensor::from<int64_t>({1}, {1})), TypeError);
  EXPECT_THROW(layer(strings({"a", "b"}).reshaped({1, 2})), ValueError);
  EXPECT_THROW(layer(Tensors(RaggedTensor::from_rows<std::string>({{"a"}}))), TypeError);
  const TextVectorization ragged({.vocabulary = {{"a"}}, .ragged = true});
  EXPECT_THROW(ragged(strings({"a", "b"}).reshaped({1, 2, 1})), ValueError);
  EXPECT_THROW(layer->adapt(strings({"", "!"})), ValueError);
}

TEST(TextVectorizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "TextVectorization",
       .config = R"({"standardize": "lower", "split": "character", "ngrams": [1, 2],
                     "output_sequence_length": 5, "vocabulary": ["a", "b"]})",
       .inputs = string_spec({2, 1}),
       .output = int_spec({2, 5})});
}

}  // namespace keel::text_vectorization_test

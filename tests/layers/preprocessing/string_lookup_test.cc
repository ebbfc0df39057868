#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <keel/framework/data/dataset.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::string_lookup_test {

using layers::StringLookup;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::string_spec;
using testing_support::strings;
using Ids = std::vector<int64_t>;
using Words = std::vector<std::string>;

Ids ids(const StringLookup& lookup, const Words& values) {
  return lookup(strings(values)).to_vector<int64_t>();
}

TEST(StringLookupTest, NumbersBeginAfterTheUnknownToken) {
  const StringLookup lookup({.vocabulary = {{"a", "b"}}});
  EXPECT_EQ(ids(lookup, {"b", "a", "z", ""}), (Ids{2, 1, 0, 0}));
  EXPECT_EQ(lookup->vocabulary_size(), 3);
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"[UNK]", "a", "b"}));
  EXPECT_EQ(lookup->get_vocabulary(false), (Words{"a", "b"}));
}

TEST(StringLookupTest, TheMaskTokenIsNumberZero) {
  const StringLookup lookup({.mask_token = "", .vocabulary = {{"a"}}});
  EXPECT_EQ(ids(lookup, {"", "a", "z"}), (Ids{0, 2, 1}));
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"", "[UNK]", "a"}));
}

TEST(StringLookupTest, ManyUnknownWordsShareSeveralNumbers) {
  const StringLookup lookup({.num_oov_indices = 3, .vocabulary = {{"a"}}});
  Words unknown;
  for (int i = 0; i < 100; ++i) unknown.push_back("word " + std::to_string(i));
  const Ids found = ids(lookup, unknown);
  EXPECT_EQ(std::set<int64_t>(found.begin(), found.end()), (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(ids(lookup, unknown), found);
  EXPECT_EQ(ids(lookup, {"a"}), (Ids{3}));
}

// Expected: FarmHash fingerprints modulo 2 and 3, and SipHash-2-4 with the key (7, 9), computed
// independently of this project.
TEST(StringLookupTest, UnknownWordsShareNumbersAsInKeras) {
  const std::vector<std::string> vocabulary = {"a", "b", "c", "d"};
  const Words words = {"a", "c", "d", "z", "b", ""};
  EXPECT_EQ(ids(StringLookup({.num_oov_indices = 2, .vocabulary = vocabulary}), words),
            (Ids{2, 4, 5, 1, 3, 1}));
  EXPECT_EQ(
      ids(StringLookup({.num_oov_indices = 3, .mask_token = "", .vocabulary = vocabulary}), words),
      (Ids{4, 6, 7, 2, 5, 0}));
  EXPECT_EQ(
      ids(StringLookup({.num_oov_indices = 3, .vocabulary = vocabulary, .salt = HashingSalt(7, 9)}),
          words),
      (Ids{3, 5, 6, 0, 4, 0}));
}

TEST(StringLookupTest, WithoutUnknownNumbersAnUnknownWordIsAnError) {
  const StringLookup lookup({.num_oov_indices = 0, .vocabulary = {{"a"}}});
  EXPECT_EQ(ids(lookup, {"a"}), (Ids{0}));
  EXPECT_THROW(ids(lookup, {"z"}), ValueError);
}

TEST(StringLookupTest, VocabulariesMayBeginWithTheSpecialTokens) {
  const StringLookup lookup({.mask_token = "", .vocabulary = {{"", "[UNK]", "a"}}});
  EXPECT_EQ(ids(lookup, {"a"}), (Ids{2}));
}

TEST(StringLookupTest, InvertReturnsWords) {
  const StringLookup lookup({.mask_token = "", .vocabulary = {{"a", "b"}}, .invert = true});
  const Tensor y = lookup(Tensor::from<int64_t>({3, 0, 1, 9, -4, 2}, {6}));
  EXPECT_EQ(y.to_vector<std::string>(), (Words{"b", "", "[UNK]", "[UNK]", "[UNK]", "a"}));
}

TEST(StringLookupTest, AdaptSortsByFrequencyThenByDescendingWord) {
  const StringLookup lookup({});
  lookup->adapt(Tensor::from<std::string>({"a", "c", "d", "d", "z", "b"}, {2, 3}));
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"[UNK]", "d", "z", "c", "b", "a"}));
}

TEST(StringLookupTest, AdaptDropsSpecialAndExcessWords) {
  const StringLookup lookup({.max_tokens = 3, .mask_token = ""});
  lookup->adapt(
      data::Dataset::from_tensor_slices(strings({"", "", "[UNK]", "a", "b", "b", "c", "c", "c"}))
          .batch(4));
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"", "[UNK]", "c"}));
}

TEST(StringLookupTest, AdaptReadsTheFirstBatches) {
  const auto batches = data::Dataset::from_tensor_slices(strings({"a", "b", "c", "c"})).batch(2);
  const StringLookup lookup({});
  lookup->adapt(batches, 1);
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"[UNK]", "b", "a"}));
  lookup->adapt(batches);
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"[UNK]", "c", "b", "a"}));
}

TEST(StringLookupTest, RaggedAndSparseInputsKeepTheirStructure) {
  const StringLookup lookup({.vocabulary = {{"a", "b"}}});
  const RaggedTensor rows = RaggedTensor::from_rows<std::string>({{"b", "z"}, {}, {"a"}});
  const RaggedTensor found = lookup(Tensors(rows)).leaf().ragged();
  EXPECT_EQ(found.values.to_vector<int64_t>(), (Ids{2, 0, 1}));
  EXPECT_EQ(found.row_splits.id(), rows.row_splits.id());
  const SparseTensor sparse{Tensor::from<int64_t>({1, 0}, {1, 2}), strings({"b"}), {2, 1}};
  const SparseTensor numbers = lookup(Tensors(sparse)).leaf().sparse();
  EXPECT_EQ(numbers.values.to_vector<int64_t>(), (Ids{2}));
  EXPECT_EQ(numbers.dense_shape, Shape({2, 1}));
}

TEST(StringLookupTest, EncodesOneHot) {
  const StringLookup lookup({.vocabulary = {{"a", "b"}}, .output_mode = "one_hot"});
  const Tensor y = lookup(Tensor::from<std::string>({"b", "z"}, {2, 1}));
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(lookup(Tensor::from<std::string>({"b", "z"}, {1, 2})).shape(), Shape({1, 2, 3}));
}

TEST(StringLookupTest, EncodesListsByPresenceAndCount) {
  const RaggedTensor rows = RaggedTensor::from_rows<std::string>({{"b", "b", ""}, {}, {"a"}});
  const auto encoded = [&](const std::string& mode) {
    const StringLookup lookup({.mask_token = "", .vocabulary = {{"a", "b"}}, .output_mode = mode});
    return lookup(Tensors(rows)).tensor();
  };
  EXPECT_EQ(encoded("multi_hot").shape(), Shape({3, 3}));
  EXPECT_EQ(encoded("multi_hot").to_vector<float>(),
            (std::vector<float>{0, 0, 1, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(encoded("count").to_vector<float>(), (std::vector<float>{0, 0, 2, 0, 0, 0, 0, 1, 0}));
}

TEST(StringLookupTest, TfIdfScalesCountsByTheWeightsOfWords) {
  const StringLookup lookup(
      {.vocabulary = {{"a", "b"}}, .output_mode = "tf_idf", .idf_weights = {{0.5, 1.5}}});
  const Tensor y = lookup(Tensor::from<std::string>({"b", "z", "b", "a"}, {1, 4}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 0.5, 3}));
  const auto copy = layers::deserialize(layers::serialize(*lookup));
  EXPECT_EQ(copy(strings({"z", "a"})).to_vector<float>(), (std::vector<float>{1, 0.5, 0}));
}

TEST(StringLookupTest, EncodingsMayBeSparse) {
  const auto lookup = [](const std::string& mode, bool sparse) {
    return StringLookup(
        {.mask_token = "",
         .vocabulary = {{"a", "b"}},
         .output_mode = mode,
         .idf_weights = mode == "tf_idf" ? std::optional(std::vector<double>{2, 4}) : std::nullopt,
         .sparse = sparse});
  };
  const Tensor x = Tensor::from<std::string>({"b", "z", "b", "", "a", ""}, {2, 3});
  const SparseTensor counts = lookup("count", true)(Tensors(x)).leaf().sparse();
  EXPECT_EQ(counts.dense_shape, Shape({2, 3}));
  EXPECT_EQ(counts.indices.to_vector<int64_t>(), (Ids{0, 0, 0, 2, 1, 1}));
  EXPECT_EQ(counts.values.to_vector<float>(), (std::vector<float>{1, 2, 1}));
  EXPECT_EQ(lookup("tf_idf", true)(Tensors(x)).leaf().sparse().values.to_vector<float>(),
            (std::vector<float>{3, 8, 2}));
  EXPECT_EQ(lookup("tf_idf", false)(x).to_vector<float>(), (std::vector<float>{3, 0, 8, 0, 2, 0}));
  EXPECT_THROW(lookup("int", true), ValueError);
}

TEST(StringLookupTest, OtherEncodingsAreNotSupported) {
  EXPECT_NO_THROW(StringLookup({.encoding = "utf-8"}));
  EXPECT_THROW(StringLookup({.encoding = "utf-16"}), NotImplementedError);
}

TEST(StringLookupTest, TfIdfAcceptsWeightsOfSpecialTokens) {
  const StringLookup lookup(
      {.vocabulary = {{"[UNK]", "a"}}, .output_mode = "tf_idf", .idf_weights = {{8, 0.5}}});
  EXPECT_EQ(lookup(strings({"z", "a"})).to_vector<float>(), (std::vector<float>{8, 0.5}));
}

TEST(StringLookupTest, TfIdfLearnsDocumentFrequencies) {
  const StringLookup lookup({.output_mode = "tf_idf"});
  lookup->adapt(Tensors(RaggedTensor::from_rows<std::string>({{"a", "a", "b"}, {"a"}, {}})).leaf());
  EXPECT_EQ(lookup->get_vocabulary(), (Words{"[UNK]", "a", "b"}));
  const double a = std::log(1 + 3.0 / 3), b = std::log(1 + 3.0 / 2);
  const Tensor y = lookup(strings({"z", "a", "b", "b"}));
  EXPECT_FLOAT_EQ(y.data<float>()[0], static_cast<float>((a + b) / 2));
  EXPECT_FLOAT_EQ(y.data<float>()[1], static_cast<float>(a));
  EXPECT_FLOAT_EQ(y.data<float>()[2], static_cast<float>(2 * b));
}

TEST(StringLookupTest, EncodingsMayBePaddedToMaxTokens) {
  const StringLookup lookup(
      {.max_tokens = 5, .vocabulary = {{"a"}}, .output_mode = "count", .pad_to_max_tokens = true});
  EXPECT_EQ(lookup(strings({"a", "z"})).to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 0}));
}

TEST(StringLookupTest, ShapesFollowFromSymbolicInputs) {
  const Tensor x = layers::input({.shape = {2}, .dtype = DType::kString});
  const Tensor numbers = StringLookup({.vocabulary = {{"a"}}})(x);
  EXPECT_EQ(numbers.spec(), (TensorSpec{.shape = {kUnknown, 2}, .dtype = DType::kInt64}));
  const StringLookup counts({.vocabulary = {{"a"}}, .output_mode = "count"});
  EXPECT_EQ(counts(x).shape(), Shape({kUnknown, 2}));
}

TEST(StringLookupTest, TheConfigContainsTheAdaptedState) {
  const StringLookup lookup({});
  lookup->adapt(strings({"a", "b", "b"}));
  const auto copy = layers::deserialize(layers::serialize(*lookup));
  EXPECT_EQ(copy(strings({"a", "b"})).to_vector<int64_t>(), (Ids{2, 1}));
}

TEST(StringLookupTest, RejectsInvalidOptions) {
  EXPECT_THROW(StringLookup({.num_oov_indices = -1}), ValueError);
  EXPECT_THROW(StringLookup({.vocabulary = {{"a", "a"}}}), ValueError);
  EXPECT_THROW(StringLookup({.vocabulary = Words{}}), ValueError);
  EXPECT_THROW(StringLookup({.max_tokens = 2, .vocabulary = {{"a", "b"}}}), ValueError);
  EXPECT_THROW(StringLookup({.max_tokens = 1}), ValueError);
  EXPECT_THROW(StringLookup({.mask_token = "", .vocabulary = {{"a", ""}}}), ValueError);
  EXPECT_THROW(StringLookup({.num_oov_indices = 2, .invert = true}), ValueError);
  EXPECT_THROW(StringLookup({.invert = true, .output_mode = "count"}), ValueError);
  EXPECT_THROW(StringLookup({.vocabulary = {{"a", "[UNK]"}}, .invert = true}), ValueError);
  EXPECT_THROW(StringLookup({.output_mode = "some"}), ValueError);
  EXPECT_THROW(StringLookup({.vocabulary = {{"a"}}, .output_mode = "tf_idf"}), ValueError);
  EXPECT_THROW(StringLookup({.vocabulary = {{"a"}}, .idf_weights = {{1}}}), ValueError);
  EXPECT_THROW(StringLookup({.output_mode = "tf_idf", .idf_weights = {{1}}}), ValueError);
  EXPECT_THROW(
      StringLookup({.vocabulary = {{"a"}}, .output_mode = "tf_idf", .idf_weights = {{1, 2}}}),
      ValueError);
  EXPECT_THROW(StringLookup({.output_mode = "count", .pad_to_max_tokens = true}), ValueError);
}

TEST(StringLookupTest, RejectsInvalidCalls) {
  EXPECT_THROW(ids(StringLookup({}), {"a"}), RuntimeError);
  const StringLookup lookup({.vocabulary = {{"a"}}});
  EXPECT_THROW(lookup(Tensor::from<int64_t>({1}, {1})), TypeError);
  EXPECT_THROW(lookup->adapt(strings({})), ValueError);
  EXPECT_THROW(lookup->adapt(data::Dataset::from_tensors(Tensors::list({strings({"a"})}))),
               TypeError);
  const StringLookup one_hot({.vocabulary = {{"a"}}, .output_mode = "one_hot"});
  EXPECT_THROW(one_hot(Tensors(RaggedTensor::from_rows<std::string>({{"a"}}))), ValueError);
}

TEST(StringLookupTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "StringLookup",
                         .config = R"({"vocabulary": ["a"], "output_mode": "count"})",
                         .inputs = string_spec({2, 3}),
                         .output = float_spec({2, 2})});
}

}  // namespace keel::string_lookup_test

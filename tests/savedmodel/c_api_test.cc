// Tests savedmodel/c_api.cc and internal/c_tensors.cc.
#include <keel/savedmodel/c_api.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include <keel/framework/data/tfrecord.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"

namespace keel::c_api_test {

using testing_support::TemporaryFolder;

constexpr const char* kRecords = "serve_examples";

// A model with inputs dense float32 "age" [?, 2], ragged int64 "seen" and sparse int64 "tags" [?,
// 4].
Functional ranker() {
  const Tensor age = layers::input({.shape = {2}, .name = "age"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const SparseTensor tags =
      layers::sparse_input({.shape = {4}, .dtype = DType::kInt64, .name = "tags"});
  const Tensor items =
      layers::EmbedReduce({.input_dim = 10, .output_dim = 3, .name = "items"})(seen).tensor();
  const Tensor tagged =
      layers::EmbedReduce({.input_dim = 5, .output_dim = 2, .name = "tagged"})(tags).tensor();
  const Tensor all =
      layers::Concatenate({.name = "all"})(Tensors::list({age, items, tagged})).tensor();
  return Functional({.inputs = {{"age", age}, {"seen", seen}, {"tags", tags}},
                     .outputs = {{"flag", layers::Dense({.units = 1, .name = "flag"})(all)},
                                 {"score", layers::Dense({.units = 2, .name = "score"})(all)}},
                     .name = "ranker"});
}

SaveOptions with_examples() {
  return {.signatures = {{kRecords,
                          {{"age", {.feature = data::FixedLenFeature{.shape = {2}}}},
                           {"seen", {.feature = data::RaggedFeature{DType::kInt64}}},
                           {"tags", {.feature = data::VarLenFeature{DType::kInt64}}}}}}};
}

const float kAges[] = {1, 2, 3, 4, 5, 6};
const int64_t kAgeDims[] = {3, 2};
const int64_t kSeen[] = {1, 2, 9};
const int64_t kSeenDims[] = {3};
const int64_t kSplits[] = {0, 2, 2, 3};
const int64_t kTags[] = {4, 0};
const int64_t kTagDims[] = {3, 4};
const int64_t kTagIndices[] = {0, 0, 2, 3};

// Inputs with three rows. "seen" is empty in the second row; the other two rows have tags.
std::vector<keel_tensor> three_rows() {
  keel_tensor age = {}, seen = {}, tags = {};
  age.name = "age";
  age.dtype = KEEL_FLOAT32;
  age.rank = 2;
  age.dims = kAgeDims;
  age.data = kAges;
  age.data_size = sizeof kAges;
  seen.name = "seen";
  seen.dtype = KEEL_INT64;
  seen.layout = KEEL_RAGGED;
  seen.rank = 1;
  seen.dims = kSeenDims;
  seen.data = kSeen;
  seen.data_size = sizeof kSeen;
  seen.row_splits = kSplits;
  seen.row_splits_count = 4;
  tags.name = "tags";
  tags.dtype = KEEL_INT64;
  tags.layout = KEEL_SPARSE;
  tags.rank = 2;
  tags.dims = kTagDims;
  tags.data = kTags;
  tags.data_size = sizeof kTags;
  tags.indices = kTagIndices;
  tags.indices_count = 4;
  return {age, seen, tags};
}

Tensors same_rows() {
  return {{"age", Tensor::from<float>(kAges, {3, 2})},
          {"seen", RaggedTensor::from_rows<int64_t>({{1, 2}, {}, {9}})},
          {"tags", SparseTensor{Tensor::from<int64_t>(kTagIndices, {2, 2}),
                                Tensor::from<int64_t>(kTags, {2}), Shape{3, 4}}}};
}

class CApiTest : public ::testing::Test {
 protected:
  CApiTest() : ranker_(ranker()) {
    save_model(ranker_, folder_ / "ranker.keras", with_examples());
    EXPECT_EQ(keel_model_load((folder_ / "ranker.keras").c_str(), &model_), KEEL_OK)
        << keel_last_error();
  }
  ~CApiTest() override { keel_model_free(model_); }

  std::vector<float> expected(const char* output) const {
    return ranker_(same_rows())[output].tensor().to_vector<float>();
  }

  keel_status run(const std::vector<keel_tensor>& inputs) {
    keel_result* result = nullptr;
    const keel_status status = keel_run(model_, nullptr, inputs.data(), inputs.size(), &result);
    EXPECT_EQ(result == nullptr, status != KEEL_OK);
    keel_result_free(result);
    return status;
  }

  // Expects that running with the modified input fails with this status and a message that contains
  // the text.
  template <class Change>
  void expect_refused(size_t input, keel_status status, const char* text, const Change& change) {
    std::vector<keel_tensor> inputs = three_rows();
    change(inputs[input]);
    EXPECT_EQ(run(inputs), status) << text;
    EXPECT_NE(std::strstr(keel_last_error(), text), nullptr)
        << "'" << text << "' in '" << keel_last_error() << "'";
  }

  const TemporaryFolder folder_;
  const Functional ranker_;
  keel_model* model_ = nullptr;
};

std::vector<float> floats_of(const keel_tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.data_size / sizeof *data};
}

std::vector<float> output_named(const keel_result* result, const char* name) {
  keel_tensor output = {};
  EXPECT_EQ(keel_result_find(result, name, &output), KEEL_OK) << keel_last_error();
  return floats_of(output);
}

TEST_F(CApiTest, TheVersionHasDottedNumbers) {
  EXPECT_EQ(std::count(keel_version(), keel_version() + std::strlen(keel_version()), '.'), 2);
}

TEST_F(CApiTest, SignaturesListTheirInputsAndOutputs) {
  size_t count = 0;
  const char* name = nullptr;
  ASSERT_EQ(keel_signature_count(model_, &count), KEEL_OK);
  ASSERT_EQ(count, 2U);
  ASSERT_EQ(keel_signature_name(model_, 0, &name), KEEL_OK);
  EXPECT_STREQ(name, kRecords);
  ASSERT_EQ(keel_signature_name(model_, 1, &name), KEEL_OK);
  EXPECT_STREQ(name, "serving_default");

  ASSERT_EQ(keel_input_count(model_, nullptr, &count), KEEL_OK);
  ASSERT_EQ(count, 3U);
  keel_spec spec = {};
  ASSERT_EQ(keel_input_spec(model_, "serving_default", 0, &spec), KEEL_OK);
  EXPECT_STREQ(spec.name, "age");
  EXPECT_EQ(spec.dtype, KEEL_FLOAT32);
  EXPECT_EQ(spec.rank, 2);
  EXPECT_EQ(spec.dims[0], -1);
  EXPECT_EQ(spec.dims[1], 2);
  ASSERT_EQ(keel_input_spec(model_, nullptr, 1, &spec), KEEL_OK);
  EXPECT_EQ(spec.layout, KEEL_RAGGED);
  EXPECT_EQ(spec.dtype, KEEL_INT64);
  ASSERT_EQ(keel_input_spec(model_, kRecords, 0, &spec), KEEL_OK);
  EXPECT_STREQ(spec.name, "examples");
  EXPECT_EQ(spec.dtype, KEEL_STRING);

  ASSERT_EQ(keel_output_count(model_, kRecords, &count), KEEL_OK);
  ASSERT_EQ(count, 2U);
  ASSERT_EQ(keel_output_spec(model_, nullptr, 1, &spec), KEEL_OK);
  EXPECT_STREQ(spec.name, "score");
  EXPECT_EQ(spec.rank, 2);
  EXPECT_EQ(spec.dims[1], 2);
}

TEST_F(CApiTest, AllInputLayoutsGiveTheResultsOfTheModel) {
  const std::vector<keel_tensor> inputs = three_rows();
  keel_result* result = nullptr;
  ASSERT_EQ(keel_run(model_, nullptr, inputs.data(), 3, &result), KEEL_OK) << keel_last_error();
  size_t count = 0;
  ASSERT_EQ(keel_result_count(result, &count), KEEL_OK);
  ASSERT_EQ(count, 2U);
  keel_tensor output = {};
  ASSERT_EQ(keel_result_at(result, 1, &output), KEEL_OK);
  EXPECT_STREQ(output.name, "score");
  EXPECT_EQ(output.dtype, KEEL_FLOAT32);
  EXPECT_EQ(output.layout, KEEL_DENSE);
  ASSERT_EQ(output.rank, 2);
  EXPECT_EQ(output.dims[0], 3);
  EXPECT_EQ(output.dims[1], 2);
  EXPECT_EQ(floats_of(output), expected("score"));
  EXPECT_EQ(output_named(result, "flag"), expected("flag"));
  EXPECT_EQ(keel_result_at(result, 2, &output), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_result_find(result, "other", &output), KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(), "keel_result_find: the result has no output 'other'");
  keel_result_free(result);
}

TEST_F(CApiTest, InputsNeedNotBeAligned) {
  std::vector<char> bytes(sizeof kAges + 1);
  std::memcpy(bytes.data() + 1, kAges, sizeof kAges);
  std::vector<keel_tensor> inputs = three_rows();
  inputs[0].data = bytes.data() + 1;
  keel_result* result = nullptr;
  ASSERT_EQ(keel_run(model_, nullptr, inputs.data(), 3, &result), KEEL_OK) << keel_last_error();
  EXPECT_EQ(output_named(result, "score"), expected("score"));
  keel_result_free(result);
}

TEST_F(CApiTest, SerializedExamplesGiveTheSameResults) {
  const auto ints = [](const std::vector<int64_t>& values) {
    return Tensor::from(values, {static_cast<int64_t>(values.size())});
  };
  const auto example = [&](int64_t row, const std::vector<int64_t>& seen,
                           const std::vector<int64_t>& tags) {
    return data::serialize_example(
        {{"age", Tensor::from<float>({kAges[2 * row], kAges[2 * row + 1]}, {2})},
         {"seen", ints(seen)},
         {"tags", ints(tags)}});
  };
  const std::vector<std::string> texts = {example(0, {1, 2}, {4}), example(1, {}, {}),
                                          example(2, {9}, {0})};
  std::vector<keel_string> strings;
  for (const std::string& text : texts) strings.push_back({text.data(), text.size()});
  for (const char* signature : {static_cast<const char*>(nullptr), kRecords}) {
    keel_result* result = nullptr;
    ASSERT_EQ(keel_run_examples(model_, signature, strings.data(), 3, &result), KEEL_OK)
        << keel_last_error();
    EXPECT_EQ(output_named(result, "score"), expected("score"));
    keel_result_free(result);
  }
  keel_result* result = nullptr;
  strings[1].data = "\x01";
  strings[1].size = 1;
  EXPECT_EQ(keel_run_examples(model_, nullptr, strings.data(), 3, &result), KEEL_VALUE_ERROR);
  strings[1] = {nullptr, 5};
  EXPECT_EQ(keel_run_examples(model_, nullptr, strings.data(), 3, &result), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run_examples(model_, nullptr, nullptr, 3, &result), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run_examples(model_, nullptr, strings.data(), SIZE_MAX, &result),
            KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run_examples(model_, "serving_default", strings.data(), 1, &result),
            KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(),
               "keel_run_examples: signature 'serving_default' takes no examples; call keel_run");
  EXPECT_EQ(result, nullptr);
}

TEST_F(CApiTest, AModelWithoutAnExampleSignatureRejectsExamples) {
  const TemporaryFolder folder;
  save_model(ranker_, folder / "a.h5");
  keel_model* model = nullptr;
  ASSERT_EQ(keel_model_load((folder / "a.h5").c_str(), &model), KEEL_OK);
  keel_result* result = nullptr;
  const keel_string text = {"", 0};
  EXPECT_EQ(keel_run_examples(model, nullptr, &text, 1, &result), KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(),
               "keel_run_examples: no signature of the model takes examples; save the model with "
               "one that parses tf.Example");
  keel_model_free(model);
}

// D-105: the ids of a table without a vocabulary are passed like other strings and integers.
TEST(CApiDynamicTest, D105StringAndIntegerIdsWithoutAVocabulary) {
  const TemporaryFolder folder;
  const Tensor word = layers::input({.dtype = DType::kString, .name = "word"});
  const Tensor user = layers::input({.dtype = DType::kInt64, .name = "user"});
  const layers::Embedding words(
      {.output_dim = 2,
       .dynamic =
           DynamicVocabulary{.key = KeyType::kString, .not_admitted = NotAdmitted::default_row()}});
  const layers::Embedding users({.output_dim = 2, .dynamic = DynamicVocabulary{}});
  const Functional model(
      {.inputs = {{"user", user}, {"word", word}},
       .outputs = {
           {"rows", layers::Concatenate({})(Tensors::list({words(word), users(user)})).tensor()}}});
  words->dynamic_table().assign_rows(Tensor::from<std::string>({"a", "b"}, {2}),
                                     Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
  users->dynamic_table().assign_rows(Tensor::from<int64_t>({-7}, {1}),
                                     Tensor::from<float>({5, 6}, {1, 2}));
  save_model(model, folder / "a.keras");
  keel_model* loaded = nullptr;
  ASSERT_EQ(keel_model_load((folder / "a.keras").c_str(), &loaded), KEEL_OK) << keel_last_error();
  const keel_string texts[] = {{"b", 1}, {"new", 3}};
  const int64_t ids[] = {-7, 1LL << 60}, dims[] = {2};
  keel_tensor inputs[2] = {};
  inputs[0].name = "word";
  inputs[0].dtype = KEEL_STRING;
  inputs[0].data = texts;
  inputs[0].data_size = sizeof texts;
  inputs[1].name = "user";
  inputs[1].dtype = KEEL_INT64;
  inputs[1].data = ids;
  inputs[1].data_size = sizeof ids;
  for (keel_tensor& input : inputs) {
    input.rank = 1;
    input.dims = dims;
  }
  keel_result* result = nullptr;
  ASSERT_EQ(keel_run(loaded, nullptr, inputs, 2, &result), KEEL_OK) << keel_last_error();
  keel_tensor rows = {};
  ASSERT_EQ(keel_result_find(result, "rows", &rows), KEEL_OK);
  const std::vector<float> expected =
      model(Tensors{{"user", Tensor::from<int64_t>(ids, {2})},
                    {"word", Tensor::from<std::string>({"b", "new"}, {2})}})["rows"]
          .tensor()
          .to_vector<float>();
  const auto* const found = static_cast<const float*>(rows.data);
  EXPECT_EQ(std::vector<float>(found, found + 8), expected);
  EXPECT_EQ(expected[0], 3);
  keel_result_free(result);
  keel_model_free(loaded);
}

TEST_F(CApiTest, NullArgumentsAreErrorsExceptInFree) {
  keel_result* result = nullptr;
  size_t count = 7;
  const char* name = nullptr;
  keel_spec spec = {};
  keel_tensor tensor = {};
  const std::vector<keel_tensor> inputs = three_rows();
  keel_model* model = nullptr;
  EXPECT_EQ(keel_model_load(nullptr, &model), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_model_load("a.keras", nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_signature_count(nullptr, &count), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_signature_count(model_, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_signature_name(nullptr, 0, &name), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_signature_name(model_, 0, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_input_count(nullptr, nullptr, &count), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_input_count(model_, nullptr, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_input_spec(nullptr, nullptr, 0, &spec), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_input_spec(model_, nullptr, 0, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_output_count(nullptr, nullptr, &count), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_output_count(model_, nullptr, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_output_spec(nullptr, nullptr, 0, &spec), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_output_spec(model_, nullptr, 0, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run(nullptr, nullptr, inputs.data(), 3, &result), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run(model_, nullptr, nullptr, 3, &result), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run(model_, nullptr, inputs.data(), 3, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run_examples(nullptr, nullptr, nullptr, 0, &result), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_run_examples(model_, nullptr, nullptr, 0, nullptr), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_result_count(nullptr, &count), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_result_at(nullptr, 0, &tensor), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_result_find(nullptr, "score", &tensor), KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(), "keel_result_find: result must not be NULL");
  EXPECT_EQ(count, 7U);
  keel_model_free(nullptr);
  keel_result_free(nullptr);
}

TEST_F(CApiTest, UnknownNamesAndPositionsAreErrors) {
  size_t count = 0;
  const char* name = nullptr;
  keel_spec spec = {};
  EXPECT_EQ(keel_signature_name(model_, 2, &name), KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(), "keel_signature_name: position must be below 2, received 2");
  EXPECT_EQ(keel_input_count(model_, "other", &count), KEEL_VALUE_ERROR);
  EXPECT_NE(std::strstr(keel_last_error(), "it has serve_examples, serving_default"), nullptr);
  EXPECT_EQ(keel_input_spec(model_, nullptr, 3, &spec), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_output_spec(model_, nullptr, 2, &spec), KEEL_VALUE_ERROR);
  EXPECT_EQ(keel_set_num_workers(0), KEEL_VALUE_ERROR);
}

TEST_F(CApiTest, InvalidModelFilesHaveTheirOwnStatus) {
  keel_model* model = nullptr;
  EXPECT_EQ(keel_model_load((folder_ / "nowhere.keras").c_str(), &model), KEEL_IO_ERROR);
  EXPECT_NE(std::strstr(keel_last_error(), "nowhere.keras"), nullptr);
  EXPECT_EQ(keel_model_load((folder_ / "ranker.onnx").c_str(), &model), KEEL_VALUE_ERROR);
  std::ofstream(folder_ / "text.h5") << "no model";
  EXPECT_EQ(keel_model_load((folder_ / "text.h5").c_str(), &model), KEEL_IO_ERROR);
  EXPECT_EQ(model, nullptr);
}

TEST_F(CApiTest, InputsThatAreMissingUnknownOrGivenTwiceAreErrors) {
  std::vector<keel_tensor> inputs = three_rows();
  inputs.pop_back();
  EXPECT_EQ(run(inputs), KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(), "keel_run: signature 'serving_default' requires input 'tags'");
  EXPECT_EQ(run({}), KEEL_VALUE_ERROR);
  inputs.push_back(inputs[0]);
  EXPECT_EQ(run(inputs), KEEL_VALUE_ERROR);
  EXPECT_STREQ(keel_last_error(), "keel_run: input 'age' is given twice; pass each input once");
  expect_refused(0, KEEL_VALUE_ERROR, "has no input 'old'", [](keel_tensor& t) { t.name = "old"; });
  expect_refused(0, KEEL_VALUE_ERROR, "NULL", [](keel_tensor& t) { t.name = nullptr; });
}

TEST_F(CApiTest, SizesThatContradictEachOtherAreErrors) {
  static const int64_t two_rows[] = {2, 2}, negative[] = {-3, 2}, odd[] = {3, 3};
  static const int64_t huge[] = {int64_t{1} << 62, 4};
  const auto dims = [](const int64_t* to) { return [to](keel_tensor& t) { t.dims = to; }; };
  expect_refused(0, KEEL_VALUE_ERROR, "requires 4 values", dims(two_rows));
  expect_refused(0, KEEL_VALUE_ERROR, "dims[0] must not be negative", dims(negative));
  expect_refused(0, KEEL_VALUE_ERROR, "shape must be (?, 2), received (3, 3)", dims(odd));
  expect_refused(0, KEEL_VALUE_ERROR, "overflows 64 bits", dims(huge));
  expect_refused(0, KEEL_VALUE_ERROR, "dims must not be NULL", dims(nullptr));
  expect_refused(0, KEEL_VALUE_ERROR, "rank", [](keel_tensor& t) { t.rank = -1; });
  expect_refused(0, KEEL_VALUE_ERROR, "rank", [](keel_tensor& t) { t.rank = 9; });
  expect_refused(0, KEEL_VALUE_ERROR, "shape must be", [](keel_tensor& t) { t.rank = 0; });
  expect_refused(0, KEEL_VALUE_ERROR, "received 23 bytes", [](keel_tensor& t) { --t.data_size; });
  expect_refused(0, KEEL_VALUE_ERROR, "data must not be NULL",
                 [](keel_tensor& t) { t.data = nullptr; });
  expect_refused(1, KEEL_VALUE_ERROR, "input 'seen' has 2 rows, but 'age' has 3",
                 [](keel_tensor& t) {
                   static const int64_t splits[] = {0, 2, 3};
                   t.row_splits = splits;
                   t.row_splits_count = 3;
                 });
}

TEST_F(CApiTest, DtypesAndLayoutsAreThoseOfTheInput) {
  expect_refused(0, KEEL_TYPE_ERROR, "dtype must be float32, received float64",
                 [](keel_tensor& t) { t.dtype = KEEL_FLOAT64; });
  expect_refused(0, KEEL_TYPE_ERROR, "unknown dtype 99", [](keel_tensor& t) { t.dtype = 99; });
  expect_refused(0, KEEL_TYPE_ERROR, "unknown layout -1", [](keel_tensor& t) { t.layout = -1; });
  expect_refused(1, KEEL_TYPE_ERROR, "requires a ragged tensor, received a dense one",
                 [](keel_tensor& t) { t.layout = KEEL_DENSE; });
  expect_refused(0, KEEL_VALUE_ERROR, "only ragged tensors have row_splits",
                 [](keel_tensor& t) { t.row_splits = kSplits; });
  expect_refused(0, KEEL_VALUE_ERROR, "only sparse tensors have indices",
                 [](keel_tensor& t) { t.indices_count = 2; });
}

TEST_F(CApiTest, RowSplitsAndIndicesAreChecked) {
  static const int64_t falling[] = {0, 3, 2, 3}, short_of[] = {0, 1, 1, 2}, late[] = {1, 2, 2, 3};
  const auto splits = [](const int64_t* to) { return [to](keel_tensor& t) { t.row_splits = to; }; };
  expect_refused(1, KEEL_VALUE_ERROR, "seen", splits(falling));
  expect_refused(1, KEEL_VALUE_ERROR, "seen", splits(short_of));
  expect_refused(1, KEEL_VALUE_ERROR, "seen", splits(late));
  expect_refused(1, KEEL_VALUE_ERROR, "NULL", splits(nullptr));
  expect_refused(1, KEEL_VALUE_ERROR, "requires row_splits",
                 [](keel_tensor& t) { t.row_splits_count = 0; });
  expect_refused(2, KEEL_VALUE_ERROR, "multiple of the rank, 2",
                 [](keel_tensor& t) { t.indices_count = 3; });
  expect_refused(2, KEEL_VALUE_ERROR, "tags", [](keel_tensor& t) {
    static const int64_t outside[] = {0, 0, 3, 0};
    t.indices = outside;
  });
}

TEST_F(CApiTest, AnIdOutOfRangeIsAnErrorAndTheModelRemainsUsable) {
  static const int64_t ids[] = {1, 2, 10};
  expect_refused(1, KEEL_VALUE_ERROR, "10", [](keel_tensor& t) { t.data = ids; });
  EXPECT_EQ(run(three_rows()), KEEL_OK);
}

TEST_F(CApiTest, EmptyBatchesGiveEmptyResults) {
  static const int64_t none[] = {0, 2}, no_values[] = {0}, first[] = {0}, no_tags[] = {0, 4};
  std::vector<keel_tensor> inputs = three_rows();
  for (keel_tensor& input : inputs) {
    input.data = nullptr;
    input.data_size = 0;
  }
  inputs[0].dims = none;
  inputs[1].dims = no_values;
  inputs[1].row_splits = first;
  inputs[1].row_splits_count = 1;
  inputs[2].dims = no_tags;
  inputs[2].indices = nullptr;
  inputs[2].indices_count = 0;
  keel_result* result = nullptr;
  ASSERT_EQ(keel_run(model_, nullptr, inputs.data(), 3, &result), KEEL_OK) << keel_last_error();
  EXPECT_TRUE(output_named(result, "score").empty());
  keel_result_free(result);
}

TEST_F(CApiTest, ThreadsRunOneModelAtOnce) {
  const std::vector<float> wanted = expected("score");
  std::vector<std::jthread> threads;
  std::vector<int> wrong(8);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      const std::vector<keel_tensor> inputs = three_rows();
      for (int i = 0; i < 25; ++i) {
        keel_result* result = nullptr;
        const keel_status status = keel_run(model_, nullptr, inputs.data(), 3, &result);
        keel_tensor output = {};
        if (status != KEEL_OK || keel_result_find(result, "score", &output) != KEEL_OK ||
            floats_of(output) != wanted) {
          ++count;
        }
        keel_result_free(result);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, std::vector<int>(8));
}

TEST_F(CApiTest, EachThreadHasItsOwnLastError) {
  EXPECT_EQ(keel_model_load(nullptr, nullptr), KEEL_VALUE_ERROR);
  const std::string here = keel_last_error();
  std::string fresh = "?", there;
  std::jthread([&] {
    fresh = keel_last_error();
    size_t count = 0;
    keel_input_count(model_, "other", &count);
    there = keel_last_error();
  }).join();
  EXPECT_EQ(fresh, "");
  EXPECT_NE(there, here);
  EXPECT_EQ(keel_last_error(), here);
}

TEST_F(CApiTest, ALongErrorIsCutBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 2000; ++i) name += "\xC3\xA9";
  size_t count = 0;
  EXPECT_EQ(keel_input_count(model_, name.c_str(), &count), KEEL_VALUE_ERROR);
  const std::string text = keel_last_error();
  EXPECT_LT(text.size(), 2048U);
  EXPECT_EQ(text.substr(text.size() - 2), "\xC3\xA9");
}

TEST(CApiSequentialTest, TheInputOfASequentialModelHasItsName) {
  const TemporaryFolder folder;
  const Sequential model(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2}, .name = "x"}),
                  layers::Dense({.units = 1, .name = "y"})}});
  save_model(model, folder / "a.keras");
  keel_model* loaded = nullptr;
  ASSERT_EQ(keel_model_load((folder / "a.keras").c_str(), &loaded), KEEL_OK) << keel_last_error();
  keel_spec spec = {};
  ASSERT_EQ(keel_input_spec(loaded, nullptr, 0, &spec), KEEL_OK);
  EXPECT_STREQ(spec.name, "x");
  ASSERT_EQ(keel_output_spec(loaded, nullptr, 0, &spec), KEEL_OK);
  EXPECT_STREQ(spec.name, "y");
  keel_model_free(loaded);
}

}  // namespace keel::c_api_test

// Tests savedmodel/keras/internal/signature_files.cc.
#include <keel/savedmodel/keras/signature.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/data/tfrecord.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::signature_test {

using data::FixedLenFeature;
using data::RaggedFeature;
using data::VarLenFeature;
using layers::Dense;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::ids;
using testing_support::message_of;
using testing_support::strings;
using testing_support::TemporaryFolder;

// A model that scores a user's age and watched items: outputs "score" and "flag".
Functional ranker() {
  const Tensor age = layers::input({.shape = {1}, .name = "age"});
  const Tensor id = layers::input({.shape = {1}, .dtype = DType::kInt32, .name = "id"});
  const Tensor embedded = layers::Embedding({.input_dim = 5, .output_dim = 2, .name = "table"})(id);
  const Tensor flat = layers::Flatten({.name = "flat"})(embedded);
  const Tensor all = layers::Concatenate({.name = "all"})(Tensors::list({age, flat})).tensor();
  const Tensor score = Dense({.units = 1, .name = "score"})(all);
  const Tensor flag = Dense({.units = 1, .name = "flag"})(all);
  return Functional({.inputs = Tensors::list({age, id}),
                     .outputs = Tensors::list({score, flag}),
                     .name = "ranker"});
}

ExampleFeatures ranker_features() {
  return {
      {"age",
       {.feature = FixedLenFeature{.shape = {1}, .default_value = Tensor::scalar<float>(30.5F)}}},
      {"user_id", {.feature = FixedLenFeature{.dtype = DType::kInt64}, .input = "id"}}};
}

const Tensor kAges = Tensor::from<float>({20, 30.5F}, {2, 1});
const Tensor kIds = Tensor::from<int32_t>({1, 4}, {2, 1});

Tensor ranker_examples() {
  return strings(
      {data::serialize_example({{"age", Tensor::scalar<float>(20)}, {"user_id", ids({1})}}),
       data::serialize_example({{"user_id", ids({4})}})});
}

std::vector<float> score_of(const Tensors& outputs) {
  return outputs["score"].tensor().to_vector<float>();
}

std::vector<float> direct_score(const ModelHandle& model) {
  return model(Tensors::list({kAges, kIds})).items()[0].tensor().to_vector<float>();
}

TEST(SignatureTest, TheDefaultSignatureUsesInputAndOutputNames) {
  const Functional model = ranker();
  const Signature serve{ModelHandle(model)};
  const Tensors outputs = serve({{"age", kAges}, {"id", kIds}});
  EXPECT_EQ(outputs.structure(), "{flag: *, score: *}");
  EXPECT_EQ(score_of(outputs), direct_score(model));
  EXPECT_EQ(score_of(serve(Tensors::list({kAges, kIds}))), direct_score(model));
  EXPECT_EQ(serve.inputs().at("age").shape, Shape({kUnknown, 1}));
  EXPECT_EQ(serve.inputs().at("id").dtype, DType::kInt32);
  EXPECT_EQ(serve.inputs().size(), 2U);
}

TEST(SignatureTest, SerializedExamplesAreParsedAndFeedTheInputs) {
  const Functional model = ranker();
  const Signature serve(model, ranker_features());
  EXPECT_EQ(score_of(serve(ranker_examples())), direct_score(model));
  EXPECT_EQ(score_of(serve({{"examples", ranker_examples()}})), direct_score(model));
  EXPECT_EQ(serve.inputs().at("examples").dtype, DType::kString);
}

TEST(SignatureTest, BothFileFormatsStoreSignatures) {
  const TemporaryFolder folder;
  const Functional model = ranker();
  for (const char* name : {"a.keras", "a.h5"}) {
    save_model(model, folder / name, {.signatures = {{"serve_examples", ranker_features()}}});
    const Signatures served = signatures(folder / name);
    ASSERT_EQ(served.size(), 2U);
    EXPECT_EQ(score_of(served.at("serve_examples")(ranker_examples())), direct_score(model));
    EXPECT_EQ(score_of(served.at("serving_default")({{"age", kAges}, {"id", kIds}})),
              direct_score(model));
    const ModelHandle loaded = load_model(folder / name);
    EXPECT_EQ(score_of(signatures(loaded, folder / name).at("serve_examples")(ranker_examples())),
              direct_score(model));
  }
}

TEST(SignatureTest, TheDefaultSignatureMayTakeExamples) {
  const TemporaryFolder folder;
  save_model(ranker(), folder / "a.keras", {.signatures = {{kServingDefault, ranker_features()}}});
  const Signatures served = signatures(folder / "a.keras");
  ASSERT_EQ(served.size(), 1U);
  EXPECT_TRUE(served.at(kServingDefault).inputs().contains("examples"));
}

TEST(SignatureTest, FilesWithoutSignaturesHaveTheDefaultSignature) {
  const TemporaryFolder folder;
  for (const char* name : {"a.keras", "a.h5"}) {
    save_model(ranker(), folder / name);
    EXPECT_EQ(signatures(folder / name).size(), 1U);
    EXPECT_TRUE(read_signature_specs(folder / name).empty());
  }
  EXPECT_FALSE(Hdf5File(folder / "a.h5").has_attribute("/", kSignaturesKey));
}

TEST(SignatureTest, MetadataIsReadableByKeras) {
  const TemporaryFolder folder;
  save_model(ranker(), folder / "a.keras", {.signatures = {{"serve", ranker_features()}}});
  const Config metadata = parse_json(ZipFile(folder / "a.keras").read("metadata.json", 1 << 20));
  EXPECT_EQ(metadata["keras_version"], Config("3.8.0"));
  EXPECT_TRUE(metadata.find("date_saved") != nullptr);
  EXPECT_EQ(metadata.entries().size(), 3U);
}

TEST(SignatureTest, EveryFeatureKindRoundTrips) {
  const SignatureSpecs specs = {
      {"s",
       {{"a",
         {.feature = FixedLenFeature{.shape = {2},
                                     .default_value = Tensor::from<float>({0.1F, -2}, {2})}}},
        {"b",
         {.feature = FixedLenFeature{.dtype = DType::kString,
                                     .default_value = Tensor::scalar<std::string>("\u00e9")},
          .input = "other"}},
        {"c",
         {.feature = FixedLenFeature{.dtype = DType::kInt64,
                                     .default_value = Tensor::scalar<int64_t>(
                                         std::numeric_limits<int64_t>::max())}}},
        {"d", {.feature = FixedLenFeature{}}},
        {"e", {.feature = VarLenFeature{DType::kString}}},
        {"f", {.feature = RaggedFeature{DType::kInt64}}}}}};
  const SignatureSpecs again = signature_specs_from(parse_json(to_json(to_config(specs))));
  EXPECT_EQ(to_config(again), to_config(specs));
  const auto& features = again.at("s");
  EXPECT_EQ(std::get<FixedLenFeature>(features.at("a").feature).default_value.to_vector<float>(),
            std::vector<float>({0.1F, -2}));
  EXPECT_EQ(std::get<FixedLenFeature>(features.at("b").feature).default_value.item<std::string>(),
            "\u00e9");
  EXPECT_EQ(features.at("b").input, "other");
  EXPECT_FALSE(std::get<FixedLenFeature>(features.at("d").feature).default_value);
  EXPECT_EQ(features.at("d").input, "d");
}

TEST(SignatureTest, SparseAndRaggedInputsAcceptFeaturesOfAnyLength) {
  const SparseTensor sparse =
      layers::sparse_input({.shape = {3}, .dtype = DType::kInt32, .name = "s"});
  const RaggedTensor ragged = layers::ragged_input({.dtype = DType::kInt64, .name = "r"});
  const Tensors a = layers::EmbedReduce({.input_dim = 9, .output_dim = 2, .name = "a"})(sparse);
  const Tensors b = layers::EmbedReduce({.input_dim = 9, .output_dim = 2, .name = "b"})(ragged);
  const Functional model(
      {.inputs = {{"r", ragged}, {"s", sparse}}, .outputs = {{"a", a}, {"b", b}}});
  const Signature serve(model, {{"r", {.feature = RaggedFeature{DType::kInt64}}},
                                {"s", {.feature = VarLenFeature{DType::kInt64}}}});
  const auto example = [](const std::vector<int64_t>& r, const std::vector<int64_t>& s) {
    return data::serialize_example({{"r", ids(r)}, {"s", ids(s)}});
  };
  const Tensors served = serve(strings({example({1, 2}, {3}), example({4}, {})}));
  const Tensors direct = model(Tensors{
      {"r", RaggedTensor::from_rows<int64_t>({{1, 2}, {4}})},
      {"s", SparseTensor{
                Tensor::from<int64_t>({0, 0}, {1, 2}), Tensor::from<int32_t>({3}, {1}), {2, 3}}}});
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(served[name].tensor().to_vector<float>(), direct[name].tensor().to_vector<float>());
  }
  EXPECT_THAT(message_of<ValueError>([&] { serve(strings({example({}, {1, 2, 3, 4})})); }),
              HasSubstr("feature 's' feeds input 's', which takes at most 3 values, received 4"));
}

TEST(SignatureTest, SequentialModelsHaveSignatures) {
  const TemporaryFolder folder;
  const Sequential model({.layers = {LayerHandle<InputLayer>(InputLayerOptions{
                                         .batch_shape = {kUnknown, 2}, .name = "x"}),
                                     Dense({.units = 1, .name = "y"})}});
  save_model(model, folder / "a.keras",
             {.signatures = {{"serve", {{"x", {.feature = FixedLenFeature{.shape = {2}}}}}}}});
  const Tensor x = Tensor::from<float>({1, 2}, {1, 2});
  const Signatures served = signatures(folder / "a.keras");
  const Tensor examples = strings({data::serialize_example({{"x", x}})});
  const std::vector<float> expected = model(x).to_vector<float>();
  EXPECT_EQ(served.at("serve")(examples)["y"].tensor().to_vector<float>(), expected);
  EXPECT_EQ(served.at("serving_default")(x)["y"].tensor().to_vector<float>(), expected);
}

std::string error_of_features(const ExampleFeatures& features) {
  return message_of<Error>([&] { Signature(ranker(), features); });
}

TEST(SignatureTest, OneUserAndManyItemsReachTheirTowers) {
  const TemporaryFolder folder;
  const Tensor user = layers::input({.shape = {4}, .name = "user"});
  const Tensor item = layers::input({.shape = {3}, .name = "item"});
  const Tensor left = Dense({.units = 2, .name = "left"})(user);
  const Tensor right = Dense({.units = 2, .name = "right"})(item);
  const Functional model(
      {.inputs = Tensors::list({user, item}), .outputs = Tensors::list({left, right})});
  save_model(model, folder / "towers.keras");
  const Signature serve = signatures(folder / "towers.keras").at(kServingDefault);
  for (int64_t items : {1, 7}) {
    const Tensor a = Tensor::full<float>({1, 4}, 0.5F), b = Tensor::full<float>({items, 3}, 2);
    const Tensors expected = model(Tensors::list({a, b}));
    const Tensors received = serve({{"user", a}, {"item", b}});
    for (const char* name : {"left", "right"}) {
      const Tensor& e = expected.items()[name == std::string("right")].tensor();
      EXPECT_EQ(received[name].tensor().shape(), e.shape());
      EXPECT_EQ(received[name].tensor().to_vector<float>(), e.to_vector<float>());
    }
  }
}

TEST(SignatureTest, FeaturesThatDoNotFitTheModelAreErrors) {
  const auto with = [](const std::string& name, const ExampleFeature& feature) {
    ExampleFeatures out = ranker_features();
    out[name] = feature;
    return error_of_features(out);
  };
  ExampleFeatures without = ranker_features();
  without.erase("age");
  EXPECT_EQ(error_of_features(without),
            "Signature: input 'age' of the model has no feature; add one that feeds it");
  EXPECT_EQ(with("more", {.feature = FixedLenFeature{}}),
            "Signature: feature 'more' feeds input 'more', which model ranker does not have");
  EXPECT_EQ(with("years", {.feature = FixedLenFeature{}, .input = "age"}),
            "Signature: input 'age' is fed by two features, 'age' and 'years'");
  EXPECT_EQ(
      with("age", {.feature = VarLenFeature{DType::kFloat32}}),
      "Signature: feature 'age' feeds input 'age', which requires a FixedLenFeature, received a "
      "VarLenFeature");
  EXPECT_EQ(with("age", {.feature = FixedLenFeature{.shape = {2}}}),
            "Signature: feature 'age' feeds input 'age' of shape (?, 1), received (?, 2)");
  EXPECT_EQ(with("age", {.feature = FixedLenFeature{.dtype = DType::kString}}),
            "Signature: feature 'age' feeds input 'age', which requires float32, received string");
}

TEST(SignatureTest, SavingAnIncompatibleSignatureIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  const std::string message = message_of<ValueError>(
      [&] { save_model(ranker(), folder / "a.keras", {.signatures = {{"wrong", {}}}}); });
  EXPECT_THAT(message, StartsWith("signature 'wrong'"));
  ExampleFeatures bytes = ranker_features();
  bytes["user_id"].feature = FixedLenFeature{.dtype = DType::kFloat64};
  EXPECT_THROW(save_model(ranker(), folder / "a.h5", {.signatures = {{"wrong", bytes}}}),
               TypeError);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.keras"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
}

TEST(SignatureTest, WrongInputsAreErrors) {
  const Signature serve{ModelHandle(ranker())};
  EXPECT_EQ(message_of<ValueError>([&] { serve({{"age", kAges}}); }),
            "Signature: requires the inputs {age, id}, received {age: *}");
  EXPECT_THROW(serve({{"age", kAges}, {"identity", kIds}}), ValueError);
  const Signature examples(ranker(), ranker_features());
  EXPECT_THROW(examples({{"serialized", ranker_examples()}}), ValueError);
  EXPECT_THROW(examples(kAges), TypeError);
  EXPECT_THROW(examples(strings({"damaged"})), ValueError);
}

TEST(SignatureTest, DamagedSignaturesAreErrorsThatNameTheFile) {
  for (const char* json :
       {"nonsense", "[]", R"({"s": {}})", R"({"s": {"features": {"x": {"kind": "Odd"}}}})",
        R"({"s": {"features": {"x": {"kind": "Odd", "dtype": "int64", "input": "x"}}}})",
        R"({"s": {"features": {"x": {"kind": "FixedLenFeature", "dtype": "int64", "shape": [2],
            "default_value": [1], "input": "x"}}}})",
        R"({"s": {"features": {"x": {"kind": "FixedLenFeature", "dtype": "int64", "shape": [2],
            "default_value": "text", "input": "x"}}}})"}) {
    const TemporaryFolder folder;
    Hdf5Writer file(folder / "a.h5");
    file.write_attribute("/", kSignaturesKey, json);
    file.commit();
    EXPECT_THAT(message_of<Error>([&] { read_signature_specs(folder / "a.h5"); }),
                HasSubstr(folder / "a.h5"))
        << json;
  }
}

}  // namespace keel::signature_test

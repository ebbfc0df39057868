// Tests savedmodel/keras/dialect/keras_interactions.cc.
#include <keel/savedmodel/keras/for_keras.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/keras_archives.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::for_keras_test {

using layers::Dense;
using layers::TPUEmbedding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::config_in;
using testing_support::expect_near;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using testing_support::values_of;

Table table(const std::string& name, const std::string& combiner = "mean") {
  return make_table({.vocabulary_size = 7, .dim = 2, .combiner = combiner, .name = name});
}

TEST(ForKerasTest, DenseFeaturesBecomeEmbeddings) {
  const TemporaryFolder folder;
  const Table users = table("users");
  const Tensor user = layers::input({.dtype = DType::kInt64, .name = "user"});
  const Tensor friends = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "friends"});
  const TPUEmbedding embedding({.feature_config = {{"user", FeatureConfig{.table = users}},
                                                   {"friends", FeatureConfig{.table = users}}},
                                .name = "embedding"});
  const Tensors inputs = {{"user", user}, {"friends", friends}};
  const Functional model({.inputs = inputs, .outputs = embedding(inputs), .name = "m"});
  save_model(model, folder / "a.keras", {.for_keras = true});
  const ModelHandle same = load_model(folder / "a.keras");
  const Tensors ids = {{"user", Tensor::from<int64_t>({6, 0}, {2})},
                       {"friends", Tensor::from<int64_t>({1, 2, 3, 4, 5, 6}, {2, 3})}};
  EXPECT_EQ(values_of(same(ids)["user"]), values_of(model(ids)["user"]));
  EXPECT_EQ(values_of(same(ids)["friends"]), values_of(model(ids)["friends"]));
  EXPECT_EQ(same->weights().size(), 1U) << "features of one table share its layer";
  for (const auto& layer : same->layers()) EXPECT_NE(layer->class_name(), "TPUEmbedding");
}

// A model with one sparse feature [batch, 3], optionally with weights.
Functional pooled(const std::string& combiner, bool weighted) {
  const InputOptions ids_options = {.shape = {3}, .dtype = DType::kInt64, .name = "seen"};
  const SparseTensor ids = layers::sparse_input(ids_options);
  const TPUEmbedding embedding(
      {.feature_config = {{"seen", FeatureConfig{.table = table("items", combiner)}}},
       .name = "embedding"});
  Tensors inputs = {{"seen", ids}};
  TPUEmbeddingCallOptions options;
  if (weighted) {
    const SparseTensor weights = layers::sparse_input({.shape = {3}, .name = "times"});
    options.weights = Nest<std::optional<TensorLike>>{{"seen", std::optional<TensorLike>(weights)}};
    inputs = {{"seen", ids}, {"times", weights}};
  }
  const Tensors found = embedding(Tensors{{"seen", ids}}, options);
  return Functional({.inputs = inputs, .outputs = found["seen"], .name = "m"});
}

SparseTensor sparse(const Tensor& values) {
  // Rows of 2, 0 and 3 values.
  return {.indices = Tensor::from<int64_t>({0, 0, 0, 1, 2, 0, 2, 1, 2, 2}, {5, 2}),
          .values = values,
          .dense_shape = {3, 3}};
}

Tensor dense(const std::vector<float>& values) {
  return Tensor::from<float>({values[0], values[1], 0, 0, 0, 0, values[2], values[3], values[4]},
                             {3, 3});
}

TEST(ForKerasTest, SparseFeaturesOfKnownLengthArePooledByLayersOfKeras) {
  const TemporaryFolder folder;
  const std::vector<float> ids = {6, 1, 2, 2, 5};
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    const Functional model = pooled(combiner, false);
    const Tensors sparse_ids = {
        {"seen", sparse(Tensor::from<float>(ids, {5}).cast(DType::kInt64))}};
    const std::vector<float> expected = values_of(model(sparse_ids));
    save_model(model, folder / "a.keras", {.for_keras = true});
    const Tensors dense_ids = {{"seen", dense(ids).cast(DType::kInt64)},
                               {"seen_weights", dense({1, 1, 1, 1, 1})}};
    expect_near(values_of(load_model(folder / "a.keras")(dense_ids)), expected, {.absolute = 1e-6});
  }
}

TEST(ForKerasTest, FeatureWeightsRemainAnInput) {
  const std::vector<float> ids = {6, 1, 2, 2, 5};
  const std::vector<float> weights = {1, 2, 0.5, 3, 1};
  for (const char* combiner : {"sum", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    const Functional model = pooled(combiner, true);
    const Tensors sparse_ids = {{"seen", sparse(Tensor::from<float>(ids, {5}).cast(DType::kInt64))},
                                {"times", sparse(Tensor::from<float>(weights, {5}))}};
    const Tensors dense_ids = {{"seen", dense(ids).cast(DType::kInt64)}, {"times", dense(weights)}};
    expect_near(values_of(keras_model_of(*model)(dense_ids)), values_of(model(sparse_ids)),
                {.absolute = 1e-6});
  }
}

template <class Fn>
void expect_refused(const char* feature, const char* reason, Fn fn) {
  const std::string message = message_of<ValueError>(fn);
  EXPECT_THAT(message, HasSubstr(feature));
  EXPECT_THAT(message, HasSubstr(reason));
}

// A model with one ragged or sparse feature "seen" and, if `weighted`, its weights "times".
Functional model_of(const FeatureConfig& feature, bool is_ragged, bool weighted) {
  const InputOptions of_ids = {.shape = {kUnknown}, .dtype = DType::kInt64, .name = "seen"};
  const InputOptions of_weights = {.shape = {kUnknown}, .name = "times"};
  const auto make = [&](const InputOptions& options) {
    return is_ragged ? TensorLike(layers::ragged_input(options))
                     : TensorLike(layers::sparse_input(options));
  };
  const TPUEmbedding embedding({.feature_config = {{"seen", feature}}, .name = "embedding"});
  const TensorLike ids = make(of_ids);
  Tensors inputs = {{"seen", ids}};
  TPUEmbeddingCallOptions options;
  if (weighted) {
    const TensorLike weights = make(of_weights);
    options.weights = Nest<std::optional<TensorLike>>{{"seen", std::optional<TensorLike>(weights)}};
    inputs = {{"seen", ids}, {"times", weights}};
  }
  const Tensors found = embedding(Tensors{{"seen", ids}}, options);
  return Functional({.inputs = inputs, .outputs = found["seen"], .name = "m"});
}

// Rows of 2, 0 and 3 values.
TensorLike rows_of(const Tensor& values, bool is_ragged) {
  if (!is_ragged) return sparse(values);
  return RaggedTensor{.values = values, .row_splits = Tensor::from<int64_t>({0, 2, 2, 5}, {4})};
}

TEST(ForKerasTest, FeaturesOfUnknownLengthReadPaddedIds) {
  const TemporaryFolder folder;
  const Tensor ids = Tensor::from<int64_t>({6, 1, 2, 2, 5}, {5});
  const std::vector<float> weights = {1, 2, 0.5, 3, 1};
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    for (const bool is_ragged : {false, true}) {
      for (const bool weighted : {false, true}) {
        SCOPED_TRACE(str(combiner, is_ragged ? " ragged" : " sparse", weighted ? " weighted" : ""));
        const Functional model = model_of({.table = table("items", combiner)}, is_ragged, weighted);
        Tensors features = {{"seen", rows_of(ids, is_ragged)}};
        Tensors padded = {{"seen", dense({6, 1, 2, 2, 5}).cast(DType::kInt64)},
                          {weighted ? "times" : "seen_weights",
                           dense(weighted ? weights : std::vector<float>(5, 1))}};
        if (weighted) {
          features = {{"seen", features["seen"]},
                      {"times", rows_of(Tensor::from<float>(weights, {5}), is_ragged)}};
        }
        const std::vector<float> expected = values_of(model(features));
        for (const char* name : {"a.keras", "a.h5"}) {
          save_model(model, folder / name, {.for_keras = true});
          const ModelHandle same = load_model(folder / name);
          for (const auto& layer : same->layers()) EXPECT_NE(layer->class_name(), "TPUEmbedding");
          expect_near(values_of(same(padded)), expected, {.absolute = 1e-6});
        }
      }
    }
  }
}

// Adding 1000 to all rows adds 1000 to their mean: the division is exact up to rounding.
TEST(ForKerasTest, TheMeanOfWeightedRowsIsExactForLargeRowsAndAnyWeights) {
  const Functional model = model_of({.table = table("items", "mean")}, true, true);
  const auto& embedding = dynamic_cast<TPUEmbeddingLayer&>(*model->get_layer("embedding"));
  std::vector<float> large;
  for (int i = 0; i < 14; ++i) large.push_back(1000 + static_cast<float>(i));
  const auto tables = embedding.embedding_tables();
  model->trainable_variables()[0].assign(Tensor::from<float>(large, tables[0].second.shape()));
  const ModelHandle same = keras_model_of(*model);
  for (const float scale : {1e-3F, 1.0F, 1e4F}) {
    const std::vector<float> weights = {scale, 2 * scale, scale, 3 * scale, scale};
    const std::vector<float> expected = values_of(
        model(Tensors{{"seen", rows_of(Tensor::from<int64_t>({6, 1, 2, 2, 5}, {5}), true)},
                      {"times", rows_of(Tensor::from<float>(weights, {5}), true)}}));
    expect_near(values_of(same(Tensors{{"seen", dense({6, 1, 2, 2, 5}).cast(DType::kInt64)},
                                       {"times", dense(weights)}})),
                expected, {.absolute = 1e-3});
  }
}

TEST(ForKerasTest, SequencesArePaddedWithZeros) {
  const TemporaryFolder folder;
  const Tensor ids = Tensor::from<int64_t>({6, 1, 2, 2, 5}, {5});
  for (const bool is_ragged : {false, true}) {
    const Functional model =
        model_of({.table = table("items"), .max_sequence_length = 3}, is_ragged, false);
    const std::vector<float> expected =
        values_of(model(Tensors{{"seen", rows_of(ids, is_ragged)}}));
    ASSERT_EQ(expected.size(), 18U);
    save_model(model, folder / "a.keras", {.for_keras = true});
    EXPECT_EQ(values_of(load_model(folder / "a.keras")(
                  Tensors{{"seen", dense({6, 1, 2, 2, 5}).cast(DType::kInt64)},
                          {"seen_weights", dense({1, 1, 1, 1, 1})}})),
              expected);
  }
}

TEST(ForKerasTest, InvalidIdsThatAreIgnoredHaveTheWeightZero) {
  const FeatureConfig feature = {.table = table("items", "mean"), .id_policy = IdPolicy::ignore()};
  const Functional model = model_of(feature, true, false);
  const Tensors features = {
      {"seen", rows_of(Tensor::from<int64_t>({6, 700, -1, 2, 5}, {5}), true)}};
  expect_near(
      values_of(keras_model_of(*model)(Tensors{{"seen", dense({6, 0, 0, 2, 5}).cast(DType::kInt64)},
                                               {"seen_weights", dense({1, 0, 0, 1, 1})}})),
      values_of(model(features)), {.absolute = 1e-6});

  const Tensor user = layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "user"});
  const TPUEmbedding embedding({.feature_config = {{"user", feature}}, .name = "e"});
  const Functional of_dense(
      {.inputs = Tensors{{"user", user}}, .outputs = embedding(Tensors{{"user", user}})["user"]});
  EXPECT_EQ(values_of(keras_model_of(*of_dense)(
                Tensors{{"user", Tensor::from<int64_t>({1, 0, 3, 4}, {2, 2})},
                        {"user_weights", Tensor::from<float>({1, 0, 1, 1}, {2, 2})}})),
            values_of(of_dense(Tensors{{"user", Tensor::from<int64_t>({1, 9, 3, 4}, {2, 2})}})));
}

TEST(ForKerasTest, InvalidIdsWithADefaultRowAreReplacedBeforehand) {
  const Functional model =
      model_of({.table = table("items", "sum"), .id_policy = IdPolicy::use_row(4)}, true, false);
  expect_near(
      values_of(keras_model_of(*model)(Tensors{{"seen", dense({6, 4, 4, 2, 5}).cast(DType::kInt64)},
                                               {"seen_weights", dense({1, 1, 1, 1, 1})}})),
      values_of(
          model(Tensors{{"seen", rows_of(Tensor::from<int64_t>({6, 700, -1, 2, 5}, {5}), true)}})),
      {.absolute = 1e-6});
}

TEST(ForKerasTest, AnInputOfTwoLengthsIsRejectedWithTheFeature) {
  const RaggedTensor ids = layers::ragged_input({.dtype = DType::kInt64, .name = "ids"});
  const TPUEmbedding embedding(
      {.feature_config = {{"all", FeatureConfig{.table = table("a")}},
                          {"few", FeatureConfig{.table = table("b"), .max_sequence_length = 2}}}});
  const Functional model(
      {.inputs = TensorLike(ids), .outputs = embedding(Tensors{{"all", ids}, {"few", ids}})});
  expect_refused("'few'", "another feature needs the same input", [&] { keras_model_of(*model); });
}

TEST(ForKerasTest, AModelOfKerasLayersIsSavedUnchanged) {
  const Sequential model(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2}}), Dense({.units = 1})}});
  EXPECT_EQ(&*keras_model_of(*model), &*model);
}

// Without for_keras, layers keep their classes and name the package that has them.
TEST(ForKerasTest, OtherFilesNameThePackageOfEachLayer) {
  const TemporaryFolder folder;
  const Functional model = pooled("sum", false);
  const Tensor crossed = layers::FeatureCross({.name = "cross"})(model->outputs()).tensor();
  const Functional whole({.inputs = model->inputs(), .outputs = Dense({.units = 1})(crossed)});
  save_model(whole, folder / "a.keras");
  std::vector<std::string> packages;
  const Config config = config_in(folder / "a.keras");
  for (const Config& layer : config["config"]["layers"].items()) {
    packages.push_back(layer["module"].string() + " " + to_json(layer["registered_name"]));
  }
  EXPECT_THAT(packages,
              ElementsAre("keras.layers null", "keel.layers \"keel>TPUEmbedding\"",
                          "keras_rs.layers \"keras_rs>FeatureCross\"", "keras.layers null"));
}

TEST(ForKerasTest, NestedModelsAreRewritten) {
  const TemporaryFolder folder;
  const auto ids_named = [](const char* name) {
    return layers::input({.shape = {3}, .dtype = DType::kInt64, .name = name});
  };
  const Tensors inner_ids = {{"ids", ids_named("ids")}};
  const TPUEmbedding embedding(
      {.feature_config = {{"ids", FeatureConfig{.table = table("t")}}}, .name = "e"});
  const Functional inner({.inputs = inner_ids,
                          .outputs = Dense({.units = 2})(embedding(inner_ids)["ids"].tensor()),
                          .name = "inner"});
  const Tensor a = ids_named("a"), b = ids_named("b");
  const Functional model(
      {.inputs = Tensors::list({a, b}),
       .outputs = Tensors::list({inner(Tensors{{"ids", a}}), inner(Tensors{{"ids", b}})}),
       .name = "outer"});
  const Tensors batch = Tensors::list(
      {Tensor::from<int64_t>({1, 2, 3}, {1, 3}), Tensor::from<int64_t>({4, 5, 6}, {1, 3})});
  for (const char* dtype : {"float32", "int8"}) {
    save_model(model, folder / "a.keras", {.for_keras = true, .table_dtype = dtype});
    const ModelHandle same = load_model(folder / "a.keras");
    EXPECT_EQ(same->weights().size(), std::string(dtype) == "int8" ? 4U : 3U) << "one table";
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<float> x = values_of(same(batch)[i]), y = values_of(model(batch)[i]);
      ASSERT_EQ(x.size(), y.size());
      for (size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], y[j], dtype[0] == 'i' ? 0.02 : 0);
    }
  }
}

TEST(ForKerasTest, ANestedModelWithSparseInputsIsRejected) {
  const Functional inner = pooled("sum", false);
  const SparseTensor ids =
      layers::sparse_input({.shape = {3}, .dtype = DType::kInt64, .name = "outer_ids"});
  const Functional model(
      {.inputs = TensorLike(ids), .outputs = inner(Tensors{{"seen", ids}}), .name = "outer"});
  expect_refused("'m' in 'outer'", "outermost", [&] { keras_model_of(*model); });
}

void expect_no_layer_of_keras_rs(const Layer& layer) {
  for (const auto& child : layer.sublayers()) {
    EXPECT_NE(child->class_name(), "DotInteraction");
    EXPECT_NE(child->class_name(), "FeatureCross");
    expect_no_layer_of_keras_rs(*child);
  }
}

// The vectors (1, 2), (3, 4) and (5, 6) have the dot products 11, 17 and 39, and 5, 25 and 61 with
// themselves.
TEST(ForKerasTest, DotInteractionBecomesLayersOfKeras) {
  const TemporaryFolder folder;
  const Tensors x =
      Tensors::list({Tensor::from<float>({1, 2}, {1, 2}), Tensor::from<float>({3, 4}, {1, 2}),
                     Tensor::from<float>({5, 6}, {1, 2})});
  const Tensor stacked = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 3, 2});
  for (const bool self : {false, true}) {
    const std::vector<float> expected =
        self ? std::vector<float>{5, 11, 25, 17, 39, 61} : std::vector<float>{11, 17, 39};
    const auto interaction = [&] {
      return layers::DotInteraction({.self_interaction = self, .name = "dots"});
    };
    const auto vector = [](const char* name) {
      return layers::input({.shape = {2}, .name = name});
    };
    const Tensors inputs = Tensors::list({vector("a"), vector("b"), vector("c")});
    save_model(Functional({.inputs = inputs, .outputs = interaction()(inputs)}), folder / "list.h5",
               {.for_keras = true});
    const ModelHandle of_list = load_model(folder / "list.h5");
    expect_no_layer_of_keras_rs(*of_list);
    expect_near(values_of(of_list(x)), expected, {.absolute = 1e-6});

    const Tensor input = layers::input({.shape = {3, 2}, .name = "x"});
    save_model(Functional({.inputs = input, .outputs = interaction()(Tensors(input))}),
               folder / "stacked.keras", {.for_keras = true});
    const ModelHandle of_stack = load_model(folder / "stacked.keras");
    expect_no_layer_of_keras_rs(*of_stack);
    expect_near(values_of(of_stack(Tensors(stacked))), expected, {.absolute = 1e-6});
  }
}

// x0 (W x + b + s x) + x with W = [[1, 2], [3, 4]] (applied as x W), b = (1, -1), s = 0.5,
// x0 = (1, 2), x = (3, -1): x W = (0, 2), so (1 (0 + 1 + 1.5) + 3, 2 (2 - 1 - 0.5) - 1).
TEST(ForKerasTest, FeatureCrossBecomesLayersOfKeras) {
  const TemporaryFolder folder;
  const layers::FeatureCross cross({.diag_scale = 0.5, .name = "cross"});
  const Tensors inputs = Tensors::list(
      {layers::input({.shape = {2}, .name = "x0"}), layers::input({.shape = {2}, .name = "x"})});
  const Functional inner({.inputs = inputs, .outputs = cross(inputs), .name = "inner"});
  cross->kernel().assign(Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
  cross->bias().assign(Tensor::from<float>({1, -1}, {2}));
  const Tensors x =
      Tensors::list({Tensor::from<float>({1, 2}, {1, 2}), Tensor::from<float>({3, -1}, {1, 2})});
  const Tensors outer_inputs = Tensors::list({layers::input({.shape = {2}, .name = "first"}),
                                              layers::input({.shape = {2}, .name = "second"})});
  const Functional outer({.inputs = outer_inputs, .outputs = inner(outer_inputs)});
  save_model(outer, folder / "cross.keras", {.for_keras = true});
  const ModelHandle same = load_model(folder / "cross.keras");
  expect_no_layer_of_keras_rs(*same);
  expect_near(values_of(same(x)), {5.5, 0}, {.absolute = 1e-6});
  expect_near(values_of(outer(x)), {5.5, 0}, {.absolute = 1e-6});
}

TEST(ForKerasTest, ASharedFeatureCrossKeepsOneSetOfWeights) {
  const TemporaryFolder folder;
  const layers::FeatureCross cross({.projection_dim = 1, .pre_activation = "tanh"});
  const Tensor x0 = layers::input({.shape = {3}, .name = "x0"});
  const Tensor once = cross(Tensors(x0)).tensor();
  const Functional model({.inputs = x0, .outputs = cross(Tensors::list({x0, once}))});
  save_model(model, folder / "twice.keras", {.for_keras = true});
  const ModelHandle same = load_model(folder / "twice.keras");
  expect_no_layer_of_keras_rs(*same);
  EXPECT_EQ(same->weights().size(), 3U);
  const Tensors x(Tensor::from<float>({1, -2, 0.5, 3, 0, 1}, {2, 3}));
  expect_near(values_of(same(x)), values_of(model(x)), {.absolute = 1e-6});
}

TEST(ForKerasTest, NonFunctionalModelsWithSuchLayersAreRejected) {
  const TPUEmbedding embedding(
      {.feature_config = Nest<FeatureConfig>(FeatureConfig{.table = table("t")}), .name = "e"});
  const Sequential model({.layers = {embedding}, .name = "s"});
  model(Tensors(Tensor::from<int64_t>({1, 2}, {2})));
  expect_refused("'e'", "functional", [&] { keras_model_of(*model); });
}

}  // namespace keel::for_keras_test

#include "savedmodel/for_keras.h"

#include "gtest/gtest.h"

#include "layers/core/dense.h"
#include "layers/embedding/tpu_embedding.h"
#include "layers/functional.h"
#include "layers/merging/concatenate.h"
#include "layers/sequential.h"
#include "savedmodel/saved_model.h"
#include "tests/savedmodel/temp_folder.h"

namespace keel::for_keras_test {

using layers::Dense;
using layers::TPUEmbedding;

std::vector<float> of(const Tensors& t) { return t.tensor().to_vector<float>(); }

Table table(const std::string& name, const std::string& combiner = "mean") {
  return make_table({.vocabulary_size = 7, .dim = 2, .combiner = combiner, .name = name});
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
}

TEST(ForKerasTest, DenseFeaturesBecomeEmbeddings) {
  const TempFolder folder;
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
  EXPECT_EQ(of(same(ids)["user"]), of(model(ids)["user"]));
  EXPECT_EQ(of(same(ids)["friends"]), of(model(ids)["friends"]));
  EXPECT_EQ(same->weights().size(), 1U) << "features of one table share its layer";
  for (const auto& layer : same->layers()) EXPECT_NE(layer->class_name(), "TPUEmbedding");
}

// A model of one sparse feature [batch, 3], and one with weights of its own if asked for.
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
  const TempFolder folder;
  const std::vector<float> ids = {6, 1, 2, 2, 5};
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    const Functional model = pooled(combiner, false);
    const Tensors sparse_ids = {
        {"seen", sparse(Tensor::from<float>(ids, {5}).cast(DType::kInt64))}};
    const std::vector<float> expected = of(model(sparse_ids));
    save_model(model, folder / "a.keras", {.for_keras = true});
    const Tensors dense_ids = {{"seen", dense(ids).cast(DType::kInt64)},
                               {"seen_weights", dense({1, 1, 1, 1, 1})}};
    expect_near(of(load_model(folder / "a.keras")(dense_ids)), expected);
  }
}

TEST(ForKerasTest, WeightsOfAFeatureStayAnInput) {
  const std::vector<float> ids = {6, 1, 2, 2, 5};
  const std::vector<float> weights = {1, 2, 0.5, 3, 1};
  for (const char* combiner : {"sum", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    const Functional model = pooled(combiner, true);
    const Tensors sparse_ids = {{"seen", sparse(Tensor::from<float>(ids, {5}).cast(DType::kInt64))},
                                {"times", sparse(Tensor::from<float>(weights, {5}))}};
    const Tensors dense_ids = {{"seen", dense(ids).cast(DType::kInt64)}, {"times", dense(weights)}};
    expect_near(of(keras_model_of(*model)(dense_ids)), of(model(sparse_ids)));
  }
}

template <class Fn>
void expect_refused(const char* feature, const char* reason, Fn fn) {
  const std::string message = message_of<ValueError>(fn);
  EXPECT_NE(message.find(feature), std::string::npos) << message;
  EXPECT_NE(message.find(reason), std::string::npos) << message;
}

TEST(ForKerasTest, WhatKerasHasNotIsRefusedByFeatureAndReason) {
  expect_refused("'seen'", "mean", [] { keras_model_of(*pooled("mean", true)); });

  const auto ragged = [](const FeatureConfig& feature) {
    const RaggedTensor ids = layers::ragged_input({.dtype = DType::kInt64, .name = "ids"});
    const TPUEmbedding embedding({.feature_config = {{"group", {{"ids", feature}}}}});
    const Tensors inputs = {{"group", {{"ids", ids}}}};
    return Functional({.inputs = inputs, .outputs = embedding(inputs)["group"]["ids"]});
  };
  expect_refused("'group/ids'", "ragged", [&] { keras_model_of(*ragged({.table = table("t")})); });
  expect_refused("'group/ids'", "odd ids", [&] {
    keras_model_of(*ragged({.table = table("t"), .id_policy = IdPolicy::ignore()}));
  });
}

TEST(ForKerasTest, AModelOfLayersThatKerasHasIsSavedAsItIs) {
  const Sequential model(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2}}), Dense({.units = 1})}});
  EXPECT_EQ(&*keras_model_of(*model), &*model);
}

TEST(ForKerasTest, ModelsInTheModelAreRewrittenToo) {
  const TempFolder folder;
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
      const std::vector<float> x = of(same(batch)[i]), y = of(model(batch)[i]);
      ASSERT_EQ(x.size(), y.size());
      for (size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], y[j], dtype[0] == 'i' ? 0.02 : 0);
    }
  }
}

TEST(ForKerasTest, AModelInTheModelWithSparseInputsIsRefused) {
  const Functional inner = pooled("sum", false);
  const SparseTensor ids =
      layers::sparse_input({.shape = {3}, .dtype = DType::kInt64, .name = "outer_ids"});
  const Functional model(
      {.inputs = TensorLike(ids), .outputs = inner(Tensors{{"seen", ids}}), .name = "outer"});
  expect_refused("'m' in 'outer'", "outermost", [&] { keras_model_of(*model); });
}

TEST(ForKerasTest, AModelThatIsNotFunctionalIsRefusedIfItHasSuchLayers) {
  const TPUEmbedding embedding(
      {.feature_config = Nest<FeatureConfig>(FeatureConfig{.table = table("t")}), .name = "e"});
  const Sequential model({.layers = {embedding}, .name = "s"});
  model(Tensors(Tensor::from<int64_t>({1, 2}, {2})));
  expect_refused("'e'", "functional", [&] { keras_model_of(*model); });
}

}  // namespace keel::for_keras_test

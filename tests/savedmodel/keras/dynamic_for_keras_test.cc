// Tests files for Keras of models with tables for unbounded ids: savedmodel/keras/for_keras.cc and
// internal/keras_vocabularies.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/savedmodel/keras/for_keras.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/keras_archives.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_for_keras_test {

using testing::HasSubstr;
using testing_support::config_in;
using testing_support::expect_near;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::sparse;
using testing_support::strings;
using testing_support::TemporaryFolder;

struct Parts {
  NotAdmitted not_admitted = NotAdmitted::zero();
  KeyType key = KeyType::kInt64;
  std::string combiner = "mean";
  std::vector<std::string> words = {"b", "a", "c"};
};

// A dense and a pooled feature that share one table; with strings only the dense one.
Functional make_model(const Parts& parts, bool trained = true) {
  const bool has_strings = parts.key == KeyType::kString;
  const Table items = make_table(
      {.dim = 2,
       .initializer = initializers::random_uniform(-1, 1, 3),
       .optimizer = tpu::SGD({.learning_rate = 0.1}),
       .combiner = parts.combiner,
       .name = "items",
       .dynamic = DynamicVocabulary{.key = parts.key, .not_admitted = parts.not_admitted}});
  const DType dtype = has_strings ? DType::kString : DType::kInt64;
  Tensors::Dict inputs = {{"item", layers::input({.dtype = dtype, .name = "item"})}};
  Nest<FeatureConfig>::Dict features = {{"item", FeatureConfig{.table = items}}};
  if (!has_strings) {
    inputs.emplace("seen", layers::sparse_input({.shape = {3}, .dtype = dtype, .name = "seen"}));
    features.emplace("seen", FeatureConfig{.table = items});
  }
  const layers::TPUEmbedding embedding({.feature_config = features, .name = "tables"});
  const Tensors found = embedding(Tensors(inputs));
  Tensors::Items all;
  for (const TensorLike& leaf : flatten(found)) all.emplace_back(leaf);
  const Tensor joined = all.size() == 1
                            ? all[0].tensor()
                            : layers::Concatenate({})(Tensors::list(std::move(all))).tensor();
  const Functional model(
      {.inputs = Tensors(std::move(inputs)), .outputs = layers::Dense({.units = 1})(joined)});
  if (!trained) return model;
  model->compile({.optimizer = "sgd", .loss = "mse"});
  Tensors::Dict batch;
  if (has_strings) {
    batch.emplace("item", strings(parts.words));
  } else {
    batch.emplace("item", ids({7, -1, 7}));
    batch.emplace("seen", sparse(IdRows{{5, 7}, {}, {-3}}, 3));
  }
  model->fit(Tensors(std::move(batch)), floats({1, 0, 1}, {3, 1}),
             {.batch_size = 3, .verbose = Verbose::kSilent});
  return model;
}

TEST(DynamicForKerasTest, D102LookupsFollowedByEmbeddingsPredictTheSame) {
  const TemporaryFolder folder;
  for (const NotAdmitted& not_admitted :
       {NotAdmitted::zero(), NotAdmitted::default_row(), NotAdmitted::hashed(3)}) {
    for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
      const Functional model = make_model({.not_admitted = not_admitted, .combiner = combiner});
      const Tensors batch = {{"item", ids({7, 100, -4})},
                             {"seen", sparse(IdRows{{5, 101, -8}, {7}, {}}, 3)}};
      const Tensor expected = model(batch).tensor();
      const Tensors padded = {{"item", ids({7, 100, -4})},
                              {"seen", ids({5, 101, -8, 7, 0, 0, 0, 0, 0}, {3, 3})},
                              {"seen_weights", floats({1, 1, 1, 1, 0, 0, 0, 0, 0}, {3, 3})}};
      for (const char* const name : {"a.keras", "a.h5"}) {
        SCOPED_TRACE(str(name, ' ', combiner));
        save_model(model, folder / name, {.for_keras = true});
        const ModelHandle same = load_model(folder / name, {.compile = false});
        expect_near(same(padded).tensor(), expected, {.absolute = 1e-6});
        int lookups = 0, embeddings = 0;
        for (const auto& layer : same->layers()) {
          lookups += layer->class_name() == "IntegerLookup" ? 1 : 0;
          embeddings += layer->class_name() == "Embedding" ? 1 : 0;
          EXPECT_NE(layer->class_name(), "TPUEmbedding");
        }
        EXPECT_EQ(lookups, 1) << "features of one table share its layers";
        EXPECT_EQ(embeddings, 1);
      }
    }
  }
}

TEST(DynamicForKerasTest, D102TheVocabularyIsAnAssetOfAnArchive) {
  const TemporaryFolder folder;
  const Functional model = make_model({.key = KeyType::kString, .words = {"b", "", "[UNK]"}});
  save_model(model, folder / "a.keras", {.for_keras = true});
  const ZipFile archive(folder / "a.keras");
  EXPECT_EQ(archive.read("assets/layers/string_lookup/vocabulary.txt", 100), "\n[UNK]\nb");
  EXPECT_EQ(to_json(config_in(folder / "a.keras")).find("\"[UNK]\","), std::string::npos);
  const ModelHandle same = load_model(folder / "a.keras", {.compile = false});
  const Tensors batch = {{"item", strings({"[UNK]", "x", ""})}};
  expect_near(same(batch).tensor(), model(batch).tensor(), {.absolute = 1e-6});
}

TEST(DynamicForKerasTest, D102AnEmbeddingWithDynamicIds) {
  const TemporaryFolder folder;
  const Tensor input = layers::input({.shape = {2}, .dtype = DType::kString, .name = "item"});
  const layers::Embedding embedding(
      {.output_dim = 3,
       .dynamic =
           DynamicVocabulary{.key = KeyType::kString, .not_admitted = NotAdmitted::default_row()}});
  const Functional model({.inputs = input, .outputs = embedding(input)});
  model->compile({.optimizer = "sgd", .loss = "mse"});
  model->fit(strings({"a", "b"}).reshaped({1, 2}), Tensor::zeros({1, 2, 3}),
             {.verbose = Verbose::kSilent});
  const Tensor batch = strings({"b", "x"}).reshaped({1, 2});
  for (const char* const name : {"a.keras", "a.h5"}) {
    save_model(model, folder / name, {.for_keras = true});
    const ModelHandle same = load_model(folder / name, {.compile = false});
    expect_near(same(batch), model(batch), {.absolute = 1e-6});
    for (const auto& layer : same->layers())
      EXPECT_EQ(layer->get_config().find("dynamic"), nullptr);
  }
}

TEST(DynamicForKerasTest, MinCountSelectsTheVocabulary) {
  const TemporaryFolder folder;
  const Functional model = make_model({});
  save_model(model, folder / "a.keras", {.for_keras = true, .min_count = 3});
  EXPECT_EQ(ZipFile(folder / "a.keras").read("assets/layers/integer_lookup/vocabulary.txt", 100),
            "7");
}

TEST(DynamicForKerasTest, D103Rejections) {
  const TemporaryFolder folder;
  const auto error = [&](const Parts& parts, bool trained = true, const char* name = "a.h5") {
    const Functional model = make_model(parts, trained);
    if (!trained) {
      model->predict(Tensors{{"item", ids({1})}, {"seen", sparse(IdRows{{1}}, 3)}},
                     {.verbose = Verbose::kSilent});
    }
    return message_of<ValueError>([&] { save_model(model, folder / name, {.for_keras = true}); });
  };
  EXPECT_THAT(error({}, false), HasSubstr("'items' is empty"));
  EXPECT_THAT(error({.not_admitted = NotAdmitted::hashed(2), .key = KeyType::kString}),
              HasSubstr("another hash"));
  EXPECT_THAT(error({.not_admitted = NotAdmitted::ignore()}), HasSubstr("'seen'"));
  EXPECT_THAT(error({.key = KeyType::kString, .words = {"a\nb", "c", "d"}}, true, "a.keras"),
              HasSubstr("line break"));
  save_model(make_model({.key = KeyType::kString, .words = {"a\nb", "c", "d"}}), folder / "b.h5",
             {.for_keras = true});

  const Tensor input = layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "item"});
  const auto error_of = [&](const NotAdmitted& not_admitted, bool weighted, bool trained) {
    const layers::EmbedReduce reduce({.output_dim = 2,
                                      .dynamic = DynamicVocabulary{.not_admitted = not_admitted},
                                      .name = "items"});
    const Tensor weights = layers::input({.shape = {2}, .name = "weights"});
    const Tensor found = weighted ? reduce(input, {.weights = TensorLike(weights)}) : reduce(input);
    const Functional other({.inputs = Tensors::list({input, weights}), .outputs = found});
    if (trained) reduce->dynamic_table().assign_rows(ids({1}), floats({1, 2}, {1, 2}));
    const std::string message =
        message_of<ValueError>([&] { save_model(other, folder / "c.keras", {.for_keras = true}); });
    EXPECT_THAT(message, HasSubstr("EmbedReduce 'items'"));
    return message;
  };
  EXPECT_THAT(error_of(NotAdmitted::zero(), false, false), HasSubstr("is empty"));
  EXPECT_THAT(error_of(NotAdmitted::ignore(), false, true), HasSubstr("divisor of combiner mean"));
  EXPECT_THAT(error_of(NotAdmitted::zero(), true, true), HasSubstr("weights of dense ids"));
}

TEST(DynamicForKerasTest, D102EmbedReduceOfAllLayouts) {
  const TemporaryFolder folder;
  for (const NotAdmitted& not_admitted :
       {NotAdmitted::zero(), NotAdmitted::default_row(), NotAdmitted::hashed(3)}) {
    for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
      const layers::EmbedReduce reduce({.output_dim = 2,
                                        .combiner = combiner,
                                        .dynamic = DynamicVocabulary{.not_admitted = not_admitted},
                                        .name = "items"});
      const Tensor one = layers::input({.dtype = DType::kInt64, .name = "one"});
      const Tensor many = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "many"});
      const TensorLike seen =
          layers::sparse_input({.shape = {3}, .dtype = DType::kInt64, .name = "seen"});
      const TensorLike bought =
          layers::sparse_input({.shape = {3}, .dtype = DType::kInt64, .name = "bought"});
      const TensorLike prices = layers::sparse_input({.shape = {3}, .name = "prices"});
      const Tensors outputs =
          Tensors::list({reduce(Tensors(one)), reduce(Tensors(many)), reduce(Tensors(seen)),
                         reduce(Tensors(bought), {.weights = prices})});
      const Tensors inputs = {
          {"bought", bought}, {"many", many}, {"one", one}, {"prices", prices}, {"seen", seen}};
      const Functional model({.inputs = inputs, .outputs = outputs});
      reduce->dynamic_table().assign_rows(ids({-4, 5, 7}),
                                          floats({1, 2, -3, 4, 0.5F, -0.25F}, {3, 2}));
      const testing_support::FloatRows weights = {{2, 1, 0.5F}, {3}, {}};
      const Tensors batch = {{"bought", sparse(IdRows{{5, -8, 7}, {-4}, {}}, 3)},
                             {"many", ids({7, 5, 100, -4, -4, 9, 1, 2, 5}, {3, 3})},
                             {"one", ids({7, 100, -4})},
                             {"prices", sparse(weights, 3)},
                             {"seen", sparse(IdRows{{5, 101, -8}, {7}, {}}, 3)}};
      const Tensors padded = {{"bought", ids({5, -8, 7, -4, 0, 0, 0, 0, 0}, {3, 3})},
                              {"many", ids({7, 5, 100, -4, -4, 9, 1, 2, 5}, {3, 3})},
                              {"one", ids({7, 100, -4})},
                              {"prices", floats({2, 1, 0.5F, 3, 0, 0, 0, 0, 0}, {3, 3})},
                              {"seen", ids({5, 101, -8, 7, 0, 0, 0, 0, 0}, {3, 3})},
                              {"seen_weights", floats({1, 1, 1, 1, 0, 0, 0, 0, 0}, {3, 3})}};
      const std::vector<TensorLike> expected = flatten(model(batch));
      for (const char* const name : {"a.keras", "a.h5"}) {
        SCOPED_TRACE(str(name, ' ', combiner));
        save_model(model, folder / name, {.for_keras = true});
        const ModelHandle same = load_model(folder / name, {.compile = false});
        const std::vector<TensorLike> found = flatten(same(padded));
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          SCOPED_TRACE(i);
          expect_near(found[i].tensor(), expected[i].tensor(), {.absolute = 1e-5});
        }
        int embeddings = 0;
        for (const auto& layer : same->layers()) {
          embeddings += layer->class_name() == "Embedding" ? 1 : 0;
          EXPECT_NE(layer->class_name(), "EmbedReduce");
        }
        EXPECT_EQ(embeddings, 1);
      }
    }
  }
}

}  // namespace keel::dynamic_for_keras_test

// Tests files for Keras of models with a DistributedEmbedding: internal/keras_lookups.cc.
#include <keel/savedmodel/keras/internal/keras_lookups.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/keras/for_keras.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras_lookups_test {

using keras_rs::make_table;
using layers::DistributedEmbedding;
using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::FloatRows;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::TemporaryFolder;
using Features = Nest<keras_rs::FeatureConfig>;
using Weights = Nest<std::optional<TensorLike>>;

keras_rs::Table table(const std::string& name, const std::string& combiner) {
  return make_table({.name = name,
                     .vocabulary_size = 8,
                     .embedding_dim = 2,
                     .optimizer = "sgd",
                     .combiner = combiner});
}

keras_rs::FeatureConfig feature(const keras_rs::Table& table, const Shape& input_shape) {
  return {.name = "feature",
          .table = table,
          .input_shape = input_shape,
          .output_shape = {input_shape[0], table->embedding_dim}};
}

InputOptions int_input(const std::string& name, std::vector<int64_t> shape = {}) {
  return {.shape = Shape(shape), .dtype = DType::kInt64, .name = name};
}

// Features of every layout: "one", "many", "seen" and "bought" share the table "items".
struct Example {
  Functional model;
  Tensors batch;   // of the model
  Tensors padded;  // of its file for Keras
  size_t tables;
};

Example make_example(const std::string& combiner, const keras_rs::Table& items,
                     const DistributedEmbeddingOptions& base = {}) {
  const auto users = table("users", combiner);
  const Features features = {{"bought", feature(items, {kUnknown, 3})},
                             {"many", feature(items, {kUnknown, 3})},
                             {"one", feature(items, {kUnknown})},
                             {"seen", feature(items, {kUnknown, kUnknown})},
                             {"user", feature(users, {kUnknown, 3})}};
  const Tensors inputs = {{"bought", TensorLike(layers::ragged_input(int_input("bought")))},
                          {"many", layers::input(int_input("many", {3}))},
                          {"one", layers::input(int_input("one"))},
                          {"seen", TensorLike(layers::ragged_input(int_input("seen")))},
                          {"user", TensorLike(layers::sparse_input(int_input("user", {3})))}};
  const RaggedTensor prices = layers::ragged_input({.name = "prices"});
  DistributedEmbeddingOptions options = base;
  options.feature_configs = features;
  options.name = "tables";
  const DistributedEmbedding layer(options);
  const std::optional<TensorLike> none;
  const Tensors found =
      layer(inputs, {.weights = Weights{{"bought", std::optional<TensorLike>(prices)},
                                        {"many", none},
                                        {"one", none},
                                        {"seen", none},
                                        {"user", none}}});
  Tensors::Dict all = inputs.entries();
  all.emplace("prices", TensorLike(prices));
  const FloatRows of_prices = {{2, 1, 0.5F}, {3}, {}};
  return {.model = Functional({.inputs = Tensors(std::move(all)), .outputs = found}),
          .batch = {{"bought", ragged(IdRows{{5, 1, 7}, {4}, {}})},
                    {"many", ids({7, 5, 0, 4, 4, 1, 1, 2, 5}, {3, 3})},
                    {"one", ids({7, 0, 4})},
                    {"prices", ragged(of_prices)},
                    {"seen", ragged(IdRows{{5, 1, 6, 5}, {}, {7}})},
                    {"user", sparse(IdRows{{}, {6, 2}, {1, 3, 3}}, 3)}},
          .padded = {{"bought", ids({5, 1, 7, 4, 0, 0, 0, 0, 0}, {3, 3})},
                     {"many", ids({7, 5, 0, 4, 4, 1, 1, 2, 5}, {3, 3})},
                     {"one", ids({7, 0, 4})},
                     {"prices", floats({2, 1, 0.5F, 3, 0, 0, 0, 0, 0}, {3, 3})},
                     {"seen", ids({5, 1, 6, 5, 0, 0, 0, 0, 7, 0, 0, 0}, {3, 4})},
                     {"seen_weights", floats({1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0}, {3, 4})},
                     {"user", ids({0, 0, 0, 6, 2, 0, 1, 3, 3}, {3, 3})},
                     {"user_weights", floats({0, 0, 0, 1, 1, 0, 1, 1, 1}, {3, 3})}},
          .tables = 2};
}

// Compares the predictions of files for Keras with `expected`.
void expect_same(const Example& example, const Tensors& expected) {
  const TemporaryFolder folder;
  const std::vector<TensorLike> all = flatten(expected);
  for (const char* const name : {"a.keras", "a.h5"}) {
    SCOPED_TRACE(name);
    save_model(example.model, folder / name, {.for_keras = true});
    const ModelHandle same = load_model(folder / name, {.compile = false});
    const std::vector<TensorLike> found = flatten(same(example.padded));
    ASSERT_EQ(found.size(), all.size());
    for (size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i);
      expect_near(found[i].tensor(), all[i].tensor(), {.absolute = 1e-5});
    }
    size_t embeddings = 0;
    for (const auto& layer : same->layers()) {
      embeddings += layer->class_name() == "Embedding" ? 1 : 0;
      EXPECT_NE(layer->class_name(), "DistributedEmbedding");
    }
    EXPECT_EQ(embeddings, example.tables) << "features of one table share its layer";
  }
}

TEST(KerasLookupsTest, ADistributedEmbeddingOfAllLayoutsBecomesEmbeddings) {
  for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    const Example example = make_example(combiner, table("items", combiner));
    expect_same(example, example.model(example.batch));
  }
}

TEST(KerasLookupsTest, StackedTablesOnSparseCoresBecomeEmbeddings) {
  for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
    SCOPED_TRACE(combiner);
    distribute::TPUStrategy strategy({.num_cores = 1});
    std::optional<Example> example;
    {
      const auto scope = strategy.scope();
      example = make_example(combiner, table("items", combiner));
    }
    Tensors expected;
    strategy.run([&] { expected = example->model(example->batch); });
    expect_same(*example, expected);
  }
}

TEST(KerasLookupsTest, TablesWithDynamicIdsBecomeLookupsFollowedByEmbeddings) {
  for (const NotAdmitted& not_admitted :
       {NotAdmitted::zero(), NotAdmitted::default_row(), NotAdmitted::hashed(3)}) {
    for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
      SCOPED_TRACE(combiner);
      const auto items = make_table({.name = "items",
                                     .embedding_dim = 2,
                                     .combiner = combiner,
                                     .dynamic = DynamicVocabulary{.not_admitted = not_admitted}});
      const Example example = make_example(combiner, items);
      const auto layer = std::dynamic_pointer_cast<DistributedEmbeddingLayer>(
          example.model->get_layer("tables").shared());
      layer->dynamic_table("items").assign_rows(ids({-4, 5, 7}),
                                                floats({1, 2, -3, 4, 0.5F, -0.25F}, {3, 2}));
      expect_same(example, example.model(example.batch));
    }
  }
}

TEST(KerasLookupsTest, AnUnweightedCallAndASingleFeatureAreReplaced) {
  const TensorLike input = layers::ragged_input(int_input("seen"));
  const DistributedEmbedding layer(
      {.feature_configs = feature(table("items", "mean"), {kUnknown, 2})});
  const Functional model({.inputs = input, .outputs = layer(Tensors(input))});
  // Rows end after 2 ids.
  const Tensor expected = model(Tensors(ragged(IdRows{{5, 1, 7}, {4}, {}}))).tensor();
  const Tensors padded =
      Tensors::list({ids({5, 1, 4, 0, 0, 0}, {3, 2}), floats({1, 1, 1, 0, 0, 0}, {3, 2})});
  expect_near(keras_model_of(*model)(padded).tensor(), expected, {.absolute = 1e-6});
}

TEST(KerasLookupsTest, LookupsThatKerasCannotExpressAreRejectedWithTheFeature) {
  const auto error_of = [](const TensorLike& input, const TensorLike& weights,
                           DistributedEmbeddingOptions options) {
    options.feature_configs = Features{{"seen", feature(table("items", "mean"), {kUnknown, 3})}};
    options.name = "tables";
    const DistributedEmbedding layer(options);
    const Tensors found = layer(Tensors{{"seen", input}},
                                {.weights = Weights{{"seen", std::optional<TensorLike>(weights)}}});
    const Functional model(
        {.inputs = Tensors{{"seen", input}, {"prices", weights}}, .outputs = found["seen"]});
    const std::string message = message_of<ValueError>([&] { keras_model_of(*model); });
    EXPECT_THAT(message, HasSubstr("DistributedEmbedding 'tables', feature 'seen'"));
    return message;
  };
  const Tensor dense = layers::input(int_input("seen", {3}));
  const Tensor prices = layers::input({.shape = {3}, .name = "prices"});
  EXPECT_THAT(error_of(dense, prices, {}), HasSubstr("weights of dense ids"));
  const RaggedTensor rows = layers::ragged_input(int_input("seen"));
  const RaggedTensor of_rows = layers::ragged_input({.name = "prices"});
  EXPECT_THAT(error_of(rows, of_rows, {.feature_configs = {}, .dtype = "float64"}),
              HasSubstr("float32"));
}

}  // namespace keel::keras_lookups_test

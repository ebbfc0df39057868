// Serving plans of tables with dynamic ids: the bits of the model without a called layer (D-105).
// Tests layers/embedding/internal/id_rows_plan.cc and
// layers/serving/steps/internal/serving_keys.cc.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_plan_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::expect_same_bits;
using testing_support::FloatRows;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::strings;
using testing_support::values_of;

const NotAdmitted kAllNotAdmitted[] = {
    NotAdmitted::zero(), NotAdmitted::ignore(),
    NotAdmitted::default_row(initializers::random_uniform(-1, 1, 5)),
    NotAdmitted::hashed(3, initializers::random_uniform(-1, 1, 5))};

// Gives the even ids -4, -2, ..., 18 rows.
void fill(const DynamicTable& table) {
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (int64_t key = -4; key < 20; key += 2) {
    keys.push_back(key);
    for (int64_t d = 0; d < table.dim(); ++d) {
      rows.push_back(0.1F * static_cast<float>(key) - 0.37F * static_cast<float>(d));
    }
  }
  table.assign_rows(ids(keys), Tensor::from(rows, {std::ssize(keys), table.dim()}));
}

IdRows random_ids(uint64_t seed, size_t rows, size_t most) {
  std::mt19937_64 random(seed);
  IdRows out(rows);
  for (auto& row : out) {
    for (uint64_t n = random() % (most + 1); n > 0; --n) {
      row.push_back(static_cast<int64_t>(random() % 24) - 6);
    }
  }
  return out;
}
FloatRows weights_of(const IdRows& rows) {
  FloatRows out;
  for (const auto& row : rows) {
    out.emplace_back();
    for (const int64_t id : row) out.back().push_back(0.25F * static_cast<float>(id % 5) - 0.125F);
  }
  return out;
}
Tensor dense_ids(uint64_t seed, int64_t rows, int64_t n) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < rows * n; ++i) out.push_back(static_cast<int64_t>(random() % 24) - 6);
  return Tensor::from(out, n == 1 ? Shape{rows} : Shape{rows, n});
}

void expect_bits_of_model(const Functional& model, const Tensors& batch) {
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_THAT(plan.called_layers(), IsEmpty()) << plan.summary();
  const std::vector<TensorLike> found = flatten(plan(batch)), expected = flatten(model(batch));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_bits(found[i].tensor(), expected[i].tensor());
  }
}

TensorLike input_of(Layout layout, const char* name, DType dtype = DType::kInt64) {
  const InputOptions options = {.dtype = dtype, .name = name};
  if (layout == Layout::kRagged) return layers::ragged_input(options);
  InputOptions with_shape = options;
  with_shape.shape = {8};
  return layers::sparse_input(with_shape);
}

TEST(DynamicPlanTest, EmbedReduceOfAllLayoutsAndCombiners) {
  for (const NotAdmitted& not_admitted : kAllNotAdmitted) {
    for (const char* const combiner : {"sum", "mean", "sqrtn"}) {
      SCOPED_TRACE(str(static_cast<int>(not_admitted.kind), ' ', combiner));
      const layers::EmbedReduce items({.output_dim = 3,
                                       .combiner = combiner,
                                       .dynamic = DynamicVocabulary{.not_admitted = not_admitted},
                                       .name = "items"});
      const Tensor one = layers::input({.dtype = DType::kInt64, .name = "one"});
      const Tensor many = layers::input({.shape = {5}, .dtype = DType::kInt64, .name = "many"});
      const TensorLike rows = input_of(Layout::kRagged, "rows");
      const TensorLike grid = input_of(Layout::kSparse, "grid");
      const TensorLike weighted = input_of(Layout::kRagged, "weighted");
      const TensorLike weights = input_of(Layout::kRagged, "weights", DType::kFloat32);
      const TensorLike sparse_weights = input_of(Layout::kSparse, "grid_weights", DType::kFloat32);
      const Functional model(
          {.inputs = Tensors::list({one, many, rows, grid, weighted, weights, sparse_weights}),
           .outputs =
               Tensors::list({items(Tensors(one)), items(Tensors(many)), items(Tensors(rows)),
                              items(Tensors(grid)), items(Tensors(weighted), {.weights = weights}),
                              items(Tensors(grid), {.weights = sparse_weights})})});
      fill(items->dynamic_table());
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const IdRows of_rows = random_ids(seed, 6, 5), of_grid = random_ids(seed + 9, 6, 8);
        expect_bits_of_model(
            model, Tensors::list({dense_ids(seed, 6, 1), dense_ids(seed + 1, 6, 5), ragged(of_rows),
                                  sparse(of_grid, 8), ragged(of_rows), ragged(weights_of(of_rows)),
                                  sparse(weights_of(of_grid), 8)}));
      }
    }
  }
}

TEST(DynamicPlanTest, EmbedReduceOfStrings) {
  const layers::EmbedReduce words(
      {.output_dim = 2,
       .dynamic =
           DynamicVocabulary{.key = KeyType::kString, .not_admitted = NotAdmitted::hashed(3)},
       .name = "words"});
  const Tensor x = layers::input({.shape = {2}, .dtype = DType::kString, .name = "x"});
  const Functional model({.inputs = x, .outputs = words(Tensors(x))});
  words->dynamic_table().assign_rows(strings({"", "lamp"}),
                                     testing_support::floats({1, 2, 3, 4}, {2, 2}));
  expect_bits_of_model(model, strings({"lamp", "", "chair", "lamp"}).reshaped({2, 2}));
}

TEST(DynamicPlanTest, WeightsThatAreNotFiniteAreValueErrors) {
  const layers::EmbedReduce items(
      {.output_dim = 2, .dynamic = DynamicVocabulary{}, .name = "items"});
  const TensorLike x = input_of(Layout::kRagged, "x"),
                   w = input_of(Layout::kRagged, "w", DType::kFloat32);
  const Functional model(
      {.inputs = Tensors::list({x, w}), .outputs = items(Tensors(x), {.weights = w})});
  const ServingPlan plan{ModelHandle(model)};
  const Tensors batch = Tensors::list({ragged(IdRows{{1, 2}}), ragged(FloatRows{{1, INFINITY}})});
  const std::string message = message_of<ValueError>([&] { plan(batch); });
  EXPECT_THAT(message, AllOf(HasSubstr("items"), HasSubstr("position 1 is inf")));
  EXPECT_EQ(message, message_of<ValueError>([&] { model(batch); }));
}

TEST(DynamicPlanTest, DistributedEmbeddingWithStaticAndDynamicTables) {
  for (const bool weighted : {false, true}) {
    const auto table = [](const char* name, const std::optional<DynamicVocabulary>& dynamic) {
      return keras_rs::make_table({.name = name,
                                   .vocabulary_size = dynamic ? 0 : 30,
                                   .embedding_dim = 3,
                                   .combiner = "mean",
                                   .placement = "default_device",
                                   .dynamic = dynamic});
    };
    const auto items = table("items", DynamicVocabulary{}), users = table("users", {});
    const auto feature = [](const char* name, const keras_rs::Table& of, const Shape& input) {
      return keras_rs::FeatureConfig{
          .name = name, .table = of, .input_shape = input, .output_shape = {kUnknown, 3}};
    };
    // Rows of "rows" are truncated to 3 ids.
    const layers::DistributedEmbedding embedding(
        {.feature_configs = {{"one", feature("one", items, {kUnknown})},
                             {"rows", feature("rows", items, {kUnknown, 3})},
                             {"user", feature("user", users, {kUnknown, 2})}}});
    const Tensors inputs = {
        {"one", layers::input({.dtype = DType::kInt64, .name = "one"})},
        {"rows", input_of(Layout::kRagged, "rows")},
        {"user", layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "user"})}};
    const TensorLike w = input_of(Layout::kRagged, "weights", DType::kFloat32);
    const auto weights = [&] {
      return Nest<std::optional<TensorLike>>::dict({{"one", std::optional<TensorLike>()},
                                                    {"rows", std::optional<TensorLike>(w)},
                                                    {"user", std::optional<TensorLike>()}});
    };
    const Tensors outputs =
        weighted ? embedding(inputs, {.weights = weights()}) : embedding(inputs);
    Tensors::Items all = {inputs["one"], inputs["rows"], inputs["user"]};
    if (weighted) all.push_back(w);
    const Functional model({.inputs = Tensors::list(all), .outputs = outputs});
    fill(embedding->dynamic_table("items"));
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const IdRows rows = random_ids(seed, 4, 6);
      Tensors::Items batch = {dense_ids(seed, 4, 1), ragged(rows),
                              ids({0, 29, 5, 5, 7, 8, 1, 2}, {4, 2})};
      if (weighted) batch.push_back(ragged(weights_of(rows)));
      expect_bits_of_model(model, Tensors::list(batch));
    }
  }
}

Functional model_of_features(const layers::TPUEmbedding& layer, const Tensors& inputs) {
  return Functional({.inputs = inputs, .outputs = layer(inputs)});
}

TEST(DynamicPlanTest, SequencesOfTPUEmbedding) {
  for (const NotAdmitted& not_admitted : kAllNotAdmitted) {
    SCOPED_TRACE(static_cast<int>(not_admitted.kind));
    const Table table = make_table({.dim = 3,
                                    .combiner = "mean",
                                    .name = "items",
                                    .dynamic = DynamicVocabulary{.not_admitted = not_admitted}});
    const FeatureConfig sequence = {.table = table, .max_sequence_length = 3};
    const layers::TPUEmbedding layer({.feature_config = {{"grid", sequence}, {"rows", sequence}}});
    const Functional model = model_of_features(
        layer,
        {{"grid", input_of(Layout::kSparse, "grid")}, {"rows", input_of(Layout::kRagged, "rows")}});
    fill(layer->dynamic_table(table));
    for (uint64_t seed = 0; seed < 4; ++seed) {
      expect_bits_of_model(model, {{"grid", sparse(random_ids(seed, 5, 8), 8)},
                                   {"rows", ragged(random_ids(seed + 7, 5, 6))}});
    }
  }
}

TEST(DynamicPlanTest, IgnoredIdsAreLeftOutAndCounted) {
  const Table table =
      make_table({.dim = 2, .combiner = "mean", .name = "items", .dynamic = DynamicVocabulary{}});
  const auto feature = [&](int64_t length) {
    return FeatureConfig{
        .table = table, .max_sequence_length = length, .id_policy = IdPolicy::ignore()};
  };
  const layers::TPUEmbedding layer(
      {.feature_config = {{"one", feature(0)}, {"rows", feature(0)}, {"steps", feature(2)}}});
  const Functional model =
      model_of_features(layer, {{"one", layers::input({.dtype = DType::kInt64, .name = "one"})},
                                {"rows", input_of(Layout::kRagged, "rows")},
                                {"steps", input_of(Layout::kRagged, "steps")}});
  fill(layer->dynamic_table(table));
  const Tensors batch = {{"one", ids({-2, 2, 3})},
                         {"rows", ragged(IdRows{{2, -4, -1}, {}, {4, 3}})},
                         {"steps", ragged(IdRows{{-4, 2, -4}, {2}, {}})}};
  const auto dropped = [&] {
    std::vector<int64_t> out;
    for (const auto& [path, counts] : layer->id_counts()) out.push_back(counts.dropped);
    return out;
  };
  expect_bits_of_model(model, batch);
  // The plan and the model have looked up the batch once each.
  EXPECT_THAT(dropped(), ElementsAre(2, 4, 2));
  const ServingPlan plan{ModelHandle(model)};
  plan(batch);
  EXPECT_THAT(dropped(), ElementsAre(3, 6, 3));
}

TEST(DynamicPlanTest, RejectedIdsAreValueErrors) {
  const Table items = make_table({.dim = 2, .name = "items", .dynamic = DynamicVocabulary{}});
  const Table words = make_table(
      {.dim = 2, .name = "words", .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  const auto feature = [](const Table& table) {
    return FeatureConfig{.table = table, .id_policy = IdPolicy::error()};
  };
  const layers::TPUEmbedding layer(
      {.feature_config = {{"item", feature(items)}, {"word", feature(words)}}});
  const Functional model = model_of_features(
      layer, {{"item", input_of(Layout::kRagged, "item")},
              {"word", layers::input({.dtype = DType::kString, .name = "word"})}});
  fill(layer->dynamic_table(items));
  const auto batch = [](int64_t id, const char* word) {
    return Tensors{{"item", ragged(IdRows{{2, id}})}, {"word", strings({word})}};
  };
  expect_bits_of_model(model, batch(4, "lamp"));
  const ServingPlan plan{ModelHandle(model)};
  for (const Tensors& bad : {batch(-4, "lamp"), batch(4, "")}) {
    const std::string message = message_of<ValueError>([&] { plan(bad); });
    EXPECT_THAT(message, HasSubstr("rejects"));
    EXPECT_EQ(message, message_of<ValueError>([&] { model(bad); }));
  }
}

TEST(DynamicPlanTest, APlanKeepsTheRowsOfItsConstruction) {
  const layers::EmbedReduce items(
      {.output_dim = 2, .combiner = "sum", .dynamic = DynamicVocabulary{}, .name = "items"});
  const TensorLike x = input_of(Layout::kRagged, "x");
  const Functional model({.inputs = x, .outputs = items(Tensors(x))});
  fill(items->dynamic_table());
  const TensorLike batch = ragged(IdRows{{2, 4}});
  const ServingPlan plan{ModelHandle(model)};
  const std::vector<float> before = values_of(plan(Tensors(batch)));
  items->dynamic_table().erase(ids({2, 4}));
  EXPECT_EQ(values_of(plan(Tensors(batch))), before);
  EXPECT_NE(values_of(model(Tensors(batch))), before);
}

}  // namespace keel::dynamic_plan_test

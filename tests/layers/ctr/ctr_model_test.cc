// Tests layers/ctr/ctr_features.cc.
#include <keel/layers/ctr/ctr_model.h>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/random.h>
#include <keel/optimizers/adam.h>

namespace keel::ctr_model_test {

CtrSchema schema() {
  return {.label = "click",
          .numeric = {"price", "age"},
          .categorical = {"user", "item"},
          .integers = {"item", "age"}};
}

// Users a, b and c have four, three and one rows; items 7 and 9 have four rows each.
Tensors columns() {
  return {{"user", Tensor::from<std::string>({"a", "b", "a", "c", "b", "a", "b", "a"}, {8})},
          {"item", Tensor::from<int64_t>({7, 9, 7, 9, 9, 7, 9, 7}, {8})},
          {"price", Tensor::from<float>({0, 0, 0, 0, 0, 1, 2, 3}, {8})},
          {"age", Tensor::from<float>({20, 20, 30, 30, 30, 40, 40, 50}, {8})}};
}

std::vector<int64_t> ids(const Tensors& found, const char* column) {
  return found["ids"][column].tensor().to_vector<int64_t>();
}

std::map<std::string, int64_t> sizes(const CtrFeatures& features) {
  std::map<std::string, int64_t> out;
  for (const auto& column : features.id_columns()) out[column.name] = column.vocabulary_size;
  return out;
}

// Vocabularies are sorted by descending frequency, then by descending value; id 0 is for unknown
// categories.
TEST(CtrFeaturesTest, CategoriesBecomeIds) {
  const CtrFeatures features(schema(), columns());
  const Tensors found = features(columns());
  EXPECT_EQ(ids(found, "user"), std::vector<int64_t>({1, 2, 1, 3, 2, 1, 2, 1}));
  EXPECT_EQ(ids(found, "item"), std::vector<int64_t>({2, 1, 2, 1, 1, 2, 1, 2}));
  EXPECT_EQ(sizes(features).at("user"), 4);
  Tensors::Dict unknown = columns().entries();
  unknown["user"] = Tensor::from<std::string>({"a", "", "z", "c", "b", "a", "b", "a"}, {8});
  unknown["item"] = Tensor::from<int64_t>({7, kNoCategory, 8, 9, 9, 7, 9, 7}, {8});
  const Tensors others = features(Tensors(unknown));
  EXPECT_EQ(ids(others, "user"), std::vector<int64_t>({1, 0, 0, 3, 2, 1, 2, 1}));
  EXPECT_EQ(ids(others, "item"), std::vector<int64_t>({2, 0, 0, 1, 1, 2, 1, 2}));
}

TEST(CtrFeaturesTest, RareCategoriesShareTheIdOfUnknownOnes) {
  const CtrFeatures features(schema(), columns(), {.min_count = 4});
  EXPECT_EQ(ids(features(columns()), "user"), std::vector<int64_t>({1, 0, 1, 0, 0, 1, 0, 1}));
  EXPECT_EQ(sizes(features).at("user"), 2);
  EXPECT_EQ(sizes(features).at("item"), 3);
  // A vocabulary is never empty: it keeps the most frequent category.
  const CtrFeatures none(schema(), columns(), {.min_count = 100});
  EXPECT_EQ(ids(none(columns()), "user"), std::vector<int64_t>({1, 0, 1, 0, 0, 1, 0, 1}));
}

// "[UNK]" and -1 are Keras's default tokens of unknown categories.
TEST(CtrFeaturesTest, TokensOfUnknownCategoriesMayBeCategories) {
  const CtrSchema only = {.label = "y", .categorical = {"word", "number"}, .integers = {"number"}};
  const Tensors rows = {
      {"word", Tensor::from<std::string>({"[UNK]", "[UNK]", "a", ""}, {4})},
      {"number", Tensor::from<int64_t>({-1, -1, kNoCategory, kNoCategory + 1}, {4})}};
  const CtrFeatures features(only, rows);
  EXPECT_EQ(ids(features(rows), "word"), std::vector<int64_t>({1, 1, 2, 3}));
  EXPECT_EQ(ids(features(rows), "number"), std::vector<int64_t>({1, 1, 3, 2}));
  const Tensors unknown = {{"word", Tensor::from<std::string>({"b"}, {1})},
                           {"number", Tensor::from<int64_t>({0}, {1})}};
  EXPECT_EQ(ids(features(unknown), "word"), std::vector<int64_t>({0}));
  EXPECT_EQ(ids(features(unknown), "number"), std::vector<int64_t>({0}));
}

TEST(CtrFeaturesTest, EachDistinctNumberHasABin) {
  const CtrFeatures features(schema(), columns(), {.max_buckets = 4});
  const Tensors found = features(columns());
  EXPECT_EQ(ids(found, "price"), std::vector<int64_t>({0, 0, 0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(ids(found, "age"), std::vector<int64_t>({0, 0, 1, 1, 1, 2, 2, 3}));
}

// 0 has five of eight rows, more than one of three bins should have; the other bins share the other
// rows.
TEST(CtrFeaturesTest, AFrequentNumberHasItsOwnBin) {
  const CtrFeatures features(schema(), columns(), {.max_buckets = 3});
  EXPECT_EQ(ids(features(columns()), "price"), std::vector<int64_t>({0, 0, 0, 0, 0, 1, 1, 2}));
}

TEST(CtrFeaturesTest, BinsOfManyNumbersHaveEqualNumbersOfRows) {
  std::vector<float> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(static_cast<float>(i * 7919 % 1000));
  const CtrSchema only = {.label = "y", .numeric = {"x"}};
  const Tensors rows = {{"x", Tensor::from(numbers, {1000})}};
  const CtrFeatures features(only, rows, {.max_buckets = 20});
  std::vector<int64_t> counts(20);
  for (const int64_t id : ids(features(rows), "x")) ++counts.at(static_cast<size_t>(id));
  EXPECT_EQ(counts, std::vector<int64_t>(20, 50));
}

TEST(CtrFeaturesTest, NumbersHaveMean0AndVariance1) {
  const CtrFeatures features(schema(), columns());
  const Tensor numbers = features(columns())["numeric"].tensor();
  ASSERT_EQ(numbers.shape(), Shape({8, 2}));
  const auto values = numbers.to_vector<float>();
  for (size_t column = 0; column < 2; ++column) {
    double sum = 0, squares = 0;
    for (size_t row = 0; row < 8; ++row) {
      sum += values[2 * row + column];
      squares += values[2 * row + column] * values[2 * row + column];
    }
    EXPECT_NEAR(sum, 0, 1e-5);
    EXPECT_NEAR(squares, 8, 1e-4);
  }
}

TEST(CtrFeaturesTest, ExamplesHaveTheDtypesOfTheText) {
  const auto features = CtrFeatures(schema(), columns()).example_features();
  EXPECT_EQ(data::dtype_of(features.at("user")), DType::kString);
  EXPECT_EQ(data::dtype_of(features.at("item")), DType::kInt64);
  EXPECT_EQ(data::dtype_of(features.at("age")), DType::kInt64);
  EXPECT_EQ(data::dtype_of(features.at("price")), DType::kFloat32);
  const auto& item = std::get<data::FixedLenFeature>(features.at("item"));
  EXPECT_EQ(item.default_value.item<int64_t>(), kNoCategory);
}

TEST(CtrFeaturesTest, OptionsOutOfRangeAreErrors) {
  EXPECT_THROW(CtrFeatures(schema(), columns(), {.min_count = 0}), ValueError);
  EXPECT_THROW(CtrFeatures(schema(), columns(), {.max_buckets = 1}), ValueError);
}

// Each model learns which user clicks, under both kinds of strategy, and its serving model returns
// the same values for raw columns.
TEST(CtrModelTest, EachModelLearnsAndServes) {
  const Tensor labels = Tensor::from<float>({1, 0, 1, 1, 0, 1, 0, 1}, {8, 1});
  distribute::TPUStrategy tpu({.num_cores = 2});
  for (const bool on_tpu : {false, true}) {
    for (const char* name : {"wide_deep", "dlrm", "dcn"}) {
      SCOPED_TRACE(name);
      std::optional<distribute::Strategy::Scope> scope;  // unset: the default strategy
      if (on_tpu) scope.emplace(tpu);
      set_random_seed(3);
      const CtrFeatures features(schema(), columns());
      const CtrModel ctr = make_ctr_model(features, {.model = name, .hidden = {16}});
      ctr.model->compile(
          {.optimizer = optimizers::Adam({.learning_rate = 0.01}), .loss = "binary_crossentropy"});
      ctr.model->fit(features(columns()), labels,
                     {.epochs = 100, .batch_size = 8, .verbose = Verbose::kSilent});
      const Functional serving = make_serving_model(features, ctr.model);
      const Tensor served = serving->predict(columns(), {.verbose = Verbose::kSilent}).tensor();
      const Tensor direct =
          ctr.model->predict(features(columns()), {.verbose = Verbose::kSilent}).tensor();
      EXPECT_EQ(served.to_vector<float>(), direct.to_vector<float>());
      for (int64_t row = 0; row < 8; ++row) {
        EXPECT_NEAR(served.data<float>()[row], labels.data<float>()[row], 0.3) << row;
      }
    }
  }
}

// Names of columns that the layers, tables and models of the program have as well, and names that
// layers cannot have.
TEST(CtrModelTest, ColumnsMayHaveAnyName) {
  const std::vector<std::string> names = {"price_buckets",
                                          "price_column",
                                          "price_wide",
                                          "item_lookup",
                                          "item",
                                          "numeric_normalization",
                                          "numeric",
                                          "embedding",
                                          "reshape",
                                          "dlrm",
                                          "wide_deep",
                                          "a/b",
                                          "a_b",
                                          ".",
                                          "numeric_columns"};
  Tensors::Dict rows = columns().entries();
  const CtrSchema schema = {.label = "click", .numeric = {"price", "age"}, .categorical = names};
  for (const std::string& name : names) rows[name] = columns()["user"];
  for (const char* model : {"wide_deep", "dlrm", "dcn"}) {
    const CtrFeatures features(schema, Tensors(rows), {.max_buckets = 4});
    EXPECT_EQ(features.input_name("price_buckets"), "price_buckets");
    EXPECT_EQ(features.input_name("a_b"), "a_b");
    EXPECT_EQ(features.input_name("a/b"), "a_b_1");
    const CtrModel ctr = make_ctr_model(features, {.model = model, .hidden = {4}});
    const Functional serving = make_serving_model(features, ctr.model);
    Tensors::Dict raw;
    for (const std::string& name : names) raw[name] = rows[name];
    for (const char* name : {"price", "age"}) raw[name] = rows[name];
    EXPECT_EQ(serving(Tensors(raw)).tensor().shape(), Shape({8, 1}));
  }
}

TEST(CtrModelTest, AnUnknownModelIsAnError) {
  const CtrFeatures features(schema(), columns());
  EXPECT_THROW(make_ctr_model(features, {.model = "svm"}), ValueError);
}

}  // namespace keel::ctr_model_test

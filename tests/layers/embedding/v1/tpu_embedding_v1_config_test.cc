#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

#include <gtest/gtest.h>

#include <keel/optimizers/embedding/tpu_parameters.h>

namespace keel::tpu::v1::tpu_embedding_v1_config_test {

namespace fc = feature_column;

Column identity(const std::string& key, int64_t buckets = 4) {
  return fc::categorical_column_with_identity(key, buckets);
}
Column sequence(const std::string& key, int64_t buckets) {
  return fc::sequence_categorical_column_with_identity(key, buckets);
}
void append(std::vector<Column>& to, const std::vector<TPUColumn>& columns) {
  to.insert(to.end(), columns.begin(), columns.end());
}

// A table id of a wrong type, and 5 as optimization parameters, do not compile.
TEST(SpecRowsA, A21_V1ConfigsCheckTheirFields) {
  const LearningRateFn f = [](int64_t) { return 0.1; };
  EXPECT_THROW(
      TableConfig(
          {.vocabulary_size = 10, .dimension = 2, .learning_rate = 0.1, .learning_rate_fn = f}),
      ValueError);
  EXPECT_NO_THROW(TableConfig({.vocabulary_size = 10, .dimension = 2, .combiner = std::nullopt}));
  EXPECT_THROW(TableConfig({.vocabulary_size = 10, .dimension = 2, .combiner = "max"}), ValueError);
  EXPECT_THROW(
      TableConfig(
          {.vocabulary_size = 10, .dimension = 2, .optimization_parameters = tpu::Adagrad{}}),
      ValueError);
  EXPECT_THROW(FeatureConfig({.max_sequence_length = -1}), ValueError);
}

TEST(V1TableConfig, RejectsSizesThatAreNotPositive) {
  EXPECT_THROW(TableConfig({.vocabulary_size = 0, .dimension = 2}), ValueError);
  EXPECT_THROW(TableConfig({.vocabulary_size = 10, .dimension = 0}), ValueError);
}

TEST(V1TableConfig, AcceptsV1Parameters) {
  const TableConfig table({.vocabulary_size = 10,
                           .dimension = 2,
                           .optimization_parameters = AdagradParameters{.learning_rate = 0.1}});
  EXPECT_EQ(table->optimization_parameters->class_name, "AdagradParameters");
}

TEST(SpecRowsH, H01_ColumnsBecomeTablesAndFeatures) {
  std::vector<Column> columns = {tpu::embedding_column(identity("a", 3), 2)};
  append(columns, shared_embedding_columns({identity("b", 6), fc::weighted_categorical_column(
                                                                  identity("c", 6), "c_weight")},
                                           5, {.combiner = "sqrtn"}));
  columns.push_back(tpu::embedding_column(sequence("e", 7), 2, {.max_sequence_length = 3}));
  append(columns, shared_embedding_columns({sequence("f", 4), sequence("g", 4), identity("h", 4)},
                                           2, {.max_sequence_lengths = {2, 1, 0}}));
  const Configs configs = get_configs_from_feature_columns(columns);

  std::map<std::string, int64_t> sizes, lengths;
  for (const auto& [name, table] : configs.table_to_config_dict) {
    sizes[name] = table->vocabulary_size;
  }
  for (const auto& [key, feature] : configs.feature_to_config_dict) {
    lengths[key] = feature->max_sequence_length;
  }
  const std::string shared = "tbl_b_c_weighted_by_c_weight_shared_embedding";
  EXPECT_EQ(sizes,
            (std::map<std::string, int64_t>{
                {"tbl_a", 3}, {shared, 6}, {"tbl_e", 7}, {"tbl_f_g_h_shared_embedding", 4}}));
  EXPECT_EQ(lengths, (std::map<std::string, int64_t>{
                         {"a", 0}, {"b", 0}, {"c", 0}, {"e", 3}, {"f", 2}, {"g", 1}, {"h", 0}}));
  const TableConfig& table = configs.table_to_config_dict.at(shared);
  EXPECT_EQ(table->dimension, 5);
  EXPECT_EQ(table->combiner, "sqrtn");
  EXPECT_EQ(configs.feature_to_config_dict.at("c")->weight_key, "c_weight");
  EXPECT_EQ(configs.feature_to_config_dict.at("c")->table_id, shared);
}

TEST(SpecRowsH, H03_AFeatureBelongsToOneTable) {
  EXPECT_THROW(get_configs_from_feature_columns({tpu::embedding_column(identity("x"), 2),
                                                 tpu::embedding_column(identity("x"), 3)}),
               ValueError);
  std::vector<Column> both = {tpu::embedding_column(identity("x"), 2)};
  append(both, shared_embedding_columns({identity("x"), identity("y")}, 2));
  EXPECT_THROW(get_configs_from_feature_columns(both), ValueError);
}

TEST(ConfigsFromColumns, RejectOrdinaryAndOtherColumns) {
  EXPECT_THROW(get_configs_from_feature_columns({fc::embedding_column(identity("a"), 2)}),
               TypeError);
  EXPECT_THROW(get_configs_from_feature_columns({identity("a")}), TypeError);
  EXPECT_THROW(get_configs_from_feature_columns({nullptr}), TypeError);
}

TEST(ConfigsFromColumns, SkipNumericAndTensorCoreColumns) {
  const Configs configs = get_configs_from_feature_columns(
      {fc::numeric_column("n"), tpu::embedding_column(identity("t"), 2,
                                                      {.embedding_lookup_device = "tpu_tensor_core",
                                                       .tensor_core_width = 2})});
  EXPECT_TRUE(configs.feature_to_config_dict.empty());
}

TEST(ConfigsFromColumns, KeepTheRateFunctionOfAColumn) {
  const LearningRateFn f = [](int64_t step) { return step == 0 ? 2.0 : 0.0; };
  const Configs configs = get_configs_from_feature_columns(
      {tpu::embedding_column(identity("a"), 2, {.learning_rate_fn = f})});
  EXPECT_EQ(configs.table_to_config_dict.at("tbl_a")->learning_rate_fn, f);
}

TEST(SlotNames, MatchARunOnTheHost) {
  const std::string v = "dense_features/a_embedding/embedding_weights";
  const auto names = [&](const EmbeddingOptimizer& optimizer) { return slot_names(optimizer, v); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(StochasticGradientDescentParameters{.learning_rate = 1}), Names());
  EXPECT_EQ(names(AdagradParameters{.learning_rate = 1}), Names({v + "/Adagrad"}));
  EXPECT_EQ(names(AdamParameters{.learning_rate = 1}), Names({v + "/Adam/m", v + "/Adam/v"}));
  EXPECT_EQ(names(FtrlParameters{.learning_rate = 1}), Names({v + "/Ftrl", v + "/Ftrl_1"}));
}

}  // namespace keel::tpu::v1::tpu_embedding_v1_config_test

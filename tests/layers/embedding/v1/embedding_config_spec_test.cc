#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>
#include <keel/optimizers/embedding/tpu_parameters.h>

#include "tests/support/errors.h"

namespace keel::estimator::embedding_config_spec_test {

namespace fc = feature_column;
using testing::HasSubstr;
using testing_support::message_of;
using tpu::v1::FeatureOptions;
using tpu::v1::TableOptions;

const tpu::AdagradParameters kAdagrad = {.learning_rate = 0.1};

Column column(const std::string& key) {
  return tpu::embedding_column(fc::categorical_column_with_identity(key, 4), 2);
}
tpu::v1::TableConfigs tables() {
  return {{"t", TableOptions{.vocabulary_size = 4, .dimension = 2}}};
}
tpu::v1::FeatureConfigs features(const std::string& table) {
  return {{"x", FeatureOptions{.table_id = table}}};
}

TEST(SpecRowsH, H04_OrdinaryColumnsAreRejectedOnlyWhenConfigsAreDerived) {
  const EmbeddingConfigSpec spec(
      {.feature_columns = {fc::embedding_column(fc::categorical_column_with_identity("a", 4), 2)},
       .optimization_parameters = kAdagrad});
  EXPECT_THROW(spec.configs(), TypeError);
}

TEST(SpecRowsH, H05_ThereIsExactlyOneWayToSpecify) {
  EXPECT_THROW(EmbeddingConfigSpec({.optimization_parameters = kAdagrad}), ValueError);
  EXPECT_THROW(EmbeddingConfigSpec({.feature_columns = {column("a")},
                                    .optimization_parameters = kAdagrad,
                                    .feature_to_config_dict = features("t"),
                                    .table_to_config_dict = tables()}),
               ValueError);
  EXPECT_THROW(EmbeddingConfigSpec(
                   {.optimization_parameters = kAdagrad, .feature_to_config_dict = features("t")}),
               ValueError);
  EXPECT_THROW(
      EmbeddingConfigSpec({.optimization_parameters = kAdagrad, .table_to_config_dict = tables()}),
      ValueError);
}

// Values of a wrong type in the dicts do not compile.
TEST(SpecRowsH, H06_OptimizersTablesAndColumnsMustBeOfTheKindsOfV1) {
  EXPECT_THROW(EmbeddingConfigSpec(
                   {.feature_columns = {column("a")}, .optimization_parameters = tpu::SGD{}}),
               ValueError);
  EXPECT_THROW(EmbeddingConfigSpec({.feature_columns = {column("a")}}), ValueError);
  EXPECT_THROW(EmbeddingConfigSpec({.optimization_parameters = kAdagrad,
                                    .feature_to_config_dict = features("missing"),
                                    .table_to_config_dict = tables()}),
               ValueError);
  EXPECT_THROW(
      EmbeddingConfigSpec({.feature_columns = {fc::categorical_column_with_identity("a", 4)},
                           .optimization_parameters = kAdagrad}),
      TypeError);
}

TEST(EmbeddingConfigSpec, ChecksInAFixedOrder) {
  const Column categorical = fc::categorical_column_with_identity("a", 4);
  // An invalid strategy is reported before an invalid column, and that before invalid parameters.
  EXPECT_THROW(
      EmbeddingConfigSpec({.feature_columns = {categorical}, .partition_strategy = "invalid"}),
      ValueError);
  EXPECT_THROW(EmbeddingConfigSpec({.feature_columns = {categorical}}), TypeError);
}

TEST(EmbeddingConfigSpec, AcceptsTheSevenClassesOfParametersOnly) {
  const std::vector<EmbeddingOptimizer> good = {
      kAdagrad,
      tpu::AdamParameters{.learning_rate = 1},
      tpu::StochasticGradientDescentParameters{.learning_rate = 1},
      tpu::FtrlParameters{.learning_rate = 1},
      tpu::ProximalAdagradParameters{.learning_rate = 1},
      tpu::MomentumParameters{.learning_rate = 1, .momentum = 0.9},
      tpu::RMSPropParameters{.learning_rate = 1, .rho = 0.9, .momentum = 0, .epsilon = 1}};
  for (const EmbeddingOptimizer& parameters : good) {
    EXPECT_NO_THROW(EmbeddingConfigSpec(
        {.feature_columns = {column("a")}, .optimization_parameters = parameters}))
        << parameters->class_name;
  }
  EXPECT_THROW(EmbeddingConfigSpec({.feature_columns = {column("a")},
                                    .optimization_parameters = tpu::ProximalYogiParameters{}}),
               ValueError);
}

TEST(EmbeddingConfigSpec, ErrorsNameTheUnknownPartitionStrategy) {
  EXPECT_THAT(message_of<ValueError>([&] {
                const EmbeddingConfigSpec spec({.feature_columns = {column("a")},
                                                .optimization_parameters = kAdagrad,
                                                .partition_strategy = "invalid"});
              }),
              HasSubstr("invalid"));
  EXPECT_EQ(EmbeddingConfigSpecOptions{}.partition_strategy, "div");
}

TEST(EmbeddingConfigSpec, ReturnsTheGivenDicts) {
  // The engine checks the optimization parameters of dicts.
  const EmbeddingConfigSpec spec(
      {.feature_to_config_dict = features("t"), .table_to_config_dict = tables()});
  EXPECT_EQ(spec.configs().feature_to_config_dict.at("x")->table_id, "t");
  EXPECT_EQ(spec.configs().table_to_config_dict.size(), 1U);
}

TEST(EmbeddingConfigSpec, SeparatesTensorCoreColumns) {
  const Column core =
      tpu::embedding_column(fc::categorical_column_with_identity("t", 4), 2,
                            {.embedding_lookup_device = "tpu_tensor_core", .tensor_core_width = 2});
  const EmbeddingConfigSpec spec(
      {.feature_columns = {column("a"), core}, .optimization_parameters = kAdagrad});
  ASSERT_EQ(spec.tensor_core_feature_columns().size(), 1U);
  EXPECT_EQ(spec.tensor_core_feature_columns()[0]->feature_key(), "t");
  EXPECT_EQ(spec.configs().feature_to_config_dict.size(), 1U);
}

}  // namespace keel::estimator::embedding_config_spec_test

#include <keel/layers/embedding/distributed/internal/feature_configs.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/registry.h>
#include <keel/optimizers/embedding/tpu_optimizers.h>

namespace keel::distributed_config_test {

TEST(DistributedConfigTest, ReadsConfigsOfKeras) {
  const auto layer = layers::deserialize(parse_json(R"({"class_name": "DistributedEmbedding",
      "module": "keras_rs.layers", "registered_name": "keras_rs>DistributedEmbedding", "config":
      {"name": "d", "trainable": true, "dtype": "float32", "feature_configs":
        {"x": {"class_name": "__tuple__", "items": [
          {"name": "f", "table": 0, "input_shape": [4, 3], "output_shape": [4, 2]},
          {"name": "g", "table": 1, "input_shape": [4], "output_shape": [4, 2]}]}},
      "tables": [
        {"name": "t", "vocabulary_size": 9, "embedding_dim": 2, "initializer": null,
         "optimizer": "adagrad", "combiner": "sum", "placement": "auto",
         "max_ids_per_partition": 256, "max_unique_ids_per_partition": 256},
        {"name": "u", "vocabulary_size": 9, "embedding_dim": 2, "initializer": null,
         "optimizer": {"module": "keras.optimizers", "class_name": "SGD", "registered_name": null,
                       "config": {"name": "SGD", "learning_rate": 0.5, "momentum": 0.0,
                                  "nesterov": false}},
         "combiner": "mean", "placement": "default_device"}],
      "table_stacking": [["t"]]}})"));
  auto& read = dynamic_cast<DistributedEmbeddingLayer&>(*layer);
  const auto& pair = read.feature_configs()["x"];
  EXPECT_EQ(pair.kind(), NestKind::kTuple);
  EXPECT_EQ(pair[0].leaf().table->optimizer->class_name, "Adagrad");
  EXPECT_EQ(pair[1].leaf().table->optimizer->source->learning_rate(), 0.5);
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(layers::serialize(*layers::deserialize(config)), config);
}

// keras_rs calls deserialize_keras_object on the initializer and the optimizer of a table. That
// function finds a class by its module and passes all keys of the table to its constructor.
TEST(DistributedConfigTest, TablesAreSavedInTheFormOfKerasRs) {
  using keras_rs::FeatureConfig;
  const auto table = keras_rs::make_table({.name = "t",
                                           .vocabulary_size = 9,
                                           .embedding_dim = 2,
                                           .optimizer = tpu::Adagrad{.learning_rate = 0.25}});
  const auto other = keras_rs::make_table(
      {.name = "u", .vocabulary_size = 9, .embedding_dim = 2, .initializer = std::nullopt});
  const auto feature = [](const char* name, const keras_rs::Table& of) {
    return Nest<FeatureConfig>(
        FeatureConfig{.name = name, .table = of, .input_shape = {4, 3}, .output_shape = {4, 2}});
  };
  const layers::DistributedEmbedding layer(
      {.feature_configs = Nest<FeatureConfig>::Dict{
           {"a", feature("a", table)}, {"b", feature("b", table)}, {"c", feature("c", other)}}});
  const Config config = layer->get_config();
  const Config::List& tables = config["tables"].items();
  ASSERT_EQ(tables.size(), 2U);
  std::set<std::string> keys;
  for (const auto& [key, _] : tables[0].entries()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"combiner", "embedding_dim", "initializer",
                                         "max_ids_per_partition", "max_unique_ids_per_partition",
                                         "name", "optimizer", "placement", "vocabulary_size"}));
  for (const Config& written : tables) {
    EXPECT_EQ(written["initializer"]["module"], Config("keras.initializers"));
    EXPECT_TRUE(written["initializer"]["registered_name"].is_null());
    EXPECT_EQ(written["optimizer"]["module"], Config("keras.optimizers"));
  }
  EXPECT_EQ(tables[0]["initializer"]["class_name"], Config("VarianceScaling"));
  EXPECT_EQ(tables[1]["initializer"]["class_name"], Config("TruncatedNormal"));
  EXPECT_EQ(tables[0]["optimizer"]["class_name"], Config("Adagrad"));
  EXPECT_EQ(to_json(tables[0]["optimizer"]["config"]),
            R"({"learning_rate": 0.25, "initial_accumulator_value": 0.1})");
  EXPECT_EQ(to_json(tables[1]["optimizer"]["config"]),
            R"({"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07})");
  // Decoding returns the original optimizer, not its Keras form.
  const auto read = DistributedEmbeddingLayer::from_config(config);
  EXPECT_EQ(read->feature_configs()["a"].leaf().table->optimizer, table->optimizer);
  EXPECT_EQ(read->get_config(), config);
}

// keras_rs creates an EmbedReduce for each table and numbers them by the index of the first feature
// that uses the table.
TEST(DistributedConfigTest, TablesAreStoredAtThePathsOfKerasRs) {
  const auto table = [](const char* name) {
    return keras_rs::make_table({.name = name, .vocabulary_size = 9, .embedding_dim = 2});
  };
  const auto t = table("t"), u = table("u");
  const auto feature = [](const char* name, const keras_rs::Table& of) {
    return Nest<keras_rs::FeatureConfig>(keras_rs::FeatureConfig{
        .name = name, .table = of, .input_shape = {4, 3}, .output_shape = {4, 2}});
  };
  const layers::DistributedEmbedding layer(
      {.feature_configs = Nest<keras_rs::FeatureConfig>::Dict{
           {"a", feature("a", t)}, {"b", feature("b", t)}, {"c", feature("c", u)}}});
  layer->build(Specs::Dict{{"a", Specs(TensorSpec{{4, 3}, DType::kInt32})},
                           {"b", Specs(TensorSpec{{4, 3}, DType::kInt32})},
                           {"c", Specs(TensorSpec{{4, 3}, DType::kInt32})}});
  EXPECT_EQ(layer->weight_attributes(),
            (std::vector<std::string>{"_default_device_embedding_layers/embed_reduce",
                                      "_default_device_embedding_layers/embed_reduce_2"}));
}

TEST(DistributedConfigTest, WrongConfigsOfFilesAreRejected) {
  const auto read = [](const std::string& json) {
    return DistributedEmbeddingLayer::from_config(parse_json(json));
  };
  const std::string table = R"({"name": "t", "vocabulary_size": 9, "embedding_dim": 2})";
  const auto features = [&](const std::string& f) {
    return R"({"name": "d", "feature_configs": )" + f + R"(, "tables": [)" + table + "]}";
  };
  const auto feature_of = [](int t) {
    return R"({"name": "f", "input_shape": [4], "output_shape": [4, 2], "table": )" +
           std::to_string(t) + "}";
  };
  EXPECT_NO_THROW(read(features(feature_of(0))));
  EXPECT_THROW(read(features(feature_of(1))), ValueError);
  EXPECT_THROW(read(features(feature_of(-1))), ValueError);
  EXPECT_THROW(read(features(R"({"class_name": "Deque", "items": []})")), ValueError);
  EXPECT_THROW(read(R"({"name": "d", "tables": [], "feature_configs": {}, "what": 1})"),
               ValueError);
  std::string deep = feature_of(0);
  for (int i = 0; i < 100; ++i) deep = "[" + deep + "]";
  EXPECT_THROW(read(features(deep)), ValueError);
}

}  // namespace keel::distributed_config_test

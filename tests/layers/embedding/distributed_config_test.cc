#include "layers/embedding/distributed_config.h"

#include <string>

#include "gtest/gtest.h"

#include "layers/embedding/distributed_embedding.h"
#include "layers/registry.h"

namespace keel::distributed_config_test {

TEST(DistributedConfigTest, ReadsWhatKerasWrites) {
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

TEST(DistributedConfigTest, WrongConfigsOfFilesAreRefused) {
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

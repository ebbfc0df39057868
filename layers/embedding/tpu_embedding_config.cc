// Serialization of the TPUEmbedding layer.
#include <algorithm>
#include <array>

#include <keel/layers/embedding/tables/internal/feature_format.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel {
namespace {

// TensorFlow's names of the enumerators, in their order.
constexpr std::array<const char*, 3> kEmbeddingFeatures = {"UNSUPPORTED", "V1", "V2"};

Config encode_feature(const std::optional<EmbeddingFeature>& feature) {
  return feature ? Config(kEmbeddingFeatures.at(static_cast<size_t>(*feature))) : Config();
}

std::optional<EmbeddingFeature> decode_feature(const Config& config) {
  if (config.is_null()) return {};
  const auto found = std::ranges::find(kEmbeddingFeatures, config.string());
  if (found == kEmbeddingFeatures.end()) {
    throw ValueError("TPUEmbedding: embedding_feature must be UNSUPPORTED, V1 or V2, received '",
                     config.string(), "'");
  }
  return static_cast<EmbeddingFeature>(found - kEmbeddingFeatures.begin());
}

}  // namespace

Config TPUEmbeddingLayer::get_config() const {
  Config::Dict out = {
      {"name", name()},
      {"trainable", trainable()},
      {"dtype", encode(dtype_policy())},
      {"tables", encode_tables(tables_)},
      {"feature_config", encode_features(options_.feature_config, tables_)},
      {"pipeline_execution_with_tensor_core", options_.pipeline_execution_with_tensor_core},
      {"batch_size", encode(options_.batch_size)},
      {"embedding_feature", encode_feature(options_.embedding_feature)}};
  // TensorFlow does not have these keys, so they are only written if set.
  if (options_.pipeline_lookups) out.emplace_back("pipeline_lookups", true);
  if (options_.collect_statistics) out.emplace_back("collect_statistics", true);
  if (options_.partition_strategy != "div") {
    out.emplace_back("partition_strategy", options_.partition_strategy);
  }
  return Config(std::move(out));
}

std::shared_ptr<TPUEmbeddingLayer> TPUEmbeddingLayer::from_config(const Config& config) {
  config_internal::reject_unknown_keys(
      config,
      {"name", "trainable", "dtype", "tables", "feature_config",
       "pipeline_execution_with_tensor_core", "pipeline_lookups", "batch_size", "embedding_feature",
       "partition_strategy", "collect_statistics"},
      kClassName);
  TPUEmbeddingOptions options{
      .feature_config = decode_features(config["feature_config"], decode_tables(config["tables"])),
      .name = config["name"].string()};
  if (const Config* trainable = config.find("trainable")) decode(*trainable, options.trainable);
  if (const Config* dtype = config.find("dtype")) decode(*dtype, options.dtype);
  if (const Config* pipeline = config.find("pipeline_execution_with_tensor_core")) {
    decode(*pipeline, options.pipeline_execution_with_tensor_core);
  }
  if (const Config* pipeline = config.find("pipeline_lookups")) {
    decode(*pipeline, options.pipeline_lookups);
  }
  if (const Config* statistics = config.find("collect_statistics")) {
    decode(*statistics, options.collect_statistics);
  }
  if (const Config* partition = config.find("partition_strategy")) {
    decode(*partition, options.partition_strategy);
  }
  if (const Config* batch_size = config.find("batch_size")) {
    decode(*batch_size, options.batch_size);
  }
  if (const Config* feature = config.find("embedding_feature")) {
    options.embedding_feature = decode_feature(*feature);
  }
  return std::make_shared<TPUEmbeddingLayer>(std::move(options));
}

}  // namespace keel

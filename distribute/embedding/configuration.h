// EngineConfiguration: what an embedding engine is made from, and the record that carries it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/embedding/partition.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/base/shape.h>
#include <keel/framework/kernels/embedding/gather.h>

namespace keel::distribute {

using kernels::Combiner;

// Each looked-up element x becomes the nearest of num_buckets values spread evenly over [lower,
// upper], halves up, before it is pooled. Stored values keep their precision and gradients pass
// through as if nothing had been done.
struct Quantization {
  int64_t num_buckets = 2;  // >= 2
  double lower = 0, upper = 0;
};

struct EngineTable {
  std::string name = {};
  int64_t rows = 0, dim = 0;
  Combiner combiner = Combiner::kMean;
  // Activation rows per example of the tensor core's batch.
  int64_t num_features = 0;
  RowUpdate update = {};  // no rule: no slots, no updates
  // The rate: a number, or the position of its function among the distinct ones of all tables.
  double learning_rate = 0;
  std::optional<int> learning_rate_tag = {};
  std::optional<Quantization> quantization = {};
  bool low_dimensional_packing = false;  // a hint for storage; changes no value
  // What the weights are kept as. Sums and rules are float32's, slots too; 16-bit weights round
  // stochastically when a row is stepped (see EmbeddingEngine).
  kernels::StorageType storage = kernels::StorageType::kFloat32;
};

struct EngineFeature {
  std::string name = {};
  int table_id = 0;        // position among the tables
  Shape input_shape = {};  // of the activations without dim
};

struct EngineConfiguration {
  std::vector<EngineTable> tables;
  std::vector<EngineFeature> features;
  // Greatest common divisor of the features' sample counts.
  int64_t batch_size_per_tensor_core = 0;
  int num_hosts = 1;
  int num_tensor_cores = 1;  // over all hosts; a multiple of num_hosts
  ShardingStrategy sharding_strategy = ShardingStrategy::kDiv;
  // Updates run one step late; see EmbeddingEngine.
  bool pipeline_execution_with_tensor_core = false;
  std::string profile_data_directory = {};

  Sharding sharding() const { return {.hosts = num_hosts, .strategy = sharding_strategy}; }
};

// A serialized TPUEmbeddingConfiguration (tpu_embedding_configuration.proto). Equal configurations
// give equal bytes. A custom rule is named only: it cannot be written. ValueError for any other
// rule that is no engine's (SGD with momentum, Adagrad with an epsilon, Adam with bias correction).
std::string serialize(const EngineConfiguration& configuration);
// ValueError for bytes that are no such record, and for one whose numbers do not fit each other. A
// table with a custom rule comes without a rule.
EngineConfiguration parse_engine_configuration(const std::string& record);
// For logs and eyes: protobuf's text form, many lines.
std::string to_text(const std::string& record);

}  // namespace keel::distribute

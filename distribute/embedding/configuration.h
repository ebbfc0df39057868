// EngineConfiguration: the tables, features and sharding of an embedding engine. It can be
// serialized to a protobuf record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/embedding/partition.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/base/shape.h>
#include <keel/framework/kernels/embedding/gather.h>

namespace keel::distribute {

using kernels::Combiner;

// Simulated quantization: before pooling, each looked-up element x is replaced by the nearest of
// num_buckets values spread evenly over [lower, upper], with halves rounded up. Stored values keep
// their precision, and gradients ignore the quantization.
struct Quantization {
  int64_t num_buckets = 2;      // >= 2
  double lower = 0, upper = 0;  // lower < upper
};

// A table of an engine. `name` must be unique; rows and dim must be positive. A table for unbounded
// ids has `dynamic`, and `rows` is its capacity.
struct EngineTable {
  std::string name = {};
  int64_t rows = 0, dim = 0;
  Combiner combiner = Combiner::kMean;
  // Number of activations of this table per example of a tensor core's batch.
  int64_t num_features = 0;
  RowUpdate update = {};     // without a rule the table has no slots and is never updated
  double learning_rate = 0;  // ignored if learning_rate_tag is set
  // Set if the learning rate is a function: its index among the distinct functions of all tables.
  std::optional<int> learning_rate_tag = {};
  std::optional<Quantization> quantization = {};
  bool low_dimensional_packing = false;  // a storage hint that changes no value
  // The dtype of the stored weights. Sums, update rules and slots always use float32. 16-bit
  // weights are rounded stochastically when a row is updated (see EmbeddingEngine).
  kernels::StorageType storage = kernels::StorageType::kFloat32;
  // Set for tables for unbounded ids. Its initializer of fallback rows is not part of records.
  std::optional<DynamicVocabulary> dynamic = {};
};

// An input of an engine, which table it looks up, and the shape of its activations.
struct EngineFeature {
  std::string name = {};
  int table_id = 0;        // index among the tables
  Shape input_shape = {};  // shape of the activations without the last dimension, dim
};

// The arguments that an engine is created from.
struct EngineConfiguration {
  std::vector<EngineTable> tables;
  std::vector<EngineFeature> features;
  // Greatest common divisor of the features' sample counts.
  int64_t batch_size_per_tensor_core = 0;
  int num_hosts = 1;
  int num_tensor_cores = 1;  // over all hosts; a multiple of num_hosts
  ShardingStrategy sharding_strategy = ShardingStrategy::kDiv;
  // If true, updates are applied one step later; see EmbeddingEngine.
  bool pipeline_execution_with_tensor_core = false;
  std::string profile_data_directory = {};

  // Returns the sharding that all tables share.
  Sharding sharding() const { return {.hosts = num_hosts, .strategy = sharding_strategy}; }
};

// Returns a serialized TPUEmbeddingConfiguration (tpu_embedding_configuration.proto). Equal
// configurations give equal bytes. A custom rule is stored only as its name. Throws ValueError for
// a built-in rule that the record cannot represent: SGD with momentum, Adagrad with an epsilon,
// Adam with bias correction.
std::string serialize(const EngineConfiguration& configuration);
// Parses a record of serialize(). A table with a custom rule is returned without a rule. Throws
// ValueError if the bytes are not such a record or if its numbers are inconsistent.
EngineConfiguration parse_engine_configuration(const std::string& record);
// Returns a record in protobuf's text format, for logs. Throws the same errors as
// parse_engine_configuration().
std::string to_text(const std::string& record);

}  // namespace keel::distribute

// TPUEmbedding: the V1 interface of the embedding engine, with tables and features by name
// (tf.compat.v1 tpu_embedding.TPUEmbedding). The estimator holds its tables in it.
//
//   tpu::v1::TPUEmbedding embedding({.table_to_config_dict = ..., .feature_to_config_dict = ...,
//                                    .batch_size = 64, .optimization_parameters = ...});
//   embedding.build();                              // all calls are under a TPUStrategy
//   embedding.generate_enqueue(data_of_each_core);  // on the host
//   strategy.run([&] {                              // in each core
//     auto activations = embedding.hook_dummy_table_variables(embedding.get_activations());
//     ...
//     tape.gradient(loss, dense variables and dummy_table_variables());
//     embedding.generate_send_gradients(embedding.get_gradients_through_dummies(), step);
//   });
//
// Copies share one engine. Tables are sorted by name, and the features of a table by name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>
#include <keel/layers/layer.h>

namespace keel::tpu {

// Options of the statistics of lookups that training collects. Sampling depends only on the seed
// and on an example's position in the stream of examples.
struct ProfilerOptions {
  double sample_fraction = 0.03;  // fraction of the examples; in (0, 1]
  uint64_t seed = 0;              // seed of the sampling
  int64_t min_examples = 100;     // tables with fewer sampled examples are not saved
};

}  // namespace keel::tpu

namespace keel::tpu::v1 {

// The ids of one feature in sparse or dense form.
struct EnqueueData {
  Tensor embedding_indices;  // int32 or int64 [n]
  // int32 or int64, ascending: [n], the sample of each id, in [0, batch size per core); or [n, 2],
  // the sample of each id and its position in the sample. Empty: one id for each sample.
  Tensor sample_indices = {};
  Tensor aggregation_weights = {};  // [n]; empty: ones

  // Converts sparse ids and their weights.
  static EnqueueData from_sparse_tensor(const SparseTensor& ids,
                                        const std::optional<SparseTensor>& weights = {});
};

// The ids of one feature in ragged form.
struct RaggedEnqueueData {
  Tensor embedding_indices;         // int32 or int64 [n]
  Tensor row_splits;                // int64 [batch size per core + 1]
  Tensor aggregation_weights = {};  // [n]; empty: ones

  // Converts ragged ids and their weights.
  static RaggedEnqueueData from_ragged_tensor(const RaggedTensor& ids,
                                              const std::optional<RaggedTensor>& weights = {});
};

// The lookups of one core, by feature.
using CoreEnqueueData = std::map<std::string, std::variant<EnqueueData, RaggedEnqueueData>>;

// Selects whether the engine updates its tables.
enum class Mode { kTraining, kInference };

// Options of a TPUEmbedding.
struct TPUEmbeddingOptions {
  TableConfigs table_to_config_dict = {};      // required: the tables, by table_id
  FeatureConfigs feature_to_config_dict = {};  // required: the features, by key
  int64_t batch_size = 0;                      // over all cores
  Mode mode = Mode::kTraining;                 // kInference: tables are only looked up
  // The update rule of tables without their own. Required for training if a table has none; must be
  // unset for inference.
  EmbeddingOptimizer optimization_parameters = {};
  std::string partition_strategy = "div";  // or "mod"
  // Delays the updates of the tables by one step.
  bool pipeline_execution_with_tensor_core = false;
  // A directory with lookup statistics. Statistics of these tables override partition_strategy;
  // training adds to them.
  std::string profile_data_directory = {};
  ProfilerOptions profiler = {};  // options of the statistics, if there is a directory
};

// The tables and the pending batches of one engine.
class TPUEmbedding {
 public:
  using Activations = std::map<std::string, Tensor>;  // by feature

  // Binds to the current strategy. Throws ValueError
  // - if the strategy is not a TPUStrategy,
  // - for an unknown partition_strategy,
  // - for a table that no feature uses and a feature with an unknown table,
  // - for a batch_size that is not a multiple of the number of cores,
  // - for optimization parameters of another class,
  // - in training for a table without optimization parameters, in inference for any,
  // - for a table whose dimension its optimization parameters do not support.
  // Throws IoError for damaged statistics.
  explicit TPUEmbedding(TPUEmbeddingOptions options);

  int num_hosts() const;                // hosts of the strategy
  int num_cores() const;                // over all hosts
  int64_t batch_size_per_core() const;  // TPUEmbeddingOptions::batch_size divided by num_cores()
  // Returns the names of the tables, sorted.
  const std::vector<std::string>& tables() const;
  // The position of a feature in the activations of its table, [batch per core, num_features,
  // dimension]. A pooled feature has one position, a sequence feature max_sequence_length.
  struct FeaturePosition {
    std::string feature;  // its key
    int64_t begin = 0;    // the first position
    int64_t count = 1;    // the number of positions
  };
  // Return the features of a table and their number of positions. Throw ValueError for an unknown
  // table.
  const std::vector<FeaturePosition>& features_of(const std::string& table) const;
  // See features_of().
  int64_t num_features(const std::string& table) const;
  // The contiguous parts of a table's variable, one for each host. If there are more hosts than
  // rows, the remaining parts are dummies of one row, which checkpoints do not contain.
  struct VariablePart {
    std::string name;    // "<table>/part_<i>"; of dummies "dummy_<i>_<table>"
    int64_t rows = 0;    // number of rows of the part
    bool dummy = false;  // the host has no row of the table
  };
  // Returns the parts of a table's variable. Throws ValueError for an unknown table.
  std::vector<VariablePart> variable_parts(const std::string& table) const;
  // Returns how rows are sharded over hosts. It does not change results.
  const std::string& partition_strategy() const;
  // Returns the distinct functions among the tables' learning rates, in table order. The position
  // of a table's function is its tag in the engine's record.
  const std::vector<LearningRateFn>& learning_rate_fns() const;

  // Creates the engine and initializes its tables. Throws RuntimeError if the strategy has an
  // engine.
  void build();

  // Enqueues a batch; `cores` holds the data of each core of this process, in order. Call it on the
  // host. Throws ValueError for another number of cores, for missing or unknown features, and under
  // the following conditions: a tensor that is not on the host, another number of rows, samples
  // that are unordered or out of range, weights whose number differs from that of the ids, weights
  // of one id per sample, one id per sample of a sequence. Then nothing is enqueued. After a failed
  // run of the strategy, the batches enqueued before it are dropped.
  void generate_enqueue(const std::vector<CoreEnqueueData>& cores);

  // Looks up the oldest enqueued batch. Returns pooled features [batch per core, dimension] and
  // sequences [batch per core, max_sequence_length, dimension]. Throws RuntimeError if no batch is
  // enqueued. Call it, and the functions below up to get_gradients_through_dummies, in each core.
  Activations get_activations();
  // Looks up the oldest enqueued batch and returns the activations by table, [batch per core,
  // num_features, dimension].
  std::map<std::string, Tensor> get_activation_blocks();
  // Updates the tables with the gradients of the oldest batch that was looked up and not updated.
  // `step` is the argument of learning rate functions. Throws RuntimeError in inference or without
  // such a batch. Throws ValueError for a missing or unknown feature, for a gradient of another
  // shape than the activation, and for learning rate functions without `step`. Throws TypeError for
  // a gradient that is not float32.
  void generate_send_gradients(const Activations& gradients, std::optional<int64_t> step = {});

  // Returns one virtual variable for each table. Activations passed through
  // hook_dummy_table_variables depend on them: computing their gradients with a tape captures the
  // gradients of the activations.
  const std::vector<Variable>& dummy_table_variables() const;
  // Returns the activations, made dependent on the dummy variables.
  Activations hook_dummy_table_variables(const Activations& activations);
  // Returns the captured gradients of the activations. Throws ValueError, naming the feature, if a
  // feature had no gradient.
  Activations get_gradients_through_dummies();

  // Returns the entries of the tables and their slots with their checkpoint names: `variable_names`
  // by table, and slot_names() for slots. Call it outside replicas.
  std::vector<StateEntry> state_entries(
      const std::map<std::string, std::string>& variable_names) const;
  // Writes the statistics sampled in training to profile_data_directory. Returns the number of
  // files.
  int save_profiles() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace keel::tpu::v1

// The embedding engine by names (tf.compat.v1 tpu_embedding.TPUEmbedding): what the estimator puts
// its tables in.
//
//   tpu::v1::TPUEmbedding embedding({.table_to_config_dict = ..., .feature_to_config_dict = ...,
//                                    .batch_size = 64, .optimization_parameters = ...});
//   embedding.build();                              // under a TPUStrategy, as all of this
//   embedding.generate_enqueue(data_of_each_core);  // on the host
//   strategy.run([&] {                              // in each core
//     auto activations = embedding.hook_dummy_table_variables(embedding.get_activations());
//     ...
//     tape.gradient(loss, dense variables and dummy_table_variables());
//     embedding.generate_send_gradients(embedding.get_gradients_through_dummies(), step);
//   });
//
// Copies share one engine. Tables are sorted by name, features by name inside their table.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/layers/embedding/v1/enqueue_data.h>
#include <keel/layers/embedding/v1/lookup_statistics.h>
#include <keel/layers/layer.h>

namespace keel::tpu::v1 {

enum class Mode { kTraining, kInference };

struct TPUEmbeddingOptions {
  TableConfigs table_to_config_dict = {};
  FeatureConfigs feature_to_config_dict = {};
  int64_t batch_size = 0;  // over all cores
  Mode mode = Mode::kTraining;
  // For tables without their own; needed for training then. None for inference.
  EmbeddingOptimizer optimization_parameters = {};
  std::string partition_strategy = "div";  // or "mod"
  bool pipeline_execution_with_tensor_core = false;
  // If it has statistics of these tables, they choose how tables are split instead of
  // partition_strategy; training adds to them.
  std::string profile_data_directory = {};
  ProfilerOptions profiler = {};
};

class TPUEmbedding {
 public:
  using Activations = std::map<std::string, Tensor>;  // by feature

  // Takes the strategy of now. ValueError if that is no TPUStrategy, for another
  // partition_strategy, a table that no feature uses, a feature with an unknown table, a batch_size
  // that is no multiple of the number of cores, optimization parameters of another class, none for
  // training with a table that has none, any for inference, and a table whose width its
  // optimization parameters do not take. IoError for damaged statistics.
  explicit TPUEmbedding(TPUEmbeddingOptions options);

  int num_hosts() const;
  int num_cores() const;  // over all hosts
  int64_t batch_size_per_core() const;
  const std::vector<std::string>& tables() const;
  // Where a table's features stand in its activations [batch per core, num_features, dimension]: a
  // pooled feature has one place, a sequence max_sequence_length.
  struct Place {
    std::string feature;
    int64_t begin = 0, count = 1;
  };
  const std::vector<Place>& features_of(const std::string& table) const;
  int64_t num_features(const std::string& table) const;
  // The contiguous parts of a table's variable, one for each host; those beyond the table's rows
  // are dummies of one row, which no checkpoint has.
  struct VariablePart {
    std::string name;
    int64_t rows = 0;
    bool dummy = false;
  };
  std::vector<VariablePart> variable_parts(const std::string& table) const;
  // Which way rows are dealt to hosts; it changes no value.
  const std::string& partition_strategy() const;
  // The distinct functions among the tables' learning rates, in table order: the position of a
  // table's function is its tag in the engine's record.
  const std::vector<LearningRateFn>& learning_rate_fns() const;

  // Makes the engine and the first values of its tables. RuntimeError if the strategy has an
  // engine.
  void build();

  // On the host: a batch, for each core of this process in order. ValueError for another number of
  // cores, for features missing or too many, and as embedding_input_of says; nothing more waits
  // then. What waited when a run of the strategy failed is forgotten.
  void generate_enqueue(const std::vector<CoreEnqueueData>& cores);

  // All below: in each core.
  // Of the oldest batch that waits: pooled features [batch per core, dimension], sequences [batch
  // per core, max_sequence_length, dimension]. RuntimeError if there is none.
  Activations get_activations();
  // The same by table, as [batch per core, num_features, dimension].
  std::map<std::string, Tensor> get_activation_blocks();
  // Updates the tables by the gradients of the oldest batch that was looked up and not updated.
  // `step` is what functions of learning rates are asked for. RuntimeError in inference or without
  // such a batch; ValueError for a missing or unknown feature, another shape than its activation's,
  // and functions without step.
  void generate_send_gradients(const Activations& gradients, std::optional<int64_t> step = {});

  // One variable for each table, which stands for it: activations passed through the hook depend on
  // them, and asking a tape for their gradients keeps those of the activations.
  const std::vector<Variable>& dummy_table_variables() const;
  Activations hook_dummy_table_variables(const Activations& activations);
  // ValueError, naming it, if a feature had no gradient.
  Activations get_gradients_through_dummies();

  // Outside replicas. Tables and their slots, as checkpoints name them: `variable_names` by table;
  // slots follow slot_names().
  std::vector<StateEntry> state_entries(
      const std::map<std::string, std::string>& variable_names) const;
  // Writes what was sampled in training to profile_data_directory; how many files.
  int save_profiles() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace keel::tpu::v1

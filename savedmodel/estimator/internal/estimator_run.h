// EstimatorRun: the state of one call of an estimator: a strategy, the model, its tables, its
// checkpoints, and the steps of the call.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/layers/embedding/v1/embedding_features.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/estimator/internal/estimator_graph.h>
#include <keel/savedmodel/estimator/tpu_estimator.h>

namespace keel::estimator {

// A layer that holds the layers of a graph and its tables. It determines the keys of checkpoints:
//   <layer>/.../<weight>         see layer_state.h; layers in the order of their first call
//   <variable of a table>        "dense_features/a_embedding/embedding_weights"
//   <variable of a table>/<slot> in an engine: ".../embedding_weights/Adagrad"
class EstimatorModel final : public Layer {
 public:
  // The tables are in an engine, or they are variables of `host`, or there are none.
  EstimatorModel(const EstimatorGraph& graph, std::map<std::string, std::string> variable_names,
                 std::optional<tpu::v1::TPUEmbedding> engine,
                 std::optional<layers::EmbeddingFeatures> host);
  std::vector<StateEntry> state_entries() const override;

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return (*graph_)(inputs); }

  const Functional graph_;
  const std::map<std::string, std::string> variable_names_;  // by table
  const std::optional<tpu::v1::TPUEmbedding> engine_;
};
// Creates an EstimatorModel and builds it for the inputs of the graph.
LayerHandle<EstimatorModel> make_estimator_model(const EstimatorGraph& graph,
                                                 const std::optional<EmbeddingConfigSpec>& spec,
                                                 std::optional<tpu::v1::TPUEmbedding> engine,
                                                 std::optional<layers::EmbeddingFeatures> host);

// Returns the lookups of the spec. With `on_host`, ordinary embedding columns are omitted, because
// they look up their own tables.
tpu::v1::Configs configs_of(const std::optional<EmbeddingConfigSpec>& spec, bool on_host);
// Returns a layer for these lookups on the host, or an empty optional if there are none.
std::optional<layers::EmbeddingFeatures> make_host_tables(
    const std::optional<EmbeddingConfigSpec>& spec, const tpu::v1::Configs& configs);

// Performs the steps of one call of train, evaluate or predict.
class EstimatorRun {
 public:
  // `first` is a batch from which shapes are taken. Restores the newest checkpoint if there is one.
  EstimatorRun(const TPUEstimatorOptions& options, ModeKeys mode, bool on_tpu, int64_t batch_size,
               const Tensors& first);
  ~EstimatorRun();
  EstimatorRun(const EstimatorRun&) = delete;
  EstimatorRun& operator=(const EstimatorRun&) = delete;

  // Returns true if a checkpoint was restored.
  bool restored() const { return restored_; }
  int64_t global_step() const;
  // Steps of one full batch. train_step() and eval_step() return its loss, and predict_step() the
  // predictions of all of its rows.
  double train_step(const Tensors& batch);
  double eval_step(const Tensors& batch);
  Tensors predict_step(const Tensors& batch);
  // Returns the results of the eval_metrics by name.
  std::map<std::string, double> metrics() const;

  // Saves a checkpoint of the current global step and returns its path.
  std::string save();
  // Saves the statistics of lookups if the spec requests them.
  void save_profiles() const;

 private:
  using Parts = distribute::PerReplica<Tensors>;
  void make_engine(int64_t batch_size);
  // Returns the inputs of each replica's model without activations, and enqueues the embedding
  // features in the engine.
  Parts feed(const Tensors& batch);
  // Adds activations to the features. In training they are connected to the dummy variables that
  // collect their gradients.
  Tensors with_activations(const Tensors& part);
  // Sends this replica's gradients to the engine, multiplied by `factor`.
  void send_gradients(double factor);

  const TPUEstimatorOptions& options_;
  const ModeKeys mode_;
  const std::unique_ptr<distribute::Strategy> strategy_;
  tpu::v1::Configs configs_;
  std::optional<EstimatorGraph> graph_;
  std::optional<tpu::v1::TPUEmbedding> engine_;
  std::optional<layers::EmbeddingFeatures> host_;
  std::optional<LayerHandle<EstimatorModel>> model_;
  Variable global_step_;
  std::optional<OptimizerHandle> optimizer_;
  std::optional<CheckpointManager> checkpoints_;
  bool restored_ = false;
};

}  // namespace keel::estimator

// EstimatorRun: what one call of an estimator sets up: a strategy, the model, its tables and its
// checkpoints, and the steps that the call is made of.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/layers/embedding/v1/embedding_features.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1.h>
#include <keel/savedmodel/checkpoint/checkpoint_manager.h>
#include <keel/savedmodel/estimator/internal/estimator_graph.h>
#include <keel/savedmodel/estimator/tpu_estimator.h>

namespace keel::estimator {

// The layers of a graph and the tables beside them: what checkpoints hold, as
//   <layer>/.../<weight>         see layer_state.h; layers in the order they are called first
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
LayerHandle<EstimatorModel> make_estimator_model(const EstimatorGraph& graph,
                                                 const std::optional<EmbeddingConfigSpec>& spec,
                                                 std::optional<tpu::v1::TPUEmbedding> engine,
                                                 std::optional<layers::EmbeddingFeatures> host);

// What the spec wants looked up; `on_host` without its ordinary columns, which look up themselves.
tpu::v1::Configs configs_of(const std::optional<EmbeddingConfigSpec>& spec, bool on_host);
// Lookups of these on the host; nothing if there are none.
std::optional<layers::EmbeddingFeatures> make_host_tables(
    const std::optional<EmbeddingConfigSpec>& spec, const tpu::v1::Configs& configs);

class EstimatorRun {
 public:
  // `first` is a batch, which tells of shapes. Takes the values of the newest checkpoint, if any.
  EstimatorRun(const TPUEstimatorOptions& options, ModeKeys mode, bool on_tpu, int64_t batch_size,
               const Tensors& first);
  ~EstimatorRun();
  EstimatorRun(const EstimatorRun&) = delete;
  EstimatorRun& operator=(const EstimatorRun&) = delete;

  bool restored() const { return restored_; }
  int64_t global_step() const;
  // Of one whole batch. Each gives its loss, or predictions for all of its rows.
  double train_step(const Tensors& batch);
  double eval_step(const Tensors& batch);
  Tensors predict_step(const Tensors& batch);
  std::map<std::string, double> metrics() const;

  std::string save();
  void save_profiles() const;

 private:
  using Parts = distribute::PerReplica<Tensors>;
  void make_engine(int64_t batch_size);
  // What each replica gives to the model, but for activations; what those are of waits in the
  // engine then.
  Parts feed(const Tensors& batch);
  // With activations among the features; for training those that know of dummies.
  Tensors with_activations(const Tensors& part);
  // Of this replica, to the engine; `factor` is what they are multiplied by.
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

// Model: a layer made of layers that can be trained, evaluated, saved and served
// (keras.Model). Derive from it and write call(), or use Functional and Sequential.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/training/compile/compile_options.h>
#include <keel/layers/training/resume_point.h>
#include <keel/layers/training/training_options.h>

namespace keel {

class Trainer;
namespace distribute {
class Strategy;
}

// The inputs of a model whose graph is known.
struct ModelInputs {
  Tensors tensors = {};                 // symbolic, in the structure that the model takes
  std::vector<std::string> names = {};  // of the input layers, by leaf of `tensors`
};

class Model : public Layer {
 public:
  ~Model() override;

  // Of functional models, and of sequential models once built; else nothing.
  virtual std::optional<ModelInputs> symbolic_inputs() const { return {}; }
  // The layers (or, in snake case, the ops) that make the outputs of a functional or sequential
  // model, by leaf; empty for other models.
  virtual std::vector<std::string> output_layer_names() const { return {}; }

  // The layers in the order that files and summary() list them: for a functional model Keras's
  // order by depth, else the order in which they were tracked.
  virtual std::vector<LayerHandle<Layer>> layers() const { return sublayers(); }
  // ValueError if there is none of that name.
  LayerHandle<Layer> get_layer(const std::string& name) const;

  // Sets the optimizer, losses and metrics that fit and evaluate use, for the strategy of now.
  // Losses, metrics, labels and weights of several outputs go by position or by name: the keys of
  // outputs that are a dict, else the names of the layers that make them. ValueError for a loss of
  // reduction "none"; names that no output has are found by the first step. Called in the midst of
  // fit or evaluate, it is for the runs that start afterwards: the one that goes on keeps its own
  // until it ends, and optimizer() and the like are of that one.
  void compile(CompileOptions options);
  bool compiled() const { return trainer_ != nullptr; }
  // Null before compile().
  std::shared_ptr<Optimizer> optimizer() const;
  // {"optimizer", "loss", "metrics", ...} as Keras files have it; null before compile().
  Config get_compile_config() const;
  void compile_from_config(const Config& config);  // compile() of such a config

  // One thread at a time may train or evaluate a model: a call of fit, evaluate, train_on_batch or
  // test_on_batch beside one of another thread is a RuntimeError.

  // In a job of several processes all of them call what follows, with the same data; logs,
  // history and predictions are the same in all, and rank 0 prints.

  // Trains for options.epochs passes over `data`, a dataset of x, (x, y) or (x, y, sample_weight)
  // of global batches. Each batch is split over the replicas of the strategy. The loss is the
  // weighted sum of those of the outputs, each a mean over the global batch, and of losses(). Logs
  // have "loss"; "<output>_loss" if several outputs have one, without its weight; the metrics, as
  // "<output>_<metric>" if there are several outputs; and the same of the validation as "val_...".
  // Returns the logs of each epoch.
  // RuntimeError before compile(); ValueError, naming the step, for a label or loss that is NaN.
  History fit(const data::Dataset& data, const FitOptions& options = {});
  // The same from arrays, shuffled each epoch and batched by options.batch_size. Without y for
  // models that add their own losses.
  History fit(const Tensors& x, const Tensors& y, const FitOptions& options = {});
  History fit(const Tensors& x, const FitOptions& options);

  // Loss and metrics over `data`, by name: {"loss": 0.31, "auc": 0.91}.
  Logs evaluate(const data::Dataset& data, const EvaluateOptions& options = {});
  Logs evaluate(const Tensors& x, const Tensors& y, const EvaluateOptions& options = {});
  Logs evaluate(const Tensors& x, const EvaluateOptions& options);

  // The outputs for all rows of `data`, in order: elements are x, or tuples whose first item is.
  Tensors predict(const data::Dataset& data, const PredictOptions& options = {});
  Tensors predict(const Tensors& x, const PredictOptions& options = {});

  // One step on one global batch; what fit, evaluate and predict do for each.
  Logs train_on_batch(const Tensors& x, const Tensors& y = {}, const OnBatchOptions& options = {});
  Logs test_on_batch(const Tensors& x, const Tensors& y = {}, const OnBatchOptions& options = {});
  Tensors predict_on_batch(const Tensors& x);

  // What a step does in each replica. Override them to train in a way of one's own: they get what
  // the replica has of a batch (unpack_x_y_sample_weight takes it apart) and may use the optimizer.
  // The values returned are the replica's shares: logs have the sums over the replicas, as means
  // over the rows of the epoch. Metrics are updated here and need not be returned, for their
  // results are known outside the replicas only: logs have those of metrics().
  virtual Logs train_step(const Tensors& data);
  virtual Logs test_step(const Tensors& data);
  virtual Tensors predict_step(const Tensors& data);
  // For these steps. The replica's share of the loss of the global batch, compile()'s losses and
  // losses() together: a floating scalar. ValueError if there are none.
  virtual Tensor compute_loss(const StepData& data, const Tensors& outputs);
  virtual void compute_metrics(const StepData& data, const Tensors& outputs);
  // Those of compile(). Models with metrics of their own add them; logs have them by name.
  virtual std::vector<MetricHandle> metrics() const;
  void reset_metrics();  // the loss, too

  // Ends fit after the step that runs; for callbacks.
  void set_stop_training(bool stop) { stop_training_ = stop; }
  bool stop_training() const { return stop_training_; }
  // Makes fit begin elsewhere; for callbacks, in on_train_begin.
  void set_resume_point(ResumePoint point) { resume_point_ = std::move(point); }
  std::optional<ResumePoint> take_resume_point();
  // What the steps since the last reset of metrics have gathered, each replica's own, by name; for
  // backups. Collective over processes. set: ValueError for that of another training.
  std::map<std::string, Tensor> training_state() const;
  void set_training_state(const std::map<std::string, Tensor>& state);
  // The strategy that it was compiled under, or else that of now.
  distribute::Strategy& strategy() const;

 protected:
  using Layer::Layer;

 private:
  class Run;
  // The one in use; RuntimeError before compile().
  Trainer& trainer(const char* caller) const;
  const std::shared_ptr<Trainer>& in_use() const { return running_ ? running_ : trainer_; }

  std::shared_ptr<Trainer> trainer_;  // of the last compile()
  std::shared_ptr<Trainer> running_;  // of the run that goes on
  std::atomic<std::thread::id> running_thread_ = {};
  bool stop_training_ = false;
  std::optional<ResumePoint> resume_point_;
};

using ModelHandle = LayerHandle<Model>;

}  // namespace keel

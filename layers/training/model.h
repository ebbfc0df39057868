// Model: a layer composed of layers that can be trained, evaluated, saved and served (keras.Model).
// Derive from it and implement call(), or use Functional or Sequential.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/training/callback.h>
#include <keel/layers/training/compile/compile_options.h>
#include <keel/layers/training/training_options.h>

namespace keel {

class Trainer;
namespace distribute {
class Strategy;
}

// The symbolic inputs of a model whose graph is known.
struct ModelInputs {
  Tensors tensors = {};                 // symbolic, in the structure that the model accepts
  std::vector<std::string> names = {};  // input layer names, one per leaf of `tensors`
};

// Base class of models: adds compile(), fit(), evaluate(), predict() and single steps to Layer.
class Model : public Layer {
 public:
  ~Model() override;

  // Returns the symbolic inputs of a functional model, or of a sequential model once it is built.
  // Returns nothing for other models.
  virtual std::optional<ModelInputs> symbolic_inputs() const { return {}; }
  // Returns the names of the layers (or, in snake case, of the ops) that produce the outputs of a
  // functional or sequential model, one per output leaf. Returns an empty list for other models.
  virtual std::vector<std::string> output_layer_names() const { return {}; }

  // Returns the layers in the order in which files and summary() list them: Keras's order by depth
  // for a functional model, otherwise the order in which they were tracked.
  virtual std::vector<LayerHandle<Layer>> layers() const { return sublayers(); }
  // Returns the layer with this name, or at this position of layers(). A negative index counts from
  // the end. Throws ValueError if there is none.
  LayerHandle<Layer> get_layer(const std::string& name) const;
  LayerHandle<Layer> get_layer(int64_t index) const;

  // Sets the optimizer, losses and metrics that fit and evaluate use, for the current strategy.
  //
  // Losses, metrics, labels and weights of several outputs are matched by position or by name.
  // Names are the keys if the outputs are a dict, otherwise the names of the layers that produce
  // them. Throws ValueError for a loss with reduction "none"; the first step reports names that
  // match no output.
  //
  // A call during fit or evaluate affects later runs only. The current run keeps its own settings
  // until it ends, and optimizer() and similar members describe the current run.
  void compile(CompileOptions options);
  bool compiled() const { return trainer_ != nullptr; }
  // Returns null before compile().
  std::shared_ptr<Optimizer> optimizer() const;
  // Returns {"optimizer", "loss", "metrics", ...} in the form of Keras files; null before
  // compile().
  Config get_compile_config() const;
  // Calls compile() with the options of such a config.
  void compile_from_config(const Config& config);

  // Only one thread at a time may train or evaluate a model: fit, evaluate, train_on_batch and
  // test_on_batch throw RuntimeError while another thread is inside one of them.

  // In a job of several processes, all processes must call the following members with the same
  // data. Logs, history and predictions are the same in all processes; rank 0 prints.

  // Trains for options.epochs passes over `data`, a dataset of global batches x, (x, y) or (x, y,
  // sample_weight). Each batch is split over the replicas of the strategy. The loss is the weighted
  // sum of the losses of the outputs, each a mean over the global batch, plus losses().
  //
  // Logs have these names:
  // - "loss";
  // - "<output>_loss", without its weight, if several outputs have a loss;
  // - the names of the metrics, as "<output>_<metric>" if there are several outputs;
  // - "val_<name>" for each of these values of the validation.
  //
  // Returns the logs of each epoch. Throws RuntimeError before compile(), and ValueError, naming
  // the step, if a label or the loss is NaN.
  History fit(const data::Dataset& data, const FitOptions& options = {});
  // Trains on arrays, which are shuffled for each epoch and batched by options.batch_size. Omit y
  // for models that add their own losses.
  History fit(const Tensors& x, const Tensors& y, const FitOptions& options = {});
  History fit(const Tensors& x, const FitOptions& options);

  // Returns loss and metrics over `data`, by name: {"loss": 0.31, "auc": 0.91}.
  Logs evaluate(const data::Dataset& data, const EvaluateOptions& options = {});
  Logs evaluate(const Tensors& x, const Tensors& y, const EvaluateOptions& options = {});
  Logs evaluate(const Tensors& x, const EvaluateOptions& options);

  // Returns the outputs for all rows of `data`, in order. Elements are x, or tuples whose first
  // item is x.
  Tensors predict(const data::Dataset& data, const PredictOptions& options = {});
  Tensors predict(const Tensors& x, const PredictOptions& options = {});

  // Run one step on one global batch, as fit, evaluate and predict do for each batch.
  Logs train_on_batch(const Tensors& x, const Tensors& y = {}, const OnBatchOptions& options = {});
  Logs test_on_batch(const Tensors& x, const Tensors& y = {}, const OnBatchOptions& options = {});
  Tensors predict_on_batch(const Tensors& x);

  // Run a step in one replica. Override them to implement your own training loop body. `data` is
  // the replica's part of the batch (unpack_x_y_sample_weight splits it); train_step may use the
  // optimizer.
  //
  // The returned values are the replica's shares. Logs report their sums over the replicas,
  // averaged over the rows of the epoch. Update metrics here, but do not return their results:
  // results are only known outside the replicas, where logs add those of metrics().
  virtual Logs train_step(const Tensors& data);
  virtual Logs test_step(const Tensors& data);
  virtual Tensors predict_step(const Tensors& data);
  // Returns the replica's share of the loss of the global batch: the losses of compile() plus
  // losses(), a floating scalar. For use in a step. Throws ValueError if there are no losses.
  virtual Tensor compute_loss(const StepData& data, const Tensors& outputs);
  // Updates the metrics of compile() in a step.
  virtual void compute_metrics(const StepData& data, const Tensors& outputs);
  // Returns the metrics of compile(), then those of add_metric(). Override it to add further
  // metrics; logs report them by name.
  virtual std::vector<MetricHandle> metrics() const;
  // Makes logs report a metric that the model or one of its layers updates in a step or a call. It
  // is reset together with the other metrics. Throws ValueError if a metric has the same name.
  void add_metric(MetricHandle metric);
  // Resets the metrics and the mean losses.
  void reset_metrics();

  // Ends fit after the current step; for callbacks.
  void set_stop_training(bool stop) { stop_training_ = stop; }
  bool stop_training() const { return stop_training_; }
  // Makes fit start at another epoch and step; for callbacks, in on_train_begin().
  void set_resume_point(ResumePoint point) { resume_point_ = std::move(point); }
  // Returns the resume point, if one is set, and clears it.
  std::optional<ResumePoint> take_resume_point();
  // Returns the accumulated losses and metrics since the last reset of metrics, one set per
  // replica, by name; for backups. Collective over processes. set_training_state() throws
  // ValueError for the state of a model with other metrics or another number of replicas.
  std::map<std::string, Tensor> training_state() const;
  void set_training_state(const std::map<std::string, Tensor>& state);
  // Returns the strategy that was current at compile() or, before compile(), the current one.
  distribute::Strategy& strategy() const;

 protected:
  using Layer::Layer;

 private:
  class Run;
  // Returns the trainer in use. Throws RuntimeError, prefixed with `caller`, before compile().
  Trainer& trainer(const char* caller) const;
  const std::shared_ptr<Trainer>& in_use() const { return running_ ? running_ : trainer_; }

  std::vector<MetricHandle> added_metrics_;
  std::shared_ptr<Trainer> trainer_;  // made by the last compile()
  std::shared_ptr<Trainer> running_;  // used by the current run; null outside of runs
  std::atomic<std::thread::id> running_thread_ = {};
  bool stop_training_ = false;
  std::optional<ResumePoint> resume_point_;
};

using ModelHandle = LayerHandle<Model>;

}  // namespace keel

// Model: a layer made of layers that can be trained, evaluated, saved and served
// (keras.Model). Derive from it and write call(), or use Functional and Sequential.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/training/training_options.h"

namespace keel {

class Trainer;

class Model : public Layer {
 public:
  ~Model() override;

  // The layers in the order that files and summary() list them: for a functional model Keras's
  // order by depth, else the order in which they were tracked.
  virtual std::vector<LayerHandle<Layer>> layers() const { return sublayers(); }
  // ValueError if there is none of that name.
  LayerHandle<Layer> get_layer(const std::string& name) const;

  // Sets the optimizer, loss and metrics that fit and evaluate use, for the strategy of now.
  void compile(CompileOptions options);
  bool compiled() const { return trainer_ != nullptr; }
  // Null before compile().
  std::shared_ptr<Optimizer> optimizer() const;
  // {"optimizer", "loss", "metrics", ...} as Keras files have it; null before compile().
  Config get_compile_config() const;
  // compile() of such a config. NotImplementedError for losses or metrics by output.
  void compile_from_config(const Config& config);

  // In a job of several processes all of them call what follows, with the same data; logs,
  // history and predictions are the same in all, and rank 0 prints.

  // Trains for options.epochs passes over `data`, a dataset of (x, y) or (x, y, sample_weight)
  // tuples of global batches. Each batch is split over the replicas of the strategy; the loss is
  // the mean over the global batch. Returns the logs of each epoch.
  // RuntimeError before compile(); ValueError, naming the step, for a label or loss that is NaN.
  History fit(const data::Dataset& data, const FitOptions& options = {});
  // The same from arrays, shuffled each epoch and batched by options.batch_size.
  History fit(const Tensors& x, const Tensors& y, const FitOptions& options = {});

  // Loss and metrics over `data`, by name: {"loss": 0.31, "auc": 0.91}.
  Logs evaluate(const data::Dataset& data, const EvaluateOptions& options = {});
  Logs evaluate(const Tensors& x, const Tensors& y, const EvaluateOptions& options = {});

  // The outputs for all rows of `data`, in order: elements are x, or tuples whose first item is.
  Tensors predict(const data::Dataset& data, const PredictOptions& options = {});
  Tensors predict(const Tensors& x, const PredictOptions& options = {});

  // One step on one global batch; what fit does for each. The logs are of this batch alone.
  Logs train_on_batch(const Tensors& x, const Tensors& y);
  Logs test_on_batch(const Tensors& x, const Tensors& y);

  // Ends fit after the step that runs; for callbacks.
  void set_stop_training(bool stop) { stop_training_ = stop; }
  bool stop_training() const { return stop_training_; }

 protected:
  using Layer::Layer;

 private:
  Trainer& trainer(const char* caller) const;  // RuntimeError before compile()

  std::shared_ptr<Trainer> trainer_;
  bool stop_training_ = false;
};

using ModelHandle = LayerHandle<Model>;

}  // namespace keel

// The training loop of train_ctr: a click model with two optimizers, validation, early stopping,
// checkpoints, and orderly termination on SIGINT and SIGTERM. The same code runs under every
// strategy.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/framework/config/config.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/ctr/ctr_model.h>
#include <keel/optimizers/optimizer.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

namespace keel::examples {

struct CtrTrainingOptions {
  CtrModelOptions model;  // embedding_optimizer below replaces its embedding_optimizer
  std::string embedding_optimizer;
  double embedding_learning_rate = 0, learning_rate = 0;
  int64_t batch_size = 0;
  int64_t epochs = 0;    // upper limit if there are validation rows
  int64_t patience = 0;  // epochs without a lower validation loss before training ends
  uint64_t seed = 0;
  std::string checkpoint_dir = {};  // empty: no checkpoints
  int64_t checkpoint_steps = 0;     // 0: a checkpoint after each epoch
  bool resume = false;
  int64_t stop_after_steps = 0;  // 0: train to the end
  bool in_order = false;         // does not shuffle the rows
  // Options that must not change when a run resumes. They are stored with its checkpoints as {flag:
  // value}.
  Config fixed = Config::dict();
};

// Rows in the form that the model takes, and their labels.
struct CtrExamples {
  Tensors features;
  Tensor labels;
};

class CtrTraining {
 public:
  // Creates the model under the strategy. Throws ValueError, naming the flag and both values, if
  // the run to be resumed had another value of a fixed option, and IoError if the checkpoint folder
  // cannot be used.
  CtrTraining(distribute::Strategy& strategy, const CtrFeatures& features,
              CtrTrainingOptions options);

  enum class End { kFinished, kStopped, kSignal };
  // Trains the model and prints a line for each epoch. If training finishes with validation rows,
  // restores the weights of the epoch with the lowest validation loss.
  End run(const CtrExamples& train, const std::optional<CtrExamples>& validation,
          std::ostream& out);

  // Predicts each batch of rows, in their order, and trains on it afterwards. Returns the
  // predictions.
  Tensor predict_and_train(const CtrExamples& rows);

  const Functional& model() const { return model_.model; }
  const layers::TPUEmbedding& embedding() const { return model_.embedding; }
  const std::optional<std::string>& last_checkpoint() const { return last_checkpoint_; }
  int64_t steps() const { return dense_optimizer_->iterations(); }

 private:
  struct GlobalStep {
    double loss = 0;      // mean over the rows of the global batch
    bool signal = false;  // a process of the job has received a signal
  };
  GlobalStep step(const distribute::PerReplica<Tensors>& batch);
  void apply(GradientTape& tape, const Tensor& loss);
  Logs validate(const CtrExamples& rows) const;
  void check_fixed_options() const;
  void open_checkpoints(bool validates);
  void save_checkpoint();
  void restore_checkpoint(std::ostream& out);

  distribute::Strategy& strategy_;
  const CtrTrainingOptions options_;
  const OptimizerHandle embedding_optimizer_, dense_optimizer_;
  const CtrModel model_;
  EarlyStoppingCallback early_stopping_;
  std::map<std::string, Tensor>
      early_stopping_state_;  // stored in checkpoints of runs with validation
  std::optional<CheckpointManager> checkpoints_;
  std::optional<std::string> last_checkpoint_;
};

// Returns true if the labels contain 0 and 1. Otherwise their AUC is undefined.
bool has_both_classes(const Tensor& labels);

// Returns the mean log loss and the AUC of predictions: {"auc", "loss"}, without "auc" if it is
// undefined.
Logs ctr_metrics(const Tensor& labels, const Tensor& predictions);

}  // namespace keel::examples

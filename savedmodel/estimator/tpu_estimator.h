// TPUEstimator: trains, evaluates, runs and exports a model given by a function, with its embedding
// tables in an embedding engine (tf.estimator.tpu.TPUEstimator).
//
//   auto a = feature_column::categorical_column_with_identity("a", 1000);
//   auto column = tpu::embedding_column(a, 16);
//   estimator::TPUEstimator estimator({
//       .model_fn =
//           [&](const Tensors& features, const Tensors& labels, estimator::ModeKeys mode) {
//             Tensor x = layers::DenseFeatures({.feature_columns = {column}})(features).tensor();
//             Tensor p = layers::Dense({.units = 1, .activation = "sigmoid"})(x);
//             ...
//           },
//       .config = {.model_dir = "/data/run", .cluster = {.num_cores = 8}},
//       .train_batch_size = 1024,
//       .embedding_config_spec = estimator::EmbeddingConfigSpec(
//           {.feature_columns = {column},
//            .optimization_parameters = tpu::AdagradParameters{.learning_rate = 0.1}}),
//   });
//   estimator.train(input_fn, {.steps = 1000});
//
// EstimatorSpec: the model for one mode, as a model_fn returns it (tf.estimator.EstimatorSpec).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/data/dataset.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/training/compile/compile_options.h>

namespace keel::estimator {

// The mode in which model_fn is called.
enum class ModeKeys {
  kTrain,   // train()
  kEval,    // evaluate()
  kPredict  // predict() and export_saved_model()
};

// A metric of evaluate(), with the symbolic tensors that it is computed from.
struct EvalMetric {
  MetricHandle metric;        // is updated with each batch
  Tensor y_true;              // the labels
  Tensor y_pred;              // the predictions
  Tensor sample_weight = {};  // if empty, all ones
};

// `mode` must be the mode that model_fn was called with. kTrain requires `loss` and `optimizer`,
// kEval requires `loss`, and kPredict requires `predictions`. All tensors must be symbolic,
// computed by layers and ops from the arguments of model_fn.
struct EstimatorSpec {
  ModeKeys mode = ModeKeys::kPredict;  // as received by model_fn
  Tensors predictions = {};            // the result of predict
  Tensor loss = {};                    // a scalar: the mean over the rows of the batch
  OptimizerArgument optimizer = {};    // for the variables outside the embedding engine
  std::map<std::string, EvalMetric> eval_metrics = {};  // by the name in the result of evaluate
};

// Builds the model. Each call of a TPUEstimator's train(), evaluate(), predict() or
// export_saved_model() calls it once. The layers that it creates get their weights from the
// estimator's checkpoint in the order of their calls, so this order must not depend on the mode.
//
// `features` is a dict of the features of a batch. An embedding feature is replaced by its
// activations, float32 [batch, dimension] or, for a sequence, [batch, max_sequence_length,
// dimension]. The lengths of a sequence have the key "<key>_seq_length_". `labels` is empty for
// predictions.
using ModelFn =
    std::function<EstimatorSpec(const Tensors& features, const Tensors& labels, ModeKeys mode)>;

// Returns a dataset of batches of `batch_size` rows. Each element is a tuple (features, labels),
// where features is a dict. For predictions, the dict alone is sufficient.
using InputFn = std::function<data::Dataset(int64_t batch_size)>;

// Options of the training loop.
struct TPUConfig {
  // Number of steps per training loop. Checkpoints and log lines are written at the ends of loops.
  // The last loop is shorter if it would exceed the number of steps.
  int64_t iterations_per_loop = 1;
};

// Options of the run: the folder, the cluster, checkpoints and log lines.
struct RunConfig {
  std::string model_dir = {};                   // folder of the checkpoints; required
  distribute::TPUStrategyOptions cluster = {};  // the accelerator's hosts and cores
  TPUConfig tpu_config = {};                    // the training loop
  int64_t save_checkpoints_steps = 1000;  // in addition to the checkpoint at the end of training
  int64_t keep_checkpoint_max = 5;        // 0 keeps all
  int64_t log_step_count_steps = 100;     // interval of log lines on stderr; 0 turns them off
};

// Options of TPUEstimator.
struct TPUEstimatorOptions {
  ModelFn model_fn = {};  // required
  RunConfig config = {};  // folder, cluster, checkpoints and log lines; model_dir is required
  // If false, everything runs on the host: tables are ordinary variables trained by the model's
  // optimizer, and ordinary embedding columns are allowed.
  bool use_tpu = true;
  bool eval_on_tpu = true;                         // ignored unless use_tpu
  bool predict_on_tpu = true;                      // ignored unless use_tpu
  int64_t train_batch_size = 0;                    // required; rows of a batch over all cores
  std::optional<int64_t> eval_batch_size = {};     // default: train_batch_size
  std::optional<int64_t> predict_batch_size = {};  // default: train_batch_size
  // The embedding columns and the optimizer of their tables; unset for a model without such
  // columns.
  std::optional<EmbeddingConfigSpec> embedding_config_spec = {};
};

// Options of TPUEstimator::train. At most one of them may be set.
struct TrainOptions {
  std::optional<int64_t> steps = {};      // from the current step; if unset, all of the data
  std::optional<int64_t> max_steps = {};  // total over all calls; no effect once reached
};

// Result of TPUEstimator::train.
struct TrainResult {
  int64_t global_step = 0;  // steps since the first call of train() for this model_dir
  double loss = 0;          // loss of the last step
};

// Every call builds a new model and restores the newest checkpoint of model_dir if there is one.
// A program may therefore be stopped and restarted, and may evaluate what another program trains.
//
// These calls throw ValueError, naming the field, for a spec that lacks a field required by the
// mode; RuntimeError for an embedding column that the model does not use; and ValueError for a
// column that is not shared but used by two layers, and for a column whose device does not support
// the mode.
class TPUEstimator {
 public:
  // Throws ValueError
  //   - without model_fn or model_dir,
  //   - for batch sizes that are not positive, or not multiples of the number of cores when running
  //     on cores,
  //   - for numbers of the config that are not positive,
  //   - for partition_strategy "mod" unless training, evaluation and prediction run on the
  //     accelerator.
  // Throws TypeError for ordinary embedding columns with use_tpu.
  explicit TPUEstimator(TPUEstimatorOptions options);

  // Trains on the batches of input_fn, and repeats them if they end before `steps` or `max_steps`.
  // Short batches are skipped. Saves a checkpoint at the end, and lookup statistics if the spec
  // requests them. Throws ValueError if both numbers of steps are set or one is not positive, if
  // the data has no full batch, and if the loss is NaN; the step with the NaN loss changes nothing.
  TrainResult train(const InputFn& input_fn, const TrainOptions& options = {});

  // Returns "loss", the mean over the batches, the metrics of the spec by name, and "global_step".
  // Short batches are skipped. `steps` is the number of batches; if unset, all batches are used.
  std::map<std::string, double> evaluate(const InputFn& input_fn,
                                         std::optional<int64_t> steps = {});

  // Returns the predictions for all rows, in order. Throws NotImplementedError on cores of several
  // processes.
  Tensors predict(const InputFn& input_fn);

  // Writes the model that computes predictions from raw features, including its tables, to
  // "<export_dir>/<global step>/model.h5", and returns this path. load_model() can read it
  // anywhere. `features` is the dict of symbolic inputs to serve (layers::input, ragged_input,
  // ...). Throws NotImplementedError if model_fn uses ops outside layers, which files cannot
  // represent, and RuntimeError if there is no checkpoint yet.
  std::string export_saved_model(const std::string& export_dir, const Tensors& features);

  // Returns the path of the newest checkpoint, or an empty optional if there is none.
  std::optional<std::string> latest_checkpoint() const;
  // Returns the options of the constructor.
  const TPUEstimatorOptions& options() const { return options_; }

 private:
  int64_t batch_size(ModeKeys mode) const;
  bool on_tpu(ModeKeys mode) const;

  const TPUEstimatorOptions options_;
};

}  // namespace keel::estimator

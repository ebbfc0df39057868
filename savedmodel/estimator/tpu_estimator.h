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
#pragma once

#include <optional>
#include <string>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/v1/embedding_config_spec.h>
#include <keel/savedmodel/estimator/estimator_spec.h>

namespace keel::estimator {

struct TPUConfig {
  // Steps between two looks of the host at training: checkpoints and log lines come at the ends of
  // loops, and a loop that would pass the last step is shorter.
  int64_t iterations_per_loop = 1;
};

struct RunConfig {
  std::string model_dir = {};                   // where checkpoints are; required
  distribute::TPUStrategyOptions cluster = {};  // the accelerator's hosts and cores
  TPUConfig tpu_config = {};
  int64_t save_checkpoints_steps = 1000;  // beside the one at the end of training
  int64_t keep_checkpoint_max = 5;        // 0 keeps all
  int64_t log_step_count_steps = 100;     // between lines on stderr; 0: none
};

struct TPUEstimatorOptions {
  ModelFn model_fn = {};  // required
  RunConfig config = {};
  // False: all is done on the host, tables are variables like others, trained by the model's
  // optimizer, and ordinary embedding columns are allowed.
  bool use_tpu = true;
  bool eval_on_tpu = true;     // with use_tpu
  bool predict_on_tpu = true;  // with use_tpu
  // Rows of a batch over all cores; each but the first is that of training if unset.
  int64_t train_batch_size = 0;
  std::optional<int64_t> eval_batch_size = {};
  std::optional<int64_t> predict_batch_size = {};
  std::optional<EmbeddingConfigSpec> embedding_config_spec = {};
};

struct TrainOptions {
  std::optional<int64_t> steps = {};      // from where training stands; unset: all of the data
  std::optional<int64_t> max_steps = {};  // over all calls; nothing happens once they are done
};

struct TrainResult {
  int64_t global_step = 0;
  double loss = 0;  // of the last step
};

// Every call builds the model anew and takes its values from the newest checkpoint of model_dir, if
// there is one; so a program may be ended and started again, and evaluate what another trains.
// ValueError, naming it, for a spec that lacks what the mode needs; RuntimeError for an embedding
// column that the model does not use; ValueError for a column that stands alone and is used by two
// layers, and for one whose device does not serve the mode.
class TPUEstimator {
 public:
  // ValueError without model_fn or model_dir, for batch sizes that are not positive multiples of
  // the number of cores, where there are cores, for numbers of the config that are not positive,
  // and for partition_strategy "mod" unless training, evaluation and prediction are on the
  // accelerator. TypeError for ordinary embedding columns with use_tpu.
  explicit TPUEstimator(TPUEstimatorOptions options);

  // Trains on the batches of input_fn, again from its start where they end before `steps`; the last
  // batch is left out if it is short. Saves a checkpoint at the end, and statistics of lookups if
  // the spec says so. ValueError for both or not positive numbers of steps, data without a whole
  // batch, and a loss that is NaN, which changes nothing.
  TrainResult train(const InputFn& input_fn, const TrainOptions& options = {});

  // "loss", the mean over the batches, the metrics of the spec by name, and "global_step". A short
  // last batch is left out. `steps`: how many batches; unset: all.
  std::map<std::string, double> evaluate(const InputFn& input_fn,
                                         std::optional<int64_t> steps = {});

  // The predictions for all rows, in order. NotImplementedError on cores of several processes.
  Tensors predict(const InputFn& input_fn);

  // Writes the model that makes predictions of raw features, tables included, to
  // "<export_dir>/<global step>/model.h5" and returns this path; load_model() reads it anywhere.
  // `features` is the dict of symbolic inputs to serve (layers::input, ragged_input, ...).
  // NotImplementedError if model_fn uses ops outside layers, which files cannot hold; RuntimeError
  // if nothing was trained yet.
  std::string export_saved_model(const std::string& export_dir, const Tensors& features);

  // Path of the newest checkpoint; empty if there is none.
  std::optional<std::string> latest_checkpoint() const;
  const TPUEstimatorOptions& options() const { return options_; }

 private:
  int64_t batch_size(ModeKeys mode) const;
  bool on_tpu(ModeKeys mode) const;

  const TPUEstimatorOptions options_;
};

}  // namespace keel::estimator

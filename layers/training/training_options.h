// Options of Model::fit, evaluate and predict.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <keel/framework/data/dataset.h>
#include <keel/layers/training/callback.h>
#include <keel/layers/training/compile/step_data.h>

namespace keel {

// Selects what fit, evaluate and predict print to the standard output.
enum class Verbose {
  kAuto,         // kProgressBar on a terminal, otherwise kOneLine
  kSilent,       // nothing
  kProgressBar,  // one bar per epoch, redrawn in place
  kOneLine,      // one line per epoch
};

// Data that fit evaluates after each epoch: nothing, a dataset of batches, or arrays, which are
// batched like the training data.
struct ValidationData {
  ValidationData() = default;
  // Uses the batches of a dataset.
  ValidationData(data::Dataset batches) : dataset(std::move(batches)) {}  // NOLINT: implicit
  // Uses arrays. Without labels, the model must add its own losses.
  ValidationData(Tensors features, Tensors labels = {}, Tensors weights = {})
      : arrays(pack_x_y_sample_weight({std::move(features), std::move(labels), std::move(weights)},
                                      "validation_data")) {}
  std::optional<data::Dataset> dataset = {};  // batches x, (x, y) or (x, y, sample_weight)
  std::optional<Tensors> arrays = {};         // (x, y) or (x, y, sample_weight)
};

// Options of Model::fit (keras.Model.fit).
struct FitOptions {
  int64_t epochs = 1;                // end of the range of epochs; nothing runs if <= initial_epoch
  int64_t initial_epoch = 0;         // first epoch, counted from 0
  int64_t batch_size = 32;           // rows of a global batch; for arrays only
  bool shuffle = true;               // shuffle the rows for each epoch; for arrays only
  std::optional<int64_t> seed = {};  // shuffle seed; if unset, the next stream of the program
  // Weights of the samples, for arrays only: one tensor [rows] for all outputs, or a structure like
  // that of the labels.
  Tensors sample_weight = {};
  ClassWeight class_weight = {};     // by class; requires a single output and no sample weights
  Verbose verbose = Verbose::kAuto;  // what to print
  std::vector<CallbackHandle> callbacks = {};  // notified in this order
  ValidationData validation_data = {};         // evaluated after epochs; see validation_freq
  // Fraction in [0, 1) of the arrays, taken from their end, that is used for validation.
  double validation_split = 0;
  // If unset, an epoch is one pass. If set, an epoch has that many batches; it continues in the
  // dataset where the previous epoch stopped and restarts the dataset at its end.
  std::optional<int64_t> steps_per_epoch = {};
  // Number of validation batches, counted from the dataset's start each time; all batches if unset
  // or if the dataset has fewer.
  std::optional<int64_t> validation_steps = {};
  std::optional<int64_t> validation_batch_size = {};  // for arrays only; unset: batch_size
  // Validates after every n-th epoch, or after the listed epochs, counted from 1.
  std::variant<int64_t, std::vector<int64_t>> validation_freq = 1;
};

// Options of Model::evaluate.
struct EvaluateOptions {
  int64_t batch_size = 32;                     // rows of a global batch; for arrays only
  Tensors sample_weight = {};                  // for arrays only; see FitOptions
  Verbose verbose = Verbose::kAuto;            // what to print
  std::vector<CallbackHandle> callbacks = {};  // notified in this order
  std::optional<int64_t> steps = {};  // number of batches; all if unset or if there are fewer
};

// Options of Model::predict.
struct PredictOptions {
  int64_t batch_size = 32;                     // rows of a global batch; for arrays only
  Verbose verbose = Verbose::kAuto;            // what to print
  std::vector<CallbackHandle> callbacks = {};  // notified in this order
  std::optional<int64_t> steps = {};  // number of batches; all if unset or if there are fewer
};

// Options of Model::train_on_batch and test_on_batch.
struct OnBatchOptions {
  Tensors sample_weight = {};     // shape [rows], for all outputs, or structured like the labels
  ClassWeight class_weight = {};  // by class; requires a single output; for train_on_batch
  // If false, logs cover all batches since metrics were last reset by Model::reset_metrics, fit or
  // evaluate, as in Keras 3. If true, logs cover this batch only.
  bool reset_metrics = false;
};

}  // namespace keel

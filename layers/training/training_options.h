// Options of Model::fit, evaluate and predict.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <keel/framework/data/dataset.h>
#include <keel/layers/training/callback.h>
#include <keel/layers/training/compile/class_weight.h>
#include <keel/layers/training/compile/step_data.h>
#include <keel/layers/training/history.h>

namespace keel {

// What is written to the standard output while data goes by.
enum class Verbose {
  kAuto,         // kProgressBar on a terminal, else kOneLine
  kSilent,       // nothing
  kProgressBar,  // a bar for each epoch, redrawn in place
  kOneLine,      // a line for each epoch
};

// Data that fit evaluates after each epoch: nothing, a dataset, or arrays, which are batched like
// the training data.
struct ValidationData {
  ValidationData() = default;
  ValidationData(data::Dataset batches) : dataset(std::move(batches)) {}  // NOLINT: implicit
  ValidationData(Tensors features, Tensors labels = {}, Tensors weights = {})
      : arrays(pack_x_y_sample_weight({std::move(features), std::move(labels), std::move(weights)},
                                      "validation_data")) {}
  std::optional<data::Dataset> dataset = {};
  std::optional<Tensors> arrays = {};  // (x, y) or (x, y, sample_weight)
};

struct FitOptions {
  int64_t epochs = 1;                // number of the last epoch; up to initial_epoch: none runs
  int64_t initial_epoch = 0;         // of the first
  int64_t batch_size = 32;           // of arrays; rows of the global batch
  bool shuffle = true;               // arrays, anew for each epoch
  std::optional<int64_t> seed = {};  // of that; unset: the next stream of set_random_seed
  // Of arrays: [rows], for all outputs, or structured like the labels.
  Tensors sample_weight = {};
  ClassWeight class_weight = {};  // by class of the only output; not with sample weights
  Verbose verbose = Verbose::kAuto;
  std::vector<CallbackHandle> callbacks = {};
  ValidationData validation_data = {};
  double validation_split = 0;  // the last part of the arrays, in [0, 1), becomes validation data
  // Unset: an epoch is one pass. Set: epochs of that many batches, continuing in the dataset where
  // the last one stopped, from its start again where it ends.
  std::optional<int64_t> steps_per_epoch = {};
  // Batches of validation data, from its start each time; at most all, as if unset.
  std::optional<int64_t> validation_steps = {};
  std::optional<int64_t> validation_batch_size = {};  // of arrays; unset: batch_size
  // After every so many epochs, or after the epochs of these numbers, counted from 1.
  std::variant<int64_t, std::vector<int64_t>> validation_freq = 1;
};

struct EvaluateOptions {
  int64_t batch_size = 32;     // of arrays
  Tensors sample_weight = {};  // of arrays: as in FitOptions
  Verbose verbose = Verbose::kAuto;
  std::vector<CallbackHandle> callbacks = {};
  std::optional<int64_t> steps = {};  // batches, at most all; unset: all
};

struct PredictOptions {
  int64_t batch_size = 32;  // of arrays
  Verbose verbose = Verbose::kAuto;
  std::vector<CallbackHandle> callbacks = {};
  std::optional<int64_t> steps = {};  // batches, at most all; unset: all
};

// Of train_on_batch and test_on_batch.
struct OnBatchOptions {
  Tensors sample_weight = {};     // [rows], for all outputs, or structured like the labels
  ClassWeight class_weight = {};  // by class of the only output; for train_on_batch
  // False: the logs are of all batches since metrics were last reset, by Model::reset_metrics, fit
  // or evaluate, as Keras 3 has it. True: of this batch alone.
  bool reset_metrics = false;
};

}  // namespace keel

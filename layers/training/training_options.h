// Options of Model::compile, fit, evaluate and predict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "layers/losses/loss.h"
#include "layers/metrics/metric.h"
#include "layers/training/callback.h"
#include "layers/training/history.h"
#include "optimizers/optimizer.h"

namespace keel {

// Nothing, a name ("adam") or an optimizer.
class OptimizerArgument {
 public:
  OptimizerArgument() = default;
  OptimizerArgument(const char* name) : OptimizerArgument(std::string(name)) {}  // NOLINT: implicit
  OptimizerArgument(const std::string& name)                                     // NOLINT: implicit
      : optimizer_(optimizers::get(name).shared()) {}
  template <std::derived_from<Optimizer> T>
  OptimizerArgument(const Handle<T>& optimizer)  // NOLINT: implicit
      : optimizer_(optimizer.shared()) {}

  const std::shared_ptr<Optimizer>& shared() const { return optimizer_; }

 private:
  std::shared_ptr<Optimizer> optimizer_;
};

struct CompileOptions {
  OptimizerArgument optimizer = {};          // may be unset for a model that is only evaluated
  LossArgument loss = {};                    // required; not of reduction "none"
  std::vector<MetricArgument> metrics = {};  // not weighted by sample weights
  std::vector<MetricArgument> weighted_metrics = {};
};

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
  ValidationData(Tensors features, Tensors labels, Tensor weights = {})
      : arrays(Tensors::tuple({std::move(features), std::move(labels)})) {
    if (weights) arrays = Tensors::tuple({(*arrays)[0], (*arrays)[1], std::move(weights)});
  }
  std::optional<data::Dataset> dataset = {};
  std::optional<Tensors> arrays = {};  // (x, y) or (x, y, sample_weight)
};

struct FitOptions {
  int64_t epochs = 1;                // number of the last epoch; > initial_epoch
  int64_t initial_epoch = 0;         // of the first
  int64_t batch_size = 32;           // of arrays; rows of the global batch
  bool shuffle = true;               // arrays, anew for each epoch
  std::optional<int64_t> seed = {};  // of that; unset: the next stream of set_random_seed
  Tensor sample_weight = {};         // of arrays: [rows]
  Verbose verbose = Verbose::kAuto;
  std::vector<CallbackHandle> callbacks = {};
  ValidationData validation_data = {};
  double validation_split = 0;  // the last part of the arrays, in [0, 1), becomes validation data
  // Unset: an epoch is one pass. Set: epochs of that many batches, continuing in the dataset where
  // the last one stopped, from its start again where it ends.
  std::optional<int64_t> steps_per_epoch = {};
  std::optional<int64_t> validation_steps = {};  // batches of validation data; unset: all
};

struct EvaluateOptions {
  int64_t batch_size = 32;    // of arrays
  Tensor sample_weight = {};  // of arrays: [rows]
  Verbose verbose = Verbose::kAuto;
  std::vector<CallbackHandle> callbacks = {};
  std::optional<int64_t> steps = {};  // batches; unset: all
};

struct PredictOptions {
  int64_t batch_size = 32;  // of arrays
  Verbose verbose = Verbose::kAuto;
  std::vector<CallbackHandle> callbacks = {};
  std::optional<int64_t> steps = {};  // batches; unset: all
};

}  // namespace keel

// CompileOptions: the arguments of Model::compile. ByOutput and MetricsArgument hold an argument
// for the outputs of a model: one value for all outputs, or one value per output by position or by
// name.
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

// Holds nothing, one value for all outputs, a list by position, or a dict by output name:
//   ByOutput<double> all = 0.5, two = {1.0, 0.2}, named = {{"click", 1.0}, {"stay", 0.2}};
template <class T>
class ByOutput {
 public:
  using Named = std::pair<const std::string, T>;  // an output's name and its value

  ByOutput() = default;  // empty
  // Holds one value for all outputs.
  template <std::convertible_to<T> U>
    requires(!std::same_as<std::remove_cvref_t<U>, ByOutput>)
  ByOutput(U&& value)  // NOLINT: implicit
      : one_(std::forward<U>(value)) {}
  // Hold a list by position.
  ByOutput(std::initializer_list<T> values) : list_(values) {}   // NOLINT: implicit
  ByOutput(std::vector<T> values) : list_(std::move(values)) {}  // NOLINT: implicit
  // Hold a dict by output name.
  ByOutput(std::initializer_list<Named> values) : dict_(values) {}         // NOLINT: implicit
  ByOutput(std::map<std::string, T> values) : dict_(std::move(values)) {}  // NOLINT: implicit

  // Returns true if nothing is held. An empty list or dict is not nothing.
  bool empty() const { return !one_ && !list_ && !dict_; }
  // Return the value in the form in which it is held; unset if it has another form.
  const std::optional<T>& one() const { return one_; }
  const std::optional<std::vector<T>>& list() const { return list_; }
  const std::optional<std::map<std::string, T>>& dict() const { return dict_; }

  // Returns all values, in the order of the list or of the dict's names.
  std::vector<T> values() const {
    if (one_) return {*one_};
    if (list_) return *list_;
    std::vector<T> out;
    if (!dict_) return out;
    for (const auto& [name, value] : *dict_) out.push_back(value);
    return out;
  }

  // Returns the value of each output, in the order of `outputs`. An output that a dict does not
  // name gets `otherwise`. Throws ValueError, prefixed with `caller`, if a list does not have one
  // value per output or if a dict names an unknown output.
  std::vector<T> resolve(const std::string& caller, const std::vector<std::string>& outputs,
                         const T& otherwise) const {
    if (list_) {
      if (list_->size() == outputs.size()) return *list_;
      throw ValueError(caller, ": a list must have one value for each of the ", outputs.size(),
                       " outputs, received ", list_->size());
    }
    std::vector<T> out(outputs.size(), one_.value_or(otherwise));
    if (!dict_) return out;
    for (const auto& [name, value] : *dict_) out[position(caller, outputs, name)] = value;
    return out;
  }

 private:
  static size_t position(const std::string& caller, const std::vector<std::string>& outputs,
                         const std::string& name) {
    std::string known;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == name) return i;
      known += (i == 0 ? "" : ", ") + outputs[i];
    }
    throw ValueError(caller, ": no output is named '", name,
                     "'; the outputs of the model are: ", known);
  }

  std::optional<T> one_;
  std::optional<std::vector<T>> list_;
  std::optional<std::map<std::string, T>> dict_;
};

// Holds the metrics of the only output or, for a model with several outputs, one metric per output
// by position:
//   {"mae", metrics::AUC({})}
// or any number of metrics per output, by name or, as a vector of vectors, by position:
//   {{"click", {"auc"}}, {"stay", {"mae", "mse"}}}
class MetricsArgument {
 public:
  using List = std::vector<MetricArgument>;          // metrics of one output
  using Named = std::pair<const std::string, List>;  // an output's name and its metrics

  MetricsArgument() = default;
  // Hold the metrics of the only output, or one metric per output.
  MetricsArgument(std::initializer_list<MetricArgument> metrics) : flat_(metrics) {}
  MetricsArgument(List metrics) : flat_(std::move(metrics)) {}  // NOLINT: implicit
  // Hold a list of metrics for each output, by position or by name.
  MetricsArgument(std::vector<List> of_outputs) : by_output_(std::move(of_outputs)) {}  // NOLINT
  MetricsArgument(std::initializer_list<Named> of_outputs) : by_output_(of_outputs) {}
  MetricsArgument(std::map<std::string, List> of_outputs)  // NOLINT: implicit
      : by_output_(std::move(of_outputs)) {}

  // Returns the metrics of all outputs in one list.
  List all() const;
  // Returns the metrics of each output. Throws ValueError, prefixed with `caller`, if a list does
  // not have one item per output or if a dict names an unknown output.
  std::vector<List> resolve(const std::string& caller,
                            const std::vector<std::string>& outputs) const;
  // Converts to the form that Keras files use; null without metrics.
  Config config() const;
  // Inverse of config().
  static MetricsArgument from_config(const Config& config);

 private:
  std::optional<List> flat_;
  ByOutput<List> by_output_;
};

// The optimizer argument of compile(): empty, a registered name ("adam") or an optimizer.
class OptimizerArgument {
 public:
  OptimizerArgument() = default;
  // Create the optimizer of this name with default options (optimizers::get).
  OptimizerArgument(const char* name) : OptimizerArgument(std::string(name)) {}  // NOLINT: implicit
  OptimizerArgument(const std::string& name)                                     // NOLINT: implicit
      : optimizer_(optimizers::get(name).shared()) {}
  // Shares an optimizer.
  template <std::derived_from<Optimizer> T>
  OptimizerArgument(const Handle<T>& optimizer)  // NOLINT: implicit
      : optimizer_(optimizer.shared()) {}

  // Returns the optimizer, or null if the argument is empty.
  const std::shared_ptr<Optimizer>& shared() const { return optimizer_; }

 private:
  std::shared_ptr<Optimizer> optimizer_;
};

// A loss for all outputs, or one loss per output by position or by name. An empty loss ({}) leaves
// an output without a loss:
//   "mse"      {"mse", {}}      {{"click", "bce"}, {"stay", losses::Huber({})}}
using LossesArgument = ByOutput<LossArgument>;
// Factors of the losses in their weighted sum.
using LossWeights = ByOutput<double>;

// Options of Model::compile (keras.Model.compile).
struct CompileOptions {
  OptimizerArgument optimizer = {};  // may be empty for a model that is only evaluated
  // Must not have reduction "none". May be empty for a model that adds its own losses
  // (Layer::add_loss).
  LossesArgument loss = {};
  LossWeights loss_weights = {};          // factor of each loss in the sum; default 1
  MetricsArgument metrics = {};           // computed without sample weights
  MetricsArgument weighted_metrics = {};  // computed with sample weights
  // Wraps the optimizer in a LossScaleOptimizer if the model's dtype policy is "mixed_float16".
  // Model files do not store it, as in Keras: a model that is loaded scales the loss.
  bool auto_scale_loss = true;
  // The next three options have no effect: each step runs on its own and is never compiled. They
  // are stored in model files so that a model loaded from a Keras file is saved with the same
  // values.
  bool run_eagerly = false;
  int64_t steps_per_execution = 1;       // has no effect
  std::optional<bool> jit_compile = {};  // has no effect
};

}  // namespace keel

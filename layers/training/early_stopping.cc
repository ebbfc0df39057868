#include "layers/training/early_stopping.h"

#include <cmath>

#include "layers/layer_state.h"
#include "layers/model.h"

namespace keel {
namespace {

bool larger_is_better(const EarlyStoppingOptions& options) {
  if (options.mode == "max") return true;
  if (options.mode == "min") return false;
  if (options.mode != "auto") {
    throw ValueError("EarlyStopping: mode must be 'auto', 'min' or 'max', received '", options.mode,
                     "'");
  }
  for (const char* part : {"acc", "auc", "precision", "recall", "f1", "fmeasure"}) {
    if (options.monitor.find(part) != std::string::npos) return true;
  }
  return false;
}

double monitored(const std::string& name, const Logs& logs) {
  const auto it = logs.find(name);
  if (it != logs.end()) return it->second;
  std::string known;
  for (const auto& [other, value] : logs) known += (known.empty() ? "" : ", ") + other;
  throw ValueError("EarlyStopping: no value of '", name, "' in the logs, they have: ", known);
}

}  // namespace

EarlyStoppingCallback::EarlyStoppingCallback(Options options)
    : options_(std::move(options)), larger_is_better_(larger_is_better(options_)) {
  if (options_.patience < 0) {
    throw ValueError("EarlyStopping: patience must not be negative, received ", options_.patience);
  }
}

bool EarlyStoppingCallback::is_better(double value, double than) const {
  const double delta = std::abs(options_.min_delta);
  return larger_is_better_ ? value - delta > than : value + delta < than;
}

void EarlyStoppingCallback::keep_weights(int64_t epoch) {
  best_epoch_ = epoch;
  if (!options_.restore_best_weights) return;
  best_weights_.clear();
  for_each_state_entry(model(), [&](const std::string&, const StateEntry& entry) {
    if (entry.kind == StateEntry::Kind::kWeight) best_weights_.push_back(entry.get());
  });
}

void EarlyStoppingCallback::on_train_begin() {
  wait_ = 0;
  best_.reset();
  best_epoch_ = 0;
  stopped_epoch_.reset();
  best_weights_.clear();
}

void EarlyStoppingCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  const double value = monitored(options_.monitor, logs);
  if (epoch < options_.start_from_epoch) return;
  // The weights of the first epoch are the best so far even if its value is NaN.
  if (best_weights_.empty()) keep_weights(epoch);
  ++wait_;
  if (best_ ? is_better(value, *best_) : !std::isnan(value)) {
    best_ = value;
    keep_weights(epoch);
    if (!options_.baseline || is_better(value, *options_.baseline)) wait_ = 0;
    return;
  }
  if (wait_ >= options_.patience && epoch > 0) {
    stopped_epoch_ = epoch;
    model().set_stop_training(true);
  }
}

void EarlyStoppingCallback::on_train_end(const Logs&) {
  size_t i = 0;
  if (best_weights_.empty()) return;
  for_each_state_entry(model(), [&](const std::string&, const StateEntry& entry) {
    if (entry.kind == StateEntry::Kind::kWeight) entry.set(best_weights_[i++]);
  });
}

}  // namespace keel

#include <absl/strings/str_cat.h>
#include <cmath>

#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/layers/training/model.h>

namespace keel {
EarlyStoppingCallback::EarlyStoppingCallback(Options options)
    : options_(std::move(options)),
      monitor_(std::make_unique<Monitor>("EarlyStopping", options_.monitor, options_.mode,
                                         options_.min_delta)) {
  if (options_.patience < 0) {
    throw ValueError("EarlyStopping: patience must not be negative, received ", options_.patience);
  }
}

void EarlyStoppingCallback::keep_weights(int64_t epoch) {
  best_epoch_ = epoch;
  if (!options_.restore_best_weights) return;
  best_weights_.clear();
  for_each_state_entry(model(), [&](const std::string&, const StateEntry& entry) {
    if (entry.kind == StateEntry::Kind::kWeight) best_weights_.push_back(entry.get());
  });
}

EarlyStoppingCallback::~EarlyStoppingCallback() = default;

void EarlyStoppingCallback::on_train_begin() {
  monitor_->begin(model());
  wait_ = 0;
  best_.reset();
  best_epoch_ = 0;
  stopped_epoch_.reset();
  best_weights_.clear();
}

void EarlyStoppingCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  const std::optional<double> value = monitor_->value(logs, params());
  if (!value || epoch < options_.start_from_epoch) return;
  // The first epoch's weights are the best so far even if its value is NaN.
  if (!best_ && wait_ == 0) keep_weights(epoch);
  ++wait_;
  if (best_ ? monitor_->is_better(*value, *best_) : !std::isnan(*value)) {
    best_ = value;
    keep_weights(epoch);
    if (!options_.baseline || monitor_->is_better(*value, *options_.baseline)) wait_ = 0;
    return;
  }
  if (wait_ >= options_.patience && epoch > 0) {
    stopped_epoch_ = epoch;
    model().set_stop_training(true);
  }
}

void EarlyStoppingCallback::on_train_end(const Logs&) {
  if (options_.verbose > 0 && stopped_epoch_) {
    print_line(absl::StrCat("Epoch ", *stopped_epoch_ + 1, ": early stopping"));
  }
  if (!options_.restore_best_weights || best_weights_.empty()) return;
  if (options_.verbose > 0) {
    print_line(absl::StrCat(
        "Restoring model weights from the end of the best epoch: ", best_epoch_ + 1, "."));
  }
  size_t i = 0;
  for_each_state_entry(model(), [&](const std::string&, const StateEntry& entry) {
    if (entry.kind == StateEntry::Kind::kWeight) entry.set(best_weights_[i++]);
  });
}

Callback::State EarlyStoppingCallback::state() const {
  State out = {{"wait", Tensor::scalar(wait_)}, {"best_epoch", Tensor::scalar(best_epoch_)}};
  if (best_) out["best"] = Tensor::scalar(*best_);
  for (size_t i = 0; i < best_weights_.size(); ++i)
    out[absl::StrCat("weights/", i)] = best_weights_[i];
  return out;
}

void EarlyStoppingCallback::set_state(const State& state) {
  wait_ = state_value("EarlyStopping", state, "wait").item<int64_t>();
  best_epoch_ = state_value("EarlyStopping", state, "best_epoch").item<int64_t>();
  best_.reset();
  if (const auto it = state.find("best"); it != state.end()) best_ = it->second.item<double>();
  best_weights_.clear();
  for (size_t i = 0;; ++i) {
    const auto it = state.find(absl::StrCat("weights/", i));
    if (it == state.end()) return;
    best_weights_.push_back(it->second);
  }
}

}  // namespace keel

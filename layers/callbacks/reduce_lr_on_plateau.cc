#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>

#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/training/model.h>

namespace keel {

ReduceLROnPlateauCallback::ReduceLROnPlateauCallback(Options options)
    : options_(std::move(options)),
      monitor_(std::make_unique<Monitor>("ReduceLROnPlateau", options_.monitor, options_.mode,
                                         options_.min_delta)) {
  if (!(options_.factor > 0 && options_.factor < 1)) {
    throw ValueError("ReduceLROnPlateau: factor must be in (0, 1), received ", options_.factor);
  }
  if (options_.patience < 0 || options_.cooldown < 0) {
    throw ValueError("ReduceLROnPlateau: patience and cooldown must not be negative, received ",
                     options_.patience, " and ", options_.cooldown);
  }
}

ReduceLROnPlateauCallback::~ReduceLROnPlateauCallback() = default;

void ReduceLROnPlateauCallback::on_train_begin() {
  monitor_->begin(model());
  // Throws before the first epoch if the optimizer has no learning rate of its own.
  model().optimizer()->learning_rate();
  wait_ = 0;
  cooldown_ = 0;
  best_.reset();
}

void ReduceLROnPlateauCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  const std::optional<double> value = monitor_->value(logs, params());
  logs["learning_rate"] = model().optimizer()->learning_rate();
  if (!value) return;
  if (cooldown_ > 0) {
    --cooldown_;
    wait_ = 0;
  }
  if (best_ ? monitor_->is_better(*value, *best_) : !std::isnan(*value)) {
    best_ = value;
    wait_ = 0;
  } else if (cooldown_ == 0 && ++wait_ >= options_.patience) {
    reduce(epoch);
  }
}

void ReduceLROnPlateauCallback::reduce(int64_t epoch) {
  Optimizer& optimizer = *model().optimizer();
  const double rate = optimizer.learning_rate();
  if (rate <= static_cast<double>(static_cast<float>(options_.min_lr))) return;
  const double next = std::max(rate * options_.factor, options_.min_lr);
  optimizer.set_learning_rate(next);
  if (options_.verbose > 0) {
    print_line(absl::StrCat("\nEpoch ", epoch + 1, ": ReduceLROnPlateau reducing learning rate to ",
                            next, "."));
  }
  cooldown_ = options_.cooldown;
  wait_ = 0;
}

Callback::State ReduceLROnPlateauCallback::state() const {
  State out = {{"wait", Tensor::scalar(wait_)}, {"cooldown", Tensor::scalar(cooldown_)}};
  if (best_) out["best"] = Tensor::scalar(*best_);
  return out;
}

void ReduceLROnPlateauCallback::set_state(const State& state) {
  wait_ = state_value("ReduceLROnPlateau", state, "wait").item<int64_t>();
  cooldown_ = state_value("ReduceLROnPlateau", state, "cooldown").item<int64_t>();
  best_.reset();
  if (const auto it = state.find("best"); it != state.end()) best_ = it->second.item<double>();
}

}  // namespace keel

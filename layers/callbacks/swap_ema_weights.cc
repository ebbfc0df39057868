#include <absl/strings/str_cat.h>
#include <algorithm>
#include <optional>

#include <keel/autodiff/tape.h>
#include <keel/framework/update_rule.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/training/model.h>

namespace keel {
namespace {

constexpr char kWeights[] = "weights/";

std::vector<Variable> trained(const Model& model) {
  std::vector<Variable> out = model.trainable_variables();
  std::erase_if(out, [](const Variable& v) { return v.is_virtual(); });
  return out;
}

}  // namespace

namespace {

// Returns the number of the slot that holds the average of a variable.
std::optional<size_t> average_slot(const Optimizer& optimizer, const Variable& variable) {
  const std::vector<Slot>& slots = optimizer.optimizer_of(variable).slot_specs();
  const auto is_average = [](const Slot& slot) { return slot.name == "average"; };
  const auto found = std::ranges::find_if(slots, is_average);
  if (found == slots.end()) return {};
  return static_cast<size_t>(found - slots.begin());
}

}  // namespace

void SwapEMAWeightsCallback::swap_in(std::vector<Tensor>& kept) {
  const auto optimizer = model().optimizer();
  const std::vector<Variable> variables = trained(model());
  const auto has_average = [&](const Variable& v) {
    return average_slot(*optimizer, v).has_value();
  };
  if (optimizer == nullptr || std::ranges::none_of(variables, has_average)) {
    throw RuntimeError(
        "SwapEMAWeights: the optimizer keeps no moving averages; set its option use_ema");
  }
  const NoGradient pause;
  kept.clear();
  for (const Variable& variable : variables) {
    kept.push_back(variable.read());
    const std::vector<Variable> own = optimizer->slots(variable);
    const std::optional<size_t> average = average_slot(*optimizer, variable);
    if (optimizer->iterations() > 0 && !own.empty() && average) {
      variable.assign(own[*average].read());
    }
  }
}

void SwapEMAWeightsCallback::swap_out(std::vector<Tensor>& kept) {
  if (kept.empty()) return;
  size_t i = 0;
  for (const Variable& variable : trained(model())) variable.assign(kept[i++]);
  kept.clear();
}

void SwapEMAWeightsCallback::on_epoch_end(int64_t, Logs&) {
  if (options_.swap_on_epoch) swap_in(of_epoch_);
}

Callback::State SwapEMAWeightsCallback::state() const {
  State out = {{"swap_on_epoch", Tensor::scalar(options_.swap_on_epoch)}};
  for (size_t i = 0; i < of_epoch_.size(); ++i) out[absl::StrCat(kWeights, i)] = of_epoch_[i];
  return out;
}

void SwapEMAWeightsCallback::set_state(const State& state) {
  of_epoch_.clear();
  for (size_t i = 0;; ++i) {
    const auto it = state.find(absl::StrCat(kWeights, i));
    if (it == state.end()) return;
    of_epoch_.push_back(it->second);
  }
}

}  // namespace keel

#include <keel/layers/callbacks/internal/monitor.h>

#include <absl/strings/str_join.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <ranges>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/errors.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/training/model.h>

namespace keel {
namespace {

using Direction = Metric::Direction;

bool is_auto(const char* caller, const std::string& mode) {
  if (mode != "auto" && mode != "min" && mode != "max") {
    throw ValueError(caller, ": mode must be 'auto', 'min' or 'max', received '", mode, "'");
  }
  return mode == "auto";
}

// Returns the direction of the metric with the longest name that equals `name` or is its suffix;
// kNeither if several such metrics have different directions.
Direction direction_of(const std::vector<MetricHandle>& metrics, const std::string& name) {
  Direction out = Direction::kNeither;
  size_t longest = 0;
  for (const MetricHandle& metric : metrics) {
    const std::string& own = metric->name();
    if (own.empty() || own.size() < longest) continue;
    if (name != own && !name.ends_with("_" + own)) continue;
    const bool other = own.size() == longest && metric->direction() != out;
    out = other ? Direction::kNeither : metric->direction();
    longest = own.size();
  }
  return out;
}

Direction direction_of(const Model& model, const std::string& name) {
  if (name == "loss") return Direction::kDown;
  const std::vector<MetricHandle> metrics = model.metrics();
  Direction out = direction_of(metrics, name);
  if (out == Direction::kNeither) out = direction_of(metrics, without_number(name));
  if (out == Direction::kNeither && name.ends_with("loss")) return Direction::kDown;
  return out;
}

}  // namespace

Monitor::Monitor(const char* caller, std::string name, const std::string& mode, double min_delta)
    : caller_(caller),
      name_(std::move(name)),
      min_delta_(std::abs(min_delta)),
      is_auto_(is_auto(caller, mode)),
      larger_is_better_(mode == "max") {}

void Monitor::begin(const Model& model) {
  if (!is_auto_) return;
  const size_t start = name_.starts_with("val_") ? 4 : 0;
  const Direction direction = direction_of(model, name_.substr(start));
  if (direction == Direction::kNeither) {
    throw ValueError(caller_,
                     ": mode 'auto' requires a monitor that ends in 'loss' or is a metric for ",
                     "which higher or lower values are better, received '", name_,
                     "'; set mode=\"min\" or mode=\"max\"");
  }
  larger_is_better_ = direction == Direction::kUp;
}

std::optional<double> Monitor::value(const Logs& logs, const CallbackParams& params) const {
  const auto it = logs.find(name_);
  if (it != logs.end()) return it->second;
  const auto is_validation = [](const auto& entry) { return entry.first.starts_with("val_"); };
  if (params.validates && name_.starts_with("val_") && std::ranges::none_of(logs, is_validation)) {
    return {};
  }
  throw ValueError(caller_, ": the logs have no value named '", name_,
                   "'; they have: ", absl::StrJoin(std::views::keys(logs), ", "));
}

bool Monitor::is_better(double value, double than) const {
  return larger_is_better_ ? value - min_delta_ > than : value + min_delta_ < than;
}

const Tensor& state_value(const char* caller, const Callback::State& state,
                          const std::string& name) {
  const auto it = state.find(name);
  if (it == state.end())
    throw ValueError(caller, ": the state has no entry '", name,
                     "'; it was saved by another callback");
  return it->second;
}

void print_line(const std::string& line) {
  if (distribute::processes().rank() == 0) std::cout << line << '\n' << std::flush;
}

}  // namespace keel

#include "layers/training/monitor.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "distribute/process_group.h"
#include "framework/errors.h"

namespace keel {
namespace {

bool larger_is_better(const char* who, const std::string& mode, const std::string& name) {
  if (mode == "max") return true;
  if (mode == "min") return false;
  if (mode != "auto") {
    throw ValueError(who, ": mode must be 'auto', 'min' or 'max', received '", mode, "'");
  }
  for (const char* part : {"acc", "auc", "precision", "recall", "f1", "fbeta", "fmeasure"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Monitor::Monitor(const char* who, std::string name, const std::string& mode, double min_delta)
    : who_(who),
      name_(std::move(name)),
      larger_is_better_(larger_is_better(who, mode, name_)),
      min_delta_(std::abs(min_delta)) {}

std::optional<double> Monitor::value(const Logs& logs, const CallbackParams& params) const {
  const auto it = logs.find(name_);
  if (it != logs.end()) return it->second;
  const auto is_validation = [](const auto& entry) { return entry.first.starts_with("val_"); };
  if (params.validates && name_.starts_with("val_") && std::ranges::none_of(logs, is_validation)) {
    return {};
  }
  std::string known;
  for (const auto& [other, value] : logs) known += (known.empty() ? "" : ", ") + other;
  throw ValueError(who_, ": no value of '", name_, "' in the logs, they have: ", known);
}

bool Monitor::is_better(double value, double than) const {
  return larger_is_better_ ? value - min_delta_ > than : value + min_delta_ < than;
}

void print_line(const std::string& line) {
  if (distribute::processes().rank() == 0) std::cout << line << std::endl;
}

}  // namespace keel

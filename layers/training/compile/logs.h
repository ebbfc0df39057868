// Logs: named values reported by a step, an epoch or an evaluation.
#pragma once

#include <map>
#include <string>

namespace keel {

// Values by name, sorted by name: {"auc": 0.91, "loss": 0.31, "val_loss": 0.33}.
using Logs = std::map<std::string, double>;

}  // namespace keel

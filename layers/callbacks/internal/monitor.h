// Monitor: reads a value from the logs and decides whether it improves, for callbacks.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/training/callback.h>

namespace keel {

// Watches one name in the logs.
class Monitor {
 public:
  // `caller` is the name of the callback in error messages. `mode` selects which values are better:
  // "min", "max" or "auto". A change smaller than `min_delta` does not count as an improvement.
  // Throws ValueError for another mode.
  Monitor(const char* caller, std::string name, const std::string& mode, double min_delta = 0);

  // Determines the direction of mode "auto"; call it when training begins. The direction is
  // Metric::direction() of the model's metric with the monitored name. The name may have the
  // prefixes "val_", "<output>_" and "weighted_" and a suffix "_1", "_2", ...; lower is better for
  // other names that end in "loss". Throws ValueError, which suggests setting the mode, if there is
  // no such metric.
  void begin(const Model& model);

  // Returns the monitored value, or nothing if it is a validation value and the epoch has no
  // validation. Throws ValueError, listing the names in the logs, if the value is missing
  // otherwise.
  std::optional<double> value(const Logs& logs, const CallbackParams& params) const;
  // Returns true if `value` improves on `than` by more than min_delta; false for NaN.
  bool is_better(double value, double than) const;
  const std::string& name() const { return name_; }

 private:
  const char* const caller_;
  const std::string name_;
  const double min_delta_;
  const bool is_auto_;
  bool larger_is_better_;
};

// Returns the value `name` of a callback's state. Throws ValueError, prefixed with `caller`, if it
// is missing.
const Tensor& state_value(const char* caller, const Callback::State& state,
                          const std::string& name);

// Prints a line to the standard output on rank 0 of a job; does nothing on other ranks.
void print_line(const std::string& line);

}  // namespace keel

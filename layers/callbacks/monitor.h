// Monitor: a value of the logs that callbacks watch, and when it gets better.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/training/callback.h>

namespace keel {

class Monitor {
 public:
  // `caller` is the callback, for errors. mode: "min" or "max" is better, or "auto". A change
  // smaller than min_delta is none. ValueError for another mode.
  Monitor(const char* caller, std::string name, const std::string& mode, double min_delta = 0);

  // To be called when training begins. Mode "auto" takes Metric::direction() of the model's metric
  // of that name, also behind "val_", the name of an output or "weighted_" and before "_1", "_2",
  // ...; less is better of names that end in "loss". ValueError, which asks for a mode, where that
  // does not tell.
  void begin(const Model& model);

  // Its value; nothing after an epoch without the validation that it belongs to. ValueError if the
  // logs have none otherwise; the error lists those there are.
  std::optional<double> value(const Logs& logs, const CallbackParams& params) const;
  bool is_better(double value, double than) const;  // false for NaN
  const std::string& name() const { return name_; }

 private:
  const char* const caller_;
  const std::string name_;
  const double min_delta_;
  const bool is_auto_;
  bool larger_is_better_;
};

// The value `name` of the state of a callback, `caller`; ValueError if it has none.
const Tensor& state_value(const char* caller, const Callback::State& state,
                          const std::string& name);

// A line on the standard output, written by rank 0 of a job.
void print_line(const std::string& line);

}  // namespace keel

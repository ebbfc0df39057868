// Monitor: a value of the logs that callbacks watch, and when it gets better.
#pragma once

#include <optional>
#include <string>

#include "layers/training/callback.h"

namespace keel {

class Monitor {
 public:
  // `who` is the callback, for errors. mode: "min" or "max" is better; "auto": "max" for accuracy,
  // auc, precision, recall and F scores, by name. A change smaller than min_delta is none.
  // ValueError for another mode.
  Monitor(const char* who, std::string name, const std::string& mode, double min_delta = 0);

  // Its value; nothing after an epoch without the validation that it belongs to. ValueError if the
  // logs have none otherwise; the error lists those there are.
  std::optional<double> value(const Logs& logs, const CallbackParams& params) const;
  bool is_better(double value, double than) const;  // false for NaN
  const std::string& name() const { return name_; }

 private:
  const char* const who_;
  const std::string name_;
  const bool larger_is_better_;
  const double min_delta_;
};

// A line on the standard output, written by rank 0 of a job.
void print_line(const std::string& line);

}  // namespace keel

// TerminalProgress: a progress bar, or one line at the end, for a run of known or unknown length.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "layers/training/callback.h"

namespace keel {

// "128/128 ━━━━━━━━━━━━━━━━━━━━ 1s 5ms/step - auc: 0.9012 - loss: 0.3123 - val_auc: 0.8954".
// On the way the time left stands where the time taken does at the end. Without a known length
// there is no bar, and only the steps done are counted.
class TerminalProgress {
 public:
  enum class Style { kBar, kLine };

  // `head` opens the line of style kLine ("Epoch 1/5"); a bar has a line for itself above. The
  // stream outlives this. The clock starts here.
  TerminalProgress(std::ostream& out, Style style, const std::string& head,
                   std::optional<int64_t> steps);

  // Redraws the bar in place, at most ten times a second.
  void update(int64_t done, const Logs& logs);
  // Draws the last state and ends the line.
  void finish(int64_t done, const Logs& logs);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(int64_t done, const Logs& logs, bool last);
  std::string bar(int64_t done) const;

  std::ostream& out_;
  const Style style_;
  const std::string head_;
  const std::optional<int64_t> steps_;
  const Clock::time_point start_;
  std::optional<Clock::time_point> drawn_;
};

// "0.3123", or "3.1230e-04" for numbers below a thousandth.
std::string format_value(double value);
// "2s", "5ms", "80us": of a step.
std::string format_step_time(double seconds);
// "42s", "3:05", "1:02:03".
std::string format_duration(double seconds);

}  // namespace keel

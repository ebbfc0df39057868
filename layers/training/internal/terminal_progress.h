// TerminalProgress: a progress bar, or one summary line, for a run of known or unknown length.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include <keel/layers/training/callback.h>

namespace keel {

// Prints progress in the format of Keras. Style kBar redraws a bar in place:
//   Epoch 1/5
//   128/128 ━━━━━━━━━━━━━━━━━━━━ 1s 5ms/step - auc: 0.9012 - loss: 0.3123 - val_auc: 0.8954
// The duration is the estimated remaining time during the run, and the elapsed time at its end.
// Style kLine prints one line at the end:
//   Epoch 1/5
//   128/128 - 1s - 5ms/step - auc: 0.9012 - loss: 0.3123 - val_auc: 0.8954
// An unknown length is shown as "Unknown", without a bar, until the end.
class TerminalProgress {
 public:
  enum class Style { kBar, kLine };

  // Prints `head` ("Epoch 1/5") on its own line unless it is empty, and starts the clock. `out`
  // must outlive this object.
  TerminalProgress(std::ostream& out, Style style, const std::string& head,
                   std::optional<int64_t> steps);

  // Redraws the bar, at most twenty times a second.
  void update(int64_t done, const Logs& logs);
  // Draws the last state and ends the line.
  void finish(int64_t done, const Logs& logs);

 private:
  using Clock = std::chrono::steady_clock;
  void draw_bar(int64_t done, const Logs& logs, bool last);
  std::string count(int64_t done) const;
  double step_time(int64_t done) const;
  double seconds_since(Clock::time_point begin) const;

  std::ostream& out_;
  const Style style_;
  std::optional<int64_t> steps_;
  const Clock::time_point start_;
  std::optional<Clock::time_point> first_step_end_, drawn_;
};

// Returns "0.3123", or "3.1230e-04" for absolute values up to 0.001.
std::string format_value(double value);
// Returns the duration of a step: "2s", "5ms", "80us".
std::string format_step_time(double seconds);
// Returns a duration: "42s", "3:05", "1:02:03".
std::string format_duration(double seconds);

}  // namespace keel

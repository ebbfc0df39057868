// TerminalProgress: a progress bar, or one line at the end, for a run of known or unknown length.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include <keel/layers/training/callback.h>

namespace keel {

// As Keras shows it. A bar, redrawn in place:
//   Epoch 1/5
//   128/128 ━━━━━━━━━━━━━━━━━━━━ 1s 5ms/step - auc: 0.9012 - loss: 0.3123 - val_auc: 0.8954
// where the time left stands on the way, and the time taken at the end; or a line at the end:
//   Epoch 1/5
//   128/128 - 1s - 5ms/step - auc: 0.9012 - loss: 0.3123 - val_auc: 0.8954
// A length that is not known is "Unknown", without a bar, until the end.
class TerminalProgress {
 public:
  enum class Style { kBar, kLine };

  // `head` ("Epoch 1/5") has a line for itself, unless it is empty. The stream outlives this. The
  // clock starts here.
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

// "0.3123", or "3.1230e-04" for numbers up to a thousandth.
std::string format_value(double value);
// "2s", "5ms", "80us": of a step.
std::string format_step_time(double seconds);
// "42s", "3:05", "1:02:03".
std::string format_duration(double seconds);

}  // namespace keel

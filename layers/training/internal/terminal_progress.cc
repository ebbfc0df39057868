#include <keel/layers/training/internal/terminal_progress.h>

#include <absl/strings/str_format.h>
#include <algorithm>
#include <cmath>
#include <ostream>

namespace keel {
namespace {

constexpr int kBarWidth = 20;
constexpr char kBold[] = "\x1b[1m", kGreen[] = "\x1b[32m", kGray[] = "\x1b[90m",
               kPlain[] = "\x1b[0m", kEraseToEnd[] = "\x1b[K";
constexpr std::chrono::milliseconds kRedrawInterval(50);

std::string repeated(const char* text, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += text;
  return out;
}

// Returns " - auc: 0.9012 - val_auc: 0.8954", with the validation values last.
std::string values(const Logs& logs) {
  std::string training, validation;
  for (const auto& [name, value] : logs) {
    std::string& part = name.starts_with("val_") ? validation : training;
    part += " - " + name + ": " + format_value(value);
  }
  return training + validation;
}

}  // namespace

std::string format_value(double value) {
  return std::abs(value) > 1e-3 ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4e", value);
}

std::string format_step_time(double seconds) {
  if (seconds >= 1 || seconds == 0) return absl::StrFormat("%.0fs", seconds);
  return seconds >= 1e-3 ? absl::StrFormat("%.0fms", seconds * 1e3)
                         : absl::StrFormat("%.0fus", seconds * 1e6);
}

std::string format_duration(double seconds) {
  const auto all = static_cast<int64_t>(seconds);
  if (seconds > 3600) {
    return absl::StrFormat("%d:%02d:%02d", all / 3600, all / 60 % 60, all % 60);
  }
  return seconds > 60 ? absl::StrFormat("%d:%02d", all / 60, all % 60)
                      : absl::StrFormat("%ds", all);
}

TerminalProgress::TerminalProgress(std::ostream& out, Style style, const std::string& head,
                                   std::optional<int64_t> steps)
    : out_(out), style_(style), steps_(steps), start_(Clock::now()) {
  if (!head.empty()) out_ << head << '\n' << std::flush;
}

void TerminalProgress::update(int64_t done, const Logs& logs) {
  const auto now = Clock::now();
  if (done == 1) first_step_end_ = now;
  if (style_ == Style::kLine || (drawn_ && now - *drawn_ < kRedrawInterval)) return;
  drawn_ = now;
  draw_bar(done, logs, false);
}

void TerminalProgress::finish(int64_t done, const Logs& logs) {
  if (!steps_) steps_ = done;
  if (style_ == Style::kBar) return draw_bar(done, logs, true);
  out_ << count(done) << " - " << absl::StrFormat("%.0fs", seconds_since(start_)) << " - "
       << format_step_time(step_time(done)) << "/step" << values(logs) << '\n'
       << std::flush;
}

double TerminalProgress::seconds_since(Clock::time_point begin) const {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Excludes the first step once there are others, because its duration is rarely representative.
double TerminalProgress::step_time(int64_t done) const {
  if (done == 0) return 0;
  if (done > 1 && first_step_end_) {
    return seconds_since(*first_step_end_) / static_cast<double>(done - 1);
  }
  return seconds_since(start_) / static_cast<double>(done);
}

// Returns the padded count, such as " 7/32".
std::string TerminalProgress::count(int64_t done) const {
  const std::string all = std::to_string(*steps_);
  const std::string number = std::to_string(done);
  return std::string(all.size() - std::min(all.size(), number.size()), ' ') + number + "/" + all;
}

void TerminalProgress::draw_bar(int64_t done, const Logs& logs, bool last) {
  std::string line = "\r";
  if (steps_) {
    const int64_t full =
        *steps_ == 0 ? kBarWidth : std::min<int64_t>(kBarWidth, kBarWidth * done / *steps_);
    line += kBold + count(done) + kPlain + ' ';
    if (full > 0) line += kGreen + repeated("━", full) + kPlain;
    line += kGray + repeated("━", kBarWidth - full) + kPlain;
  } else {
    line += absl::StrFormat("%7d/Unknown", done);
  }
  const double each = step_time(done);
  line += std::string(" ") + kBold;
  if (steps_ && !last) {
    line += format_duration(each * static_cast<double>(*steps_ - done));
  } else {
    line += absl::StrFormat("%.0fs", seconds_since(start_));
  }
  line += kPlain + (" " + format_step_time(each)) + "/step" + values(logs) + kEraseToEnd;
  out_ << line;
  if (last) out_ << '\n';
  out_.flush();
}

}  // namespace keel

#include "layers/training/terminal_progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace keel {
namespace {

constexpr int kBarWidth = 20;
constexpr std::chrono::milliseconds kRedrawInterval(100);

template <class... Args>
std::string formatted(const char* format, Args... args) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

std::string repeated(const char* text, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += text;
  return out;
}

// "- auc: 0.9012 - val_auc: 0.8954", those of the validation last.
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
  return formatted(std::abs(value) >= 1e-3 || value == 0 ? "%.4f" : "%.4e", value);
}

std::string format_step_time(double seconds) {
  if (seconds >= 1 || seconds == 0) return formatted("%.0fs", seconds);
  return seconds >= 1e-3 ? formatted("%.0fms", seconds * 1e3) : formatted("%.0fus", seconds * 1e6);
}

std::string format_duration(double seconds) {
  const auto all = static_cast<long long>(std::llround(seconds));
  if (all >= 3600) {
    return formatted("%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  }
  return all >= 60 ? formatted("%lld:%02lld", all / 60, all % 60) : formatted("%llds", all);
}

TerminalProgress::TerminalProgress(std::ostream& out, Style style, const std::string& head,
                                   std::optional<int64_t> steps)
    : out_(out), style_(style), head_(head), steps_(steps), start_(Clock::now()) {
  if (style_ == Style::kBar && !head_.empty()) out_ << head_ << std::endl;
}

void TerminalProgress::update(int64_t done, const Logs& logs) {
  if (style_ == Style::kLine) return;
  const auto now = Clock::now();
  if (drawn_ && now - *drawn_ < kRedrawInterval) return;
  drawn_ = now;
  draw(done, logs, false);
}

void TerminalProgress::finish(int64_t done, const Logs& logs) { draw(done, logs, true); }

std::string TerminalProgress::bar(int64_t done) const {
  if (!steps_ || *steps_ == 0 || style_ == Style::kLine) return "";
  const int64_t full = std::min<int64_t>(kBarWidth, kBarWidth * done / *steps_);
  std::string out = " " + repeated("━", full);
  if (full < kBarWidth) out += "\x1b[90m" + repeated("━", kBarWidth - full) + "\x1b[0m";
  return out;
}

void TerminalProgress::draw(int64_t done, const Logs& logs, bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double per_step = done > 0 ? seconds / static_cast<double>(done) : 0;
  std::string line;
  if (style_ == Style::kBar) {
    line = "\r";
  } else if (!head_.empty()) {
    line = head_ + " - ";
  }
  const std::string count = std::to_string(done);
  if (steps_) {
    const std::string all = std::to_string(*steps_);
    if (count.size() < all.size()) line += std::string(all.size() - count.size(), ' ');
    line += count + "/" + all;
  } else {
    line += count + (done == 1 ? " step" : " steps");
  }
  line += bar(done);
  const bool has_end = !last && steps_.has_value();
  const double shown = has_end ? per_step * static_cast<double>(*steps_ - done) : seconds;
  line += std::string(style_ == Style::kLine ? " - " : " ") + (has_end ? "ETA " : "") +
          format_duration(shown) + " " + format_step_time(per_step) + "/step" + values(logs);
  if (style_ == Style::kBar) line += "\x1b[K";
  out_ << line;
  if (last) out_ << '\n';
  out_.flush();
}

}  // namespace keel

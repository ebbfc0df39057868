#include <keel/savedmodel/serving/base/log.h>

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <poll.h>
#include <string>
#include <unistd.h>

#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<LogLevel> log_level = LogLevel::kInfo;

struct Repeats {
  Clock::time_point last;
  int64_t suppressed = 0;
};

// The state that lines share. Never destroyed, so that threads may log until the process ends.
struct LogState {
  std::mutex mutex;
  std::map<std::string, Repeats, std::less<>> repeats;
  int64_t dropped = 0;
};
LogState& log_state() {
  static auto* const state = new LogState();
  return *state;
}

std::string time_text() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ ", absl::Now(), absl::UTCTimeZone());
}

// Lines up to PIPE_BUF bytes are written to a pipe as a whole, and a pipe that is ready takes one.
bool write_line(const std::string& line) {
  pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&ready, 1, 0) != 1 || (ready.revents & (POLLERR | POLLNVAL)) != 0) return false;
  return ::write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

LogLevel log_level_from_name(std::string_view name) {
  if (name == "error") return LogLevel::kError;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "info") return LogLevel::kInfo;
  if (name == "debug") return LogLevel::kDebug;
  throw ValueError("must be error, warning, info or debug, received '", name, "'");
}

void set_log_level(LogLevel level) { log_level = level; }
bool logs(LogLevel level) { return level <= log_level.load(std::memory_order_relaxed); }

void write_log(LogLevel level, std::string_view text) {
  constexpr char kLetters[] = {'E', 'W', 'I', 'D'};
  constexpr size_t kLongestLine = 3500;
  constexpr size_t kMostRepeats = 1000;
  if (!logs(level)) return;
  LogState& state = log_state();
  const std::lock_guard lock(state.mutex);
  std::string suffix;
  if (level <= LogLevel::kWarning) {
    if (state.repeats.size() > kMostRepeats) state.repeats.clear();
    Repeats& repeats = state.repeats[std::string(text)];
    const Clock::time_point now = Clock::now();
    if (repeats.last != Clock::time_point() && now - repeats.last < std::chrono::seconds(10)) {
      ++repeats.suppressed;
      return;
    }
    if (repeats.suppressed > 0)
      suffix = absl::StrCat(" (", repeats.suppressed, " more since then)");
    repeats = {.last = now};
  }
  const std::string head = time_text();
  if (state.dropped > 0 &&
      write_line(absl::StrCat(head, "W ", state.dropped, " log lines were dropped\n"))) {
    state.dropped = 0;
  }
  const bool written = write_line(head + kLetters[static_cast<int>(level)] + ' ' +
                                  one_line(text, kLongestLine) + suffix + '\n');
  state.dropped += written ? 0 : 1;
}

}  // namespace keel::serving

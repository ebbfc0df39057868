// The log of the server: one line an event on stderr, "2026-11-23T02:23:27.123Z I text".
#pragma once

#include <string_view>

#include <keel/framework/base/errors.h>

namespace keel::serving {

// The levels of log lines; a log prints those up to its own level.
enum class LogLevel { kError, kWarning, kInfo, kDebug };

// Returns the level of "error", "warning", "info" or "debug". Throws ValueError for other names.
LogLevel log_level_from_name(std::string_view name);

// Sets the level of this process; the default is kInfo.
void set_log_level(LogLevel level);

// Returns true if lines of this level are printed.
bool logs(LogLevel level);

// Writes one line, never waiting: a line that stderr cannot take at once is dropped and counted,
// and the count is logged later. Warnings and errors that repeat are limited to one in 10 s.
void write_log(LogLevel level, std::string_view text);

// Writes a line made of the arguments.
template <class... Args>
void log_info(const Args&... args) {
  if (logs(LogLevel::kInfo)) write_log(LogLevel::kInfo, str(args...));
}
template <class... Args>
void log_warning(const Args&... args) {
  if (logs(LogLevel::kWarning)) write_log(LogLevel::kWarning, str(args...));
}
template <class... Args>
void log_error(const Args&... args) {
  write_log(LogLevel::kError, str(args...));
}
template <class... Args>
void log_debug(const Args&... args) {
  if (logs(LogLevel::kDebug)) write_log(LogLevel::kDebug, str(args...));
}

}  // namespace keel::serving

#include <keel/framework/base/termination.h>

#include <absl/strings/str_cat.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

// Signal handlers may access only lock-free atomics.
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

std::mutex mutex;  // guards `objects` and `previous`
int objects = 0;
std::array<struct sigaction, kSignals.size()> previous;

extern "C" void record_signal(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) return;
  // The default action takes effect when this handler returns, because the signal is blocked until
  // then.
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
  ::raise(signal);
}

void restore(size_t count) {
  for (size_t i = 0; i < count; ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
}

}  // namespace

TerminationSignals::TerminationSignals() {
  const std::lock_guard lock(mutex);
  if (objects == 0) {
    first_signal = 0;
    struct sigaction action = {};
    action.sa_handler = record_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (::sigaction(kSignals[i], nullptr, &previous[i]) == 0) {
        // Shells start background jobs with SIGINT ignored.
        if (previous[i].sa_handler == SIG_IGN) continue;
        if (::sigaction(kSignals[i], &action, nullptr) == 0) continue;
      }
      const int error = errno;
      restore(i);
      throw RuntimeError("TerminationSignals: cannot handle ", signal_name(kSignals[i]), ": ",
                         std::strerror(error));
    }
  }
  ++objects;
}

TerminationSignals::~TerminationSignals() {
  const std::lock_guard lock(mutex);
  if (--objects == 0) restore(kSignals.size());
}

std::optional<int> TerminationSignals::received() {
  const int signal = first_signal;
  return signal == 0 ? std::nullopt : std::optional(signal);
}

std::string signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    default:
      return absl::StrCat("signal ", signal);
  }
}

}  // namespace keel

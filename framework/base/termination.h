// TerminationSignals: lets a program finish cleanly when it receives SIGINT or SIGTERM.
//
//   int main() {
//     const TerminationSignals signals;
//     while (!TerminationSignals::received()) train_a_step();
//     save_a_checkpoint();
//     if (const auto signal = TerminationSignals::received()) return exit_status(*signal);
//   }
//
// callbacks::TerminateOnSignal (layers/callbacks/stopping.h) does this in fit().
#pragma once

#include <optional>
#include <string>

namespace keel {

// While an object is alive, the first SIGINT or SIGTERM is only recorded. The second one ends the
// process immediately, which is the default action of both signals. System calls interrupted by a
// signal are restarted. A signal that the process already ignores stays ignored. Objects may nest:
// the first one installs the handlers, and the last one restores the previous handlers. Thread
// safe.
class TerminationSignals {
 public:
  // Throws RuntimeError if the handlers cannot be installed.
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  // Returns the number of the first signal received since the outermost object was created, or
  // nullopt if there was none. The value remains after the objects are destroyed, so that a program
  // can return exit_status() of it.
  static std::optional<int> received();
};

// Returns the name of a signal, e.g. "SIGTERM", or "signal 99" for a number without a name.
std::string signal_name(int signal);

// Returns 128 + signal, the exit status that shells report for a process ended by a signal.
inline int exit_status(int signal) { return 128 + signal; }

}  // namespace keel

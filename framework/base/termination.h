// TerminationSignals: ends a program in order when it receives SIGINT or SIGTERM.
//
//   int main() {
//     const TerminationSignals signals;
//     while (!TerminationSignals::received()) train_a_step();
//     save_a_checkpoint();
//     if (const auto signal = TerminationSignals::received()) return exit_status(*signal);
//   }
//
// callbacks::TerminateOnSignal (layers/callbacks/terminate_on_signal.h) does so in fit.
#pragma once

#include <optional>
#include <string>

namespace keel {

// While an object exists, the first SIGINT or SIGTERM is only recorded. The second ends the process
// at once, as the signal does by default. System calls that a signal interrupts are restarted.
// A signal that the process ignores already stays ignored. Objects may nest: the first installs the
// handlers, and the last restores those before. Thread safe.
class TerminationSignals {
 public:
  // RuntimeError if the system refuses the handlers.
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  // The number of the first signal since the first object, if there was one. Stays after the
  // objects, so that a program can return exit_status() of it.
  static std::optional<int> received();
};

// "SIGTERM"; "signal 99" for a number without a name.
std::string signal_name(int signal);

// 128 + signal, as shells report a process that a signal has ended.
inline int exit_status(int signal) { return 128 + signal; }

}  // namespace keel

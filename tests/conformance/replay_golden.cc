// replay_golden FILE.json...: replays files of numbers that Keras computed and reports the failing
// records.
#include <iostream>
#include <map>

#include "tests/conformance/golden_replay.h"
#include "tests/conformance/replay_program.h"

namespace {

constexpr char kHelp[] =
    R"(usage: replay_golden [--list-missing] FILE.json...

Replays records of Keras's results through the library's public API. A file is an object of
lists of records: "schedules", "optimizers" (with "optimizer_problem"), "losses", "metrics",
"activations", "layers", "text_layers", "regularizers", "constraints", "initializers", "ops". Prints
the failing records with the expected and the actual values, then "N passed, N failed" over all
files.

A number passes if it differs from the expected number by at most 1e-5 of it, plus 1e-6 of the
largest number of its array, plus 1e-7 (1e-6 for layers, losses and metrics, in which numbers
cancel). For schedules these are 1e-6, 1e-7 and 1e-9; for linear algebra, Muon and Adafactor ten
times as much. Initializers draw other random numbers than Keras: their moments pass within six
standard errors of the theoretical values.

With --list-missing, records of classes and options that Keel does not offer are not replayed. What
is missing is listed at the end, with the number of records.

Exit status: 0 if all passed, 1 if a record failed, 2 if a file cannot be read or has no records.
)";

}  // namespace

int main(int argc, char** argv) {
  bool lists_missing = false;
  std::map<std::string, int> missing;
  const auto replay = [&](const keel::Config& file, const auto& report) {
    for (const auto& record : keel::conformance::golden_records(file)) {
      const std::string name = lists_missing ? keel::conformance::missing_part(record) : "";
      if (name.empty()) {
        report(record.name(), keel::conformance::replay_golden_record(record));
      } else {
        ++missing[record.section + " " + name];
      }
    }
  };
  const int status =
      keel::conformance::run_replay_program({.name = "replay_golden",
                                             .help = kHelp,
                                             .replay = replay,
                                             .flags = {{"--list-missing", &lists_missing}}},
                                            argc, argv);
  for (const auto& [name, count] : missing) {
    std::cout << "not there yet: " << name << ", " << count << " records\n";
  }
  return status;
}

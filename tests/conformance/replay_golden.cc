// replay_golden FILE.json...: replays files of numbers that Keras computed and reports the failing
// records.
#include "tests/conformance/golden_replay.h"
#include "tests/conformance/replay_program.h"

namespace {

constexpr char kHelp[] =
    R"(usage: replay_golden FILE.json...

Replays records of Keras's results through the library's public API. A file is an object of
lists of records: "schedules", "optimizers" (with "optimizer_problem"), "losses", "metrics",
"activations", "layers", "regularizers", "constraints", "initializers". Prints the failing records
with the expected and the actual values, then "N passed, N failed" over all files.

A number passes if it differs from the expected number by at most 1e-5 of it, plus 1e-6 of the
largest number of its array, plus 1e-7 (1e-6 for layers, losses and metrics, in which numbers
cancel). For schedules these are 1e-6, 1e-7 and 1e-9. Initializers draw other random numbers than
Keras: their moments pass within six standard errors of the theoretical values.

Exit status: 0 if all passed, 1 if a record failed, 2 if a file cannot be read or has no records.
)";

}  // namespace

int main(int argc, char** argv) {
  const auto replay = [](const keel::Config& file, const auto& report) {
    for (const auto& record : keel::conformance::golden_records(file)) {
      report(record.name(), keel::conformance::replay_golden_record(record));
    }
  };
  return keel::conformance::run_replay_program(
      {.name = "replay_golden", .help = kHelp, .replay = replay}, argc, argv);
}

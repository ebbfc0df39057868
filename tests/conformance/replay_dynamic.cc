// replay_dynamic FILE.json...: replays files of reference cases of tables for unbounded ids and
// reports the failing ones.
#include <iostream>
#include <string_view>

#include <keel/distribute/process_group.h>

#include "tests/conformance/dynamic_replay.h"
#include "tests/conformance/replay_program.h"

namespace {

constexpr char kHelp[] =
    R"(usage: replay_dynamic [--bits] FILE.json...

Replays reference cases of tables for unbounded ids through the library's public API. A file is a list of
{"name", "description", "inputs", "expected"}. Prints the failing cases with the expected and the
actual values, then "N passed, N failed" over all files. With --bits, runs each case with up to 3
hosts, even if it has fewer replicas, in an engine and as variables, and prints a hash of the tables
for each number of hosts. May run as a job of several MPI processes, each of which needs a host.

Exit status: 0 if all passed, 1 if a case failed, 2 if a file cannot be read or is not a list of
cases.
)";

// Throws ValueError unless the file has the form described in kHelp.
void check_cases(const keel::Config& cases) {
  if (!cases.is_list()) throw keel::ValueError("is not a list of cases");
  for (size_t i = 0; i < cases.items().size(); ++i) {
    const keel::Config& item = cases.items()[i];
    for (const char* key : {"name", "inputs", "expected"}) {
      const keel::Config* found = item.is_dict() ? item.find(key) : nullptr;
      if (found == nullptr ||
          (std::string(key) == "name" ? !found->is_string() : !found->is_dict())) {
        throw keel::ValueError("entry ", i, " is not a case: its '", key,
                               "' is missing or has the wrong type");
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool prints_bits = argc > 1 && std::string_view(argv[1]) == "--bits";
  if (prints_bits) {
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  const bool is_first = keel::distribute::processes().rank() == 0;
  const auto replay = [&](const keel::Config& cases, const auto& report) {
    check_cases(cases);
    for (const keel::Config& item : cases.items()) {
      std::map<std::string, uint64_t> bits;
      const std::string& name = item["name"].string();
      report(name, keel::conformance::replay_dynamic_case(item, prints_bits ? &bits : nullptr));
      for (const auto& [distribution, hash] : bits) {
        if (is_first) std::cout << keel::str("bits ", name, ' ', distribution, ' ', hash, '\n');
      }
    }
  };
  return keel::conformance::run_replay_program(
      {.name = "replay_dynamic", .help = kHelp, .replay = replay}, argc, argv);
}

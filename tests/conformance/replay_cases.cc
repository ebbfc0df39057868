// replay_cases FILE.json...: replays files of reference cases and says which fail.
#include "tests/conformance/embedding_replay.h"
#include "tests/conformance/replay_program.h"

namespace {

constexpr char kHelp[] =
    R"(usage: replay_cases FILE.json...

Replays reference cases of embeddings through the library's public API. A file is a list of
{"name", "description", "inputs", "expected"}. Prints the failing cases with what was expected and
what came, then "N passed, N failed" over all files.

Exit status: 0 if all passed, 1 if a case failed, 2 if a file cannot be read or is no list of cases.
)";

// ValueError if the file is not what kHelp says.
void check_cases(const keel::Config& cases) {
  if (!cases.is_list()) throw keel::ValueError("is no list of cases");
  for (size_t i = 0; i < cases.items().size(); ++i) {
    const keel::Config& item = cases.items()[i];
    for (const char* key : {"name", "inputs", "expected"}) {
      const keel::Config* found = item.is_dict() ? item.find(key) : nullptr;
      if (found == nullptr ||
          (std::string(key) == "name" ? !found->is_string() : !found->is_dict())) {
        throw keel::ValueError("entry ", i, " is no case, it has no proper '", key, "'");
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto replay = [](const keel::Config& cases, const auto& report) {
    check_cases(cases);
    for (const keel::Config& item : cases.items()) {
      report(item["name"].string(), keel::conformance::replay_embedding_case(item));
    }
  };
  return keel::conformance::run_replay_program(
      {.name = "replay_cases", .help = kHelp, .replay = replay}, argc, argv);
}

// replay_cases FILE.json...: replays files of reference cases and says which fail.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/conformance/embedding_replay.h"

namespace {

constexpr char kHelp[] =
    R"(usage: replay_cases FILE.json...

Replays reference cases of embeddings through the library's public API. A file is a list of
{"name", "description", "inputs", "expected"}. Prints the failing cases with what was expected and
what came, then "N passed, N failed" over all files.

Exit status: 0 if all passed, 1 if a case failed, 2 if a file cannot be read or is no list of cases.
)";

// The cases of a file. ValueError if it is not what kHelp says, IoError if it cannot be read.
keel::Config cases_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || !text) throw keel::IoError(path, ": cannot be read");
  keel::Config cases;
  try {
    cases = keel::parse_json(text.str());
  } catch (const std::exception& error) {
    throw keel::ValueError(path, ": ", error.what());
  }
  if (!cases.is_list()) throw keel::ValueError(path, ": is no list of cases");
  for (size_t i = 0; i < cases.items().size(); ++i) {
    const keel::Config& item = cases.items()[i];
    for (const char* key : {"name", "inputs", "expected"}) {
      const keel::Config* found = item.is_dict() ? item.find(key) : nullptr;
      if (found == nullptr ||
          (std::string(key) == "name" ? !found->is_string() : !found->is_dict())) {
        throw keel::ValueError(path, ": entry ", i, " is no case, it has no proper '", key, "'");
      }
    }
  }
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::cout << kHelp;
      return 0;
    }
    if (argument.starts_with("-")) {
      std::cerr << "replay_cases: unknown flag " << argument << "\n" << kHelp;
      return 2;
    }
  }
  if (arguments.empty()) {
    std::cerr << kHelp;
    return 2;
  }
  int passed = 0, failed = 0;
  try {
    for (const std::string& path : arguments) {
      const keel::Config cases = cases_of(path);
      for (const keel::Config& item : cases.items()) {
        const std::string failure = keel::conformance::replay_embedding_case(item);
        (failure.empty() ? passed : failed) += 1;
        if (!failure.empty()) std::cout << "FAILED " << item["name"].string() << "\n" << failure;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "replay_cases: " << error.what() << "\n";
    return 2;
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

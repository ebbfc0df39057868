// What the programs that replay files of reference cases share: their arguments, the reading of
// files, the counts and the exit status.
#pragma once

#include <functional>
#include <string>

#include <keel/framework/config/config.h>

namespace keel::conformance {

Config read_json_file(const std::string& path);  // IoError if it cannot be read, else ValueError

struct ReplayProgram {
  std::string name;  // "replay_cases"
  std::string help;  // what --help prints
  // Called with the name of each case, and with what went wrong, line by line; empty if it passed.
  using Report = std::function<void(const std::string& name, const std::string& failure)>;
  // Replays the cases of a file. ValueError if it is no file of cases.
  std::function<void(const Config& file, const Report& report)> replay;
};

// The program's main(): prints the failing cases of all files and "N passed, N failed". Returns 0
// if all passed, 1 if a case failed, 2 for a bad file or other arguments than files.
int run_replay_program(const ReplayProgram& program, int argc, char** argv);

}  // namespace keel::conformance

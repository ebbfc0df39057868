// The common part of the programs that replay files of reference cases: arguments, file reading,
// counts and exit status.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <keel/framework/config/config.h>

namespace keel::conformance {

Config read_json_file(const std::string& path);  // throws IoError or ValueError

// Describes one program.
struct ReplayProgram {
  std::string name;  // "replay_cases"
  std::string help;  // the output of --help
  // Receives the name of each case and its failures, one per line; empty if it passed.
  using Report = std::function<void(const std::string& name, const std::string& failure)>;
  // Replays the cases of a file. Throws ValueError if the file does not contain cases.
  std::function<void(const Config& file, const Report& report)> replay;
  // Flags of this program, "--list-missing", and the variables that they set to true.
  std::map<std::string, bool*> flags = {};
};

// Implements main(): prints the failing cases of all files and "N passed, N failed". Returns 0 if
// all passed, 1 if a case failed, and 2 for an invalid file or invalid arguments.
int run_replay_program(const ReplayProgram& program, int argc, char** argv);

}  // namespace keel::conformance

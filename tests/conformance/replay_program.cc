#include "tests/conformance/replay_program.h"

#include <fstream>
#include <iostream>
#include <sstream>

namespace keel::conformance {
namespace {

// Sets the flags and leaves the paths. Returns the exit status if the program must exit
// immediately.
std::optional<int> read_arguments(const ReplayProgram& program,
                                  std::vector<std::string>& arguments) {
  std::erase_if(arguments, [&](const std::string& argument) {
    const auto flag = program.flags.find(argument);
    if (flag == program.flags.end()) return false;
    return *flag->second = true;
  });
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::cout << program.help;
      return 0;
    }
    if (argument.starts_with("-")) {
      std::cerr << program.name << ": unknown flag " << argument << "\n" << program.help;
      return 2;
    }
  }
  if (!arguments.empty()) return {};
  std::cerr << program.help;
  return 2;
}

}  // namespace

Config read_json_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || !text) throw IoError(path, ": cannot be read");
  try {
    return parse_json(text.str());
  } catch (const std::exception& error) {
    throw ValueError(path, ": ", error.what());
  }
}

int run_replay_program(const ReplayProgram& program, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (const auto status = read_arguments(program, arguments)) return *status;
  int passed = 0, failed = 0;
  const auto report = [&](const std::string& name, const std::string& failure) {
    (failure.empty() ? passed : failed) += 1;
    if (!failure.empty()) std::cout << "FAILED " << name << "\n" << failure;
  };
  try {
    for (const std::string& path : arguments) {
      const Config file = read_json_file(path);
      try {
        program.replay(file, report);
      } catch (const std::exception& error) {
        throw ValueError(path, ": ", error.what());
      }
    }
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << "\n";
    return 2;
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

}  // namespace keel::conformance

#include "examples/flags.h"

#include <absl/flags/reflection.h>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/errors.h>

namespace keel::examples {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  std::cerr << what << "; see --help\n";
  std::exit(2);
}

// Returns the flags that the program itself defines, in alphabetical order.
std::map<std::string, absl::CommandLineFlag*> own_flags() {
  std::map<std::string, absl::CommandLineFlag*> out;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (flag->Filename().find("examples/") != std::string::npos) {
      out.emplace(std::string(name), flag);
    }
  }
  return out;
}

[[noreturn]] void print_help(const char* usage) {
  std::cout << usage << "\n\nFlags:\n";
  for (const auto& [name, flag] : own_flags()) {
    std::cout << "  --" << name << "  " << flag->Help()
              << " (default: " << (flag->DefaultValue().empty() ? "none" : flag->DefaultValue())
              << ")\n";
  }
  std::exit(std::cout.flush() ? 0 : 2);
}

}  // namespace

void parse_flags(int argc, char** argv, const char* usage) {
  const auto flags = own_flags();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") print_help(usage);
    if (argument.substr(0, 2) != "--") refuse("unexpected argument '" + argument + "'");
    const size_t equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    auto it = flags.find(name);
    const bool negated = it == flags.end() && name.substr(0, 2) == "no" &&
                         flags.contains(name.substr(2)) &&
                         flags.at(name.substr(2))->IsOfType<bool>();
    if (negated) it = flags.find(name.substr(2));
    if (it == flags.end()) refuse("unknown flag '--" + name + "'");
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (it->second->IsOfType<bool>()) {
      value = negated ? "false" : "true";
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      refuse("flag '--" + name + "' needs a value");
    }
    std::string error;
    if (!it->second->ParseFrom(value, &error)) {
      refuse(str("flag '--", name, "': '", value, "' is not a valid value",
                 error.empty() ? "" : ": ", error));
    }
  }
}

namespace {

// Ends the other processes of the job with the same message.
void report_error(const char* name, const std::exception& error) {
  std::cerr << str(name, ": ", error.what(), '\n');
  try {
    distribute::processes().abort(error.what());
  } catch (const Error&) {  // the program does not run in a job
  }
}

}  // namespace

int run_program(const char* name, int (*body)()) {
  try {
    const int status = body();
    // Buffered output may fail only when it is flushed, for example on a full disk.
    if (!std::cout.flush()) throw RuntimeError("standard output cannot be written");
    return status;
  } catch (const RuntimeError& error) {
    report_error(name, error);
    return 1;
  } catch (const Error& error) {
    report_error(name, error);
    return 2;
  } catch (const std::exception& error) {
    report_error(name, error);
    return 1;
  }
}

}  // namespace keel::examples

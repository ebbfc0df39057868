#include "examples/program.h"

#include <iostream>
#include <string>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/errors.h>
#include <keel/savedmodel/tool/printable_output.h>

namespace keel::examples {
namespace {

// Ends the other processes of the job with the same message.
void report_error(const std::string& name, const std::exception& error) {
  std::cerr << tool::printable(str(name, ": ", error.what(), '\n'));
  try {
    distribute::processes().abort(error.what());
  } catch (const Error&) {  // the program does not run in a job
  }
}

}  // namespace

int run_program(tool::CommandLine& line, int argc, const char* const* argv,
                const std::function<int()>& body) {
  if (const std::optional<int> status = line.parse(argc, argv)) return *status;
  const std::string name = line.name();
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

// The main function of the example programs.
#pragma once

#include <functional>

#include <keel/savedmodel/tool/command_line.h>

namespace keel::examples {

// Parses the arguments, then runs `body` and prints any error that it throws. Returns the status of
// the parser if it ends the program, 2 for errors in user input (a path, an option, the contents of
// a file), 1 for all other errors, such as a failing standard output, and else the status of
// `body`.
int run_program(tool::CommandLine& line, int argc, const char* const* argv,
                const std::function<int()>& body);

}  // namespace keel::examples

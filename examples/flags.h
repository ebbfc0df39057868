// Command-line flags of the example programs, based on Abseil flags.
#pragma once

#include <absl/flags/flag.h>

namespace keel::examples {

// Sets the flags from "--name=value", "--name value", and for booleans "--name" and "--noname".
// --help prints `usage` and every flag with its default, and exits with status 0. An unknown flag,
// an invalid value or a stray argument prints an error and exits with status 2.
void parse_flags(int argc, char** argv, const char* usage);

// Runs `body` and prints any error that it throws. Returns status 2 for errors in user input (a
// path, an option, the contents of a file) and 1 for all other errors, such as a failing standard
// output.
int run_program(const char* name, int (*body)());

}  // namespace keel::examples

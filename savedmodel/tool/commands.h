// The commands of the tool `keel`. Each prints to standard output and returns the exit status.
// Invalid arguments or files raise errors.
#pragma once

#include <string>
#include <vector>

#include <keel/savedmodel/tool/arguments.h>

namespace keel::tool {

// A command and its help text.
struct Command {
  Syntax syntax;
  std::string summary;  // one line
  std::string details;
  int (*run)(const Arguments&);
};

Command convert_command();
Command diff_command();
Command inspect_command();
Command plot_command();
Command predict_command();

}  // namespace keel::tool

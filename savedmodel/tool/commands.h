// The commands of the tool `keel`. Each one prints to the standard output and returns the exit
// status. Throws if the arguments or files are invalid.
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

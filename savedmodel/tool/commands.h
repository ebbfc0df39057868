// The commands of the tool `keel`. Each function adds one command, whose run prints to the standard
// output and returns the exit status. A run throws if the arguments or files are invalid.
#pragma once

#include <keel/savedmodel/tool/command_line.h>

namespace keel::tool {

void add_convert(CommandLine& keel);
void add_diff(CommandLine& keel);
void add_inspect(CommandLine& keel);
void add_plot(CommandLine& keel);
void add_predict(CommandLine& keel);

}  // namespace keel::tool

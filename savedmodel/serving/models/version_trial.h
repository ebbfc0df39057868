// try_command(): runs a trial load of a model version in another process, so that a file which
// makes the loader crash, hang or run out of memory cannot do so in the server.
#pragma once

#include <string>
#include <vector>

namespace keel::serving {

// Runs a command with its arguments until it ends. Its output is discarded but for the last line.
// Returns normally if it ends with any exit status: the load in the server then reports errors.
// Throws RuntimeError if a signal ends it, with the signal and the last line of its output, or if
// it runs longer than `seconds`; it is then killed. The system prefers this process to others when
// memory runs out. Throws IoError if the command cannot be started.
void try_command(const std::vector<std::string>& command, double seconds);

// Called first in the process of a trial: lowers its priority, keeps it from writing a core file,
// and ends it together with the server.
void begin_trial();

}  // namespace keel::serving

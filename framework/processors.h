// Processors that threads run on.
#pragma once

#include <vector>

namespace keel {

// Numbers of those that this process might use when it was first asked.
const std::vector<int>& processors();

// From now on a thread (gettid), and those that it starts, run on one of them. If the system
// refuses, nothing changes.
void run_on_processor(int thread, int processor);
// From now on this thread runs on any of them.
void run_on_all_processors();

}  // namespace keel

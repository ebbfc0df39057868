// What the processes of a job do alike though each may fail for itself, as in reading a file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Runs fn in every process. If it throws in any, this throws in all of them: the exception of this
// process or else that of the lowest rank, of the same type, its text after "rank 1: ". So the job
// can go on. fn itself makes no exchange, and may take any time (LongWork). Collective; `what` is
// its label.
void run_collectively(ProcessGroup& group, std::string_view what, const std::function<void()>& fn);

// The texts of all processes, by rank. Collective.
std::vector<std::string> gather_texts(ProcessGroup& group, std::string_view what,
                                      const std::string& mine);

}  // namespace keel::distribute

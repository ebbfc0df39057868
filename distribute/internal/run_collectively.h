// run_collectively() runs a function in every process and throws everywhere if any process fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/function_ref.h>

namespace keel::distribute {

// Runs fn in every process. If it throws in any of them, the call throws in all: the exception of
// this process, or else that of the lowest rank, of the same type and with its text after
// "rank 1: ". The job can therefore continue. fn must not make an exchange and may take any time
// (see LongWork). Collective with label `what`.
void run_collectively(ProcessGroup& group, std::string_view what, FunctionRef<void()> fn);

// Returns the texts of all processes, by rank. Collective with label `what`.
std::vector<std::string> gather_texts(ProcessGroup& group, std::string_view what,
                                      const std::string& mine);

}  // namespace keel::distribute

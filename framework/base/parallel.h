// Worker threads: the number of cores that compute at once, and parallel loops over fixed blocks.
//
// The number of workers never changes a bit of any result. The blocks of a loop depend only on the
// size of the problem, and each block writes its own output. The caller adds the sums of blocks in
// block order. Code with a separate path for one worker must add in the same order as the path for
// many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <keel/framework/base/function_ref.h>

namespace keel {

// Sets the number of cores that compute at once, for parallel loops and replicas together. Throws
// ValueError unless 1 <= count <= 1024. Call it before creating strategies; existing strategies
// keep the number they were created with.
//
// By default, a process that its launcher has pinned uses the processors that it is pinned to. The
// processes of a job on one machine otherwise share its processors equally. In both cases they also
// share the CPU quota of the control group, which is a container's limit.
void set_num_workers(int count);
// Returns the number of workers. Thread safe.
int num_workers();

// Calls fn(begin, end) for the blocks [0, grain), [grain, 2 grain), ... of [0, n), on several
// workers at once, and returns when all blocks are done. `grain` must be positive; for n <= 0
// nothing is called. If blocks throw, the exception of the lowest one is rethrown. Blocks run one
// after another on the calling thread in these cases:
// - inside another parallel_for or under SerialSection,
// - when there is only one block or one worker.
void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn);

// Returns true if a parallel_for of several blocks would run only on the calling thread now.
bool parallel_runs_in_place();

// While a SerialSection is alive, parallel_for on this thread runs serially. Use it in threads that
// keep all workers busy together, such as replicas.
class SerialSection {
 public:
  SerialSection();
  ~SerialSection();
  SerialSection(const SerialSection&) = delete;
  SerialSection& operator=(const SerialSection&) = delete;
};

}  // namespace keel

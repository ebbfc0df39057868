// Worker threads: the number of cores that compute at once, and loops that are cut into fixed
// blocks.
//
// The number of workers never changes a bit of any result. Loops are cut by the size of the problem
// alone, and each block writes its own output. The caller adds sums over blocks in block order.
// Code that cuts a loop differently for one worker must still compute every sum in the same order
// as for many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace keel {

// Sets the number of cores that compute at once, including the replicas of a strategy. The default
// is the number of processors available to this process, limited by its control group's quota (a
// container's limit), and divided by the number of processes of its job on this machine unless the
// launcher has pinned them. Throws ValueError unless 1 <= count <= 1024. Call it before creating
// strategies; existing strategies keep the number they were created with.
void set_num_workers(int count);
// Returns the number of workers. Thread safe.
int num_workers();

// Calls fn(begin, end) for the blocks [0, grain), [grain, 2 grain), ... of [0, n), on several
// workers at once, and returns when all blocks are done. If blocks throw, the exception of the
// lowest one is rethrown. Blocks run one after another on the calling thread in these cases:
// - inside another parallel_for or under SerialSection,
// - when there is only one block or one worker.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& fn);

// Returns true if a parallel_for of several blocks called here would run on the calling thread
// alone.
bool parallel_runs_in_place();

// While an object exists, parallel_for on this thread runs serially. Use it in threads that share
// the workers with one another.
class SerialSection {
 public:
  SerialSection();
  ~SerialSection();
  SerialSection(const SerialSection&) = delete;
  SerialSection& operator=(const SerialSection&) = delete;
};

}  // namespace keel

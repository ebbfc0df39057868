// Worker threads: how many cores compute at once, and loops cut into fixed blocks.
//
// The number of workers never changes a bit of any result: loops are cut by the size of the
// problem alone, and each block writes its own output. Sums over blocks are made by the
// caller in block order. Who cuts otherwise for one worker makes every sum as for many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace keel {

// Cores that compute at once, replicas of a strategy included. By default the processors that this
// process may use, no more than its control group is given time of (a container's limit), or its
// share of those if its job has several processes here. ValueError unless 1 <= count <= 1024. Call
// it before strategies are made; those in being keep the number they were made with.
void set_num_workers(int count);
int num_workers();

// fn(begin, end) for the blocks [0, grain), [grain, 2 grain), ... of [0, n), by several workers
// at once. Returns when all are done; the exception of the lowest block that threw is rethrown.
// Runs in place, one block after the other, inside another parallel_for, under SerialSection, or
// when there is one block or one worker.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& fn);

// Whether a parallel_for of several blocks, called here, would run in place.
bool parallel_runs_in_place();

// While alive, parallel_for on this thread runs in place: for a thread that is itself one of
// several that share the workers.
class SerialSection {
 public:
  SerialSection();
  ~SerialSection();
  SerialSection(const SerialSection&) = delete;
  SerialSection& operator=(const SerialSection&) = delete;
};

}  // namespace keel

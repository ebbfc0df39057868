// ReplicaScheduler decides which replicas of a process run. Each replica is a thread. At most as
// many as there are workers hold a turn, that is, may compute; the others sleep.
//
// A replica that has to wait for an event passes its turn to a replica that is ready. The thread
// that completes the event marks the waiting replicas as ready. A replica is therefore woken only
// when it can run and a worker is available and, as far as the scheduler knows, not on a processor
// where another replica computes.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <keel/distribute/thread_affinity.h>

namespace keel::distribute {

// Schedules the replica threads of a process on a fixed number of workers.
class ReplicaScheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Creates a scheduler in which no replica holds a turn yet.
  ReplicaScheduler(int replicas, int workers);

  // Locks the mutex that guards the scheduler and the events that replicas wait for.
  Lock lock() { return Lock(mutex_); }

  // The functions below require the lock.

  // Queues a waiting replica for the next free turn. A later call of dispatch(), wait() or leave()
  // by another thread grants it.
  void make_ready(int replica) { ready_.push_back(replica); }
  // Grants free turns to ready replicas. Releases the lock. `waits` tells that this thread is about
  // to wait and leaves its processor.
  void dispatch(Lock& lock, bool waits = false);
  // Releases this replica's turn and returns when it has a turn again. `soon` tells that the
  // awaited event is expected shortly.
  void wait(Lock& lock, int replica, bool soon);
  // Returns when this replica, which holds no turn, is granted one.
  void wait_for_first(Lock& lock, int replica);
  // Releases this replica's turn permanently. Releases the lock.
  void leave(Lock& lock, int replica);

 private:
  struct Replica {
    std::condition_variable woken;
    std::atomic<bool> has_turn = false;
    bool sleeps = false;
    ThreadAffinity placement;
  };
  void count(const Replica& replica, int turns);
  void give_away_turn_of(int replica);
  Replica& take_ready(int here);
  void place(Replica& sleeper, int here, bool is_last);
  bool is_free(int processor) const {
    return processor != ThreadAffinity::kNowhere && turns_on_[processor] == 0;
  }

  std::mutex mutex_;
  std::vector<int> ready_;  // capacity for all replicas, so make_ready() does not allocate
  int free_;                // number of turns that no replica holds
  std::array<int, CPU_SETSIZE> turns_on_ = {};  // number of turns by processor
  int busy_ = 0;                                // processors with at least one turn
  const int processors_;                        // that threads may run on; 0 if unknown
  const std::unique_ptr<Replica[]> replicas_;
};

}  // namespace keel::distribute

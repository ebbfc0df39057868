// ReplicaScheduler decides which replica threads of a process run. A replica computes only while it
// holds a slot. There are as many slots as workers, and replicas without a slot sleep.
//
// A replica that has to wait for an event gives its slot to a replica that is ready. The thread
// that completes the event marks the waiting replicas as ready. A replica is therefore woken only
// when it can run and a worker is free. It wakes up on a processor that no other replica uses, if
// there is one.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <keel/distribute/internal/thread_affinity.h>

namespace keel::distribute {

// Schedules the replica threads of a process on a fixed number of workers.
class ReplicaScheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Creates a scheduler in which no replica holds a slot yet.
  ReplicaScheduler(int replicas, int workers);

  // Locks the mutex that guards the scheduler and the events that replicas wait for.
  Lock lock() { return Lock(mutex_); }

  // The functions below require the lock.

  // Queues a waiting replica for the next free slot. A later call of dispatch(), wait() or leave()
  // by another thread grants it.
  void make_ready(int replica) { ready_.push_back(replica); }
  // Grants free slots to ready replicas, and releases the lock. `waits` is true if this thread is
  // about to wait, which frees its processor.
  void dispatch(Lock& lock, bool waits = false);
  // Releases this replica's slot and returns when it has a slot again. `soon` is true if the event
  // is expected within microseconds, so that spinning is better than sleeping.
  void wait(Lock& lock, int replica, bool soon);
  // Returns when this replica, which holds no slot, is granted one.
  void wait_for_first(Lock& lock, int replica);
  // Releases this replica's slot permanently, and releases the lock.
  void leave(Lock& lock, int replica);

 private:
  struct Replica {
    std::condition_variable woken;
    std::atomic<bool> has_slot = false;
    bool sleeps = false;
    ThreadAffinity affinity;
  };
  void count(const Replica& replica, int slots);
  void release_slot_of(int replica);
  Replica& take_ready(int here);
  void choose_processor(Replica& sleeper, int here, bool is_last);
  bool is_free(int processor) const {
    return processor != ThreadAffinity::kNowhere && slots_on_[processor] == 0;
  }

  std::mutex mutex_;
  std::vector<int> ready_;  // capacity for all replicas, so make_ready() does not allocate
  int free_;                // number of slots that no replica holds
  std::array<int, CPU_SETSIZE> slots_on_ = {};  // number of slots by processor
  int busy_ = 0;                                // processors with at least one slot
  const int processors_;                        // number of allowed processors; 0 if unknown
  const std::unique_ptr<Replica[]> replicas_;
};

}  // namespace keel::distribute

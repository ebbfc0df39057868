// ReplicaScheduler: which replicas of a process compute. Each is a thread; as many have a turn at
// once as there are workers, and the others sleep until one is given to them.
//
// A replica that waits for something gives its turn to one that is ready for it; who brings about
// what others wait for makes them ready. So nobody wakes in vain, or only to wait for a worker.
// Nor, as far as this knows, on a processor where another replica computes.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <keel/distribute/thread_affinity.h>

namespace keel::distribute {

class ReplicaScheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Nobody has a turn yet.
  ReplicaScheduler(int replicas, int workers);

  // Guards all of this, and what replicas wait for.
  Lock lock() { return Lock(mutex_); }

  // The rest with the lock held.

  // The replica, which waits, is to have a turn as soon as there is one. Turns are dealt by the
  // next call of one of the others.
  void make_ready(int replica) { ready_.push_back(replica); }
  // Deals the turns that nobody has. Returns without the lock. `waits`: this thread is about to
  // wait, and leaves its processor.
  void dispatch(Lock& lock, bool waits = false);
  // Gives this replica's turn away and returns when it has one again. `soon`: what it waits for
  // takes others but moments.
  void wait(Lock& lock, int replica, bool soon);
  // Of a replica without a turn: returns when it has one.
  void wait_for_first(Lock& lock, int replica);
  // Gives this replica's turn away for good. Returns without the lock.
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
  std::vector<int> ready_;  // has room for all replicas: to make one ready needs no memory
  int free_;                // turns
  std::array<int, CPU_SETSIZE> turns_on_ = {};  // by processor
  int busy_ = 0;                                // processors with a turn
  const int processors_;                        // that threads may run on; 0: who knows
  const std::unique_ptr<Replica[]> replicas_;
};

}  // namespace keel::distribute

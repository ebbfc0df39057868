#include "distribute/replica_turns.h"

#include <chrono>
#include <thread>
#include <vector>

namespace keel::distribute {
namespace {

// While a worker is idle: sleep and waking up take as long.
constexpr auto kBusyWait = std::chrono::microseconds(20);

}  // namespace

ReplicaTurns::ReplicaTurns(int replicas, int workers)
    : free_(workers), replicas_(std::make_unique<Replica[]>(replicas)) {}

// Counts a turn where the replica is, or no longer.
void ReplicaTurns::count(const Replica& replica, int turns) {
  const int processor = replica.placement.processor();
  if (processor != ThreadPlacement::kNowhere) turns_on_[processor] += turns;
}

void ReplicaTurns::give_away_turn_of(int replica) {
  count(replicas_[replica], -1);
  ++free_;
}

// A sleeper's processor may be that of another replica; or of this thread, which is about to wait,
// but the scheduler, which does not know that, would send it to where somebody else wakes up.
void ReplicaTurns::place(Replica& sleeper) {
  const int processor = sleeper.placement.processor();
  if (processor == ThreadPlacement::kNowhere) return;
  if (turns_on_[processor] > 0) {
    sleeper.placement.wake_on([this](int p) { return turns_on_[p] == 0; });
  } else if (processor == sched_getcpu()) {
    sleeper.placement.wake_on([processor](int p) { return p == processor; });
  }
}

void ReplicaTurns::deal(Lock& lock) {
  std::vector<Replica*> sleepers;
  for (; free_ > 0 && !ready_.empty(); ready_.pop_front()) {
    Replica& next = replicas_[ready_.front()];
    --free_;
    if (next.sleeps) {
      place(next);
      sleepers.push_back(&next);
    }
    count(next, 1);
    next.has_turn.store(true, std::memory_order_release);
  }
  lock.unlock();  // before they wake, for they need it
  for (Replica* r : sleepers) r->woken.notify_one();
}

void ReplicaTurns::wait(Lock& lock, int replica, bool soon) {
  give_away_turn_of(replica);
  const bool worker_is_idle = ready_.empty();
  deal(lock);
  if (soon && worker_is_idle) {
    const auto until = std::chrono::steady_clock::now() + kBusyWait;
    const std::atomic<bool>& has_turn = replicas_[replica].has_turn;
    while (!has_turn.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) {
    }
  }
  lock.lock();
  wait_for_first(lock, replica);
}

void ReplicaTurns::wait_for_first(Lock& lock, int replica) {
  Replica& me = replicas_[replica];
  me.sleeps = true;
  me.woken.wait(lock, [&me] { return me.has_turn.load(std::memory_order_relaxed); });
  me.sleeps = false;
  me.has_turn.store(false, std::memory_order_relaxed);
  count(me, -1);
  me.placement.look();
  count(me, 1);
}

void ReplicaTurns::leave(Lock& lock, int replica) {
  give_away_turn_of(replica);
  deal(lock);
}

}  // namespace keel::distribute

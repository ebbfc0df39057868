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

void ReplicaTurns::deal(Lock& lock) {
  std::vector<Replica*> sleepers;
  for (; free_ > 0 && !ready_.empty(); ready_.pop_front()) {
    Replica& next = replicas_[ready_.front()];
    --free_;
    if (next.sleeps) sleepers.push_back(&next);
    next.has_turn.store(true, std::memory_order_release);
  }
  lock.unlock();  // before they wake, for they need it
  for (Replica* r : sleepers) r->woken.notify_one();
}

void ReplicaTurns::wait(Lock& lock, int replica, bool soon) {
  ++free_;
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
}

void ReplicaTurns::leave(Lock& lock) {
  ++free_;
  deal(lock);
}

}  // namespace keel::distribute

#include "distribute/replica_turns.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>
#include <vector>

#include "framework/processors.h"

namespace keel::distribute {
namespace {

// While a worker is idle: sleep and waking up take as long.
constexpr auto kBusyWait = std::chrono::microseconds(20);

}  // namespace

// A thread that sleeps wakes up there: it could not go by itself while the processor where it has
// been is busy.
void ReplicaTurns::Replica::go_there() {
  if (thread == 0 || runs_on == processor) return;
  run_on_processor(thread, processor);
  runs_on = processor;
}

ReplicaTurns::ReplicaTurns(int replicas, int workers)
    : replicas_(std::make_unique<Replica[]>(replicas)) {
  const std::vector<int>& all = processors();
  if (workers <= replicas && workers == std::ssize(all)) {
    free_ = all;
  } else {
    free_.assign(workers, kAny);
  }
}

void ReplicaTurns::give_away_turn_of(int replica) { free_.push_back(replicas_[replica].processor); }

// Who has been on the processor before comes first there.
int ReplicaTurns::next_for(int processor) {
  const auto was_there = [&](int replica) { return replicas_[replica].processor == processor; };
  auto next = std::ranges::find_if(ready_, was_there);
  if (next == ready_.end()) next = ready_.begin();
  const int replica = *next;
  ready_.erase(next);
  return replica;
}

void ReplicaTurns::deal(Lock& lock) {
  std::vector<Replica*> sleepers;
  for (; !free_.empty() && !ready_.empty(); free_.pop_back()) {
    Replica& next = replicas_[next_for(free_.back())];
    next.processor = free_.back();
    next.go_there();
    if (next.sleeps) sleepers.push_back(&next);
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
  if (me.thread == 0) {
    me.thread = gettid();
    me.go_there();
  }
  me.sleeps = true;
  me.woken.wait(lock, [&me] { return me.has_turn.load(std::memory_order_relaxed); });
  me.sleeps = false;
  me.has_turn.store(false, std::memory_order_relaxed);
}

void ReplicaTurns::leave(Lock& lock, int replica) {
  give_away_turn_of(replica);
  deal(lock);
}

}  // namespace keel::distribute

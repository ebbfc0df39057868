#include <keel/distribute/internal/replica_scheduler.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace keel::distribute {
namespace {

// The time for which a replica spins before it sleeps, if a worker is idle. Events expected soon
// occur within this time or much later; spinning five times as long gained nothing.
constexpr auto kBusyWait = std::chrono::microseconds(20);

}  // namespace

ReplicaScheduler::ReplicaScheduler(int replicas, int workers)
    : free_(workers),
      processors_(ThreadAffinity::allowed()),
      replicas_(std::make_unique<Replica[]>(replicas)) {
  ready_.reserve(2 * static_cast<size_t>(replicas));
}

// Adds `slots` to the number of slots on the replica's processor.
void ReplicaScheduler::count(const Replica& replica, int slots) {
  const int processor = replica.affinity.processor();
  if (processor == ThreadAffinity::kNowhere) return;
  int& here = slots_on_[processor];
  busy_ -= here > 0 ? 1 : 0;
  here += slots;
  busy_ += here > 0 ? 1 : 0;
}

void ReplicaScheduler::release_slot_of(int replica) {
  count(replicas_[replica], -1);
  replicas_[replica].affinity.update();
  ++free_;
}

// Takes a ready replica off the queue. Prefers one that last ran on this thread's processor, which
// the thread is about to leave.
ReplicaScheduler::Replica& ReplicaScheduler::take_ready(int here) {
  const auto is_here = [&](int r) { return replicas_[r].affinity.processor() == here; };
  auto next = is_free(here) ? std::ranges::find_if(ready_, is_here) : ready_.end();
  if (next == ready_.end()) next = ready_.begin();
  Replica& out = replicas_[*next];
  ready_.erase(next);
  return out;
}

// Selects the processor on which a sleeping replica wakes up: the one it last ran on if that is
// free, or this one if no other replica is about to run here, because an idle processor takes
// longer to wake. Without this the kernel's scheduler, which does not know that this thread is
// about to wait, would prefer any idle processor.
void ReplicaScheduler::choose_processor(Replica& sleeper, int here, bool is_last) {
  const int processor = sleeper.affinity.processor();
  if (processor == ThreadAffinity::kNowhere) return;
  if (is_free(here) && (processor == here || is_last)) {
    if (processor == here && busy_ + 1 >= processors_) return;
    sleeper.affinity.wake_on([here](int p) { return p == here; });
  } else if (!is_free(processor)) {
    sleeper.affinity.wake_on([this](int p) { return is_free(p); });
  }
}

void ReplicaScheduler::dispatch(Lock& lock, bool waits) {
  // An array, not a vector: a replica that leaves a failed step must not allocate.
  std::array<Replica*, 64> sleepers;
  auto end = sleepers.begin();
  const int here = waits ? ThreadAffinity::current() : ThreadAffinity::kNowhere;
  for (; free_ > 0 && !ready_.empty(); --free_) {
    Replica& next = take_ready(here);
    if (next.sleeps) choose_processor(next, here, free_ == 1 || ready_.empty());
    count(next, 1);
    next.has_slot.store(true, std::memory_order_release);
    if (next.sleeps && end != sleepers.end()) {
      *end++ = &next;
    } else if (next.sleeps) {
      next.woken.notify_one();
    }
  }
  // A replica that wakes up on this processor preempts this thread, so it is notified last.
  std::partition(sleepers.begin(), end,
                 [here](const Replica* r) { return r->affinity.processor() != here; });
  lock.unlock();  // first, because the woken replicas need the lock
  for (auto at = sleepers.begin(); at != end; ++at) (*at)->woken.notify_one();
}

void ReplicaScheduler::wait(Lock& lock, int replica, bool soon) {
  release_slot_of(replica);
  const bool worker_is_idle = ready_.empty();
  dispatch(lock, true);
  // Spinning avoids the cost of waking up. It is useless if another replica now uses the worker.
  if (soon && worker_is_idle) {
    const auto until = std::chrono::steady_clock::now() + kBusyWait;
    const std::atomic<bool>& has_slot = replicas_[replica].has_slot;
    while (!has_slot.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) {
    }
  }
  lock.lock();
  wait_for_first(lock, replica);
}

void ReplicaScheduler::wait_for_first(Lock& lock, int replica) {
  Replica& me = replicas_[replica];
  me.sleeps = true;
  me.woken.wait(lock, [&me] { return me.has_slot.load(std::memory_order_relaxed); });
  me.sleeps = false;
  me.has_slot.store(false, std::memory_order_relaxed);
  count(me, -1);
  me.affinity.update();
  count(me, 1);
}

void ReplicaScheduler::leave(Lock& lock, int replica) {
  release_slot_of(replica);
  dispatch(lock, true);
}

}  // namespace keel::distribute

// RequestDeadline: when a request must be answered, and by which thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace keel::serving {

// Shared by the thread that computes a request and the one that enforces time-outs. The first of
// them to take the request sends the response, so metrics and clients agree on the outcome.
class RequestDeadline {
 public:
  // Starts a request that must be answered before `at_ns` of the steady clock. INT64_MAX: no limit.
  void begin(int64_t at_ns) {
    at_ns_.store(at_ns, std::memory_order_relaxed);
    claimed_ = false;
    answered_.store(false, std::memory_order_release);
  }
  // Sets the time of a wait that no response ends, such as that for a body.
  void set(int64_t at_ns) { at_ns_.store(at_ns, std::memory_order_relaxed); }
  int64_t at_ns() const { return at_ns_.load(std::memory_order_relaxed); }
  // Moves the deadline forward; a later one changes nothing.
  void lower(int64_t at_ns) {
    int64_t now = this->at_ns();
    while (at_ns < now && !at_ns_.compare_exchange_weak(now, at_ns)) {
    }
  }

  // For the thread that computes: returns true if its response will be sent. Later calls return the
  // same.
  bool claim() {
    if (!claimed_) claimed_ = !answered_.exchange(true);
    return claimed_;
  }
  // For the thread that enforces time-outs: returns true if it has to send the response.
  bool expire() { return !answered_.exchange(true); }

 private:
  std::atomic<int64_t> at_ns_ = INT64_MAX;
  std::atomic<bool> answered_ = false;
  bool claimed_ = false;  // used by the thread that computes only
};

}  // namespace keel::serving

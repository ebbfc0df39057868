// RunLimit: how many threads of a pool run at once.
//
// A pool may have many threads because most of them wait for each other. If all of them took work,
// threads would be woken that add nothing but switches between them. So a thread that waits gives
// its place to another one, and when it continues, the next thread that is done with its work
// rests.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace keel::serving {

// Thread safe.
class RunLimit {
 public:
  explicit RunLimit(int limit) : limit_(limit) {}
  RunLimit(const RunLimit&) = delete;
  RunLimit& operator=(const RunLimit&) = delete;

  // Makes the calling thread one of the pool, and waits until it may run.
  void enter();
  // The calling thread leaves the pool.
  void leave();
  // Call it between pieces of work: waits while too many threads run.
  void rest_if_crowded() {
    if (running_.load(std::memory_order_relaxed) > limit_) rest();
  }
  // Lets all threads run, so that they can end.
  void close();

 private:
  friend class WaitingSection;
  void start_waiting();
  void stop_waiting();
  void rest();

  const int limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> running_ = 0;  // written under the lock
  bool closed_ = false;
};

// While it is alive, the calling thread waits for other threads and needs no place in its pool.
class WaitingSection {
 public:
  WaitingSection();
  ~WaitingSection();
  WaitingSection(const WaitingSection&) = delete;
  WaitingSection& operator=(const WaitingSection&) = delete;

 private:
  RunLimit* limit_;  // null: the thread belongs to no pool
};

}  // namespace keel::serving

// ThreadAffinity controls on which processor a thread wakes up.
//
// The kernel's scheduler may leave two threads that wake each other on one processor for many steps
// while another processor is idle. The thread that wakes another one can detect this and select the
// processor on which the other one wakes up. Once awake, that thread may run on all of its
// processors again.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace keel::distribute {

// Controls the affinity of the thread that calls update(). Other threads may call wake_on() while
// that thread sleeps.
class ThreadAffinity {
 public:
  static constexpr int kNowhere = -1;

  static int current();  // processor of this thread, or kNowhere if unknown
  static int allowed();  // number of processors this thread may run on; 0 if unknown

  // Called by the controlled thread when it has woken up. Restores its full affinity and records
  // its current processor.
  void update();
  // Returns the processor that was recorded last, or kNowhere before the first update().
  int processor() const { return processor_; }
  // Called by another thread while the controlled one sleeps. Makes it wake up on the first allowed
  // processor p for which suits(p) is true. Does nothing if there is none, or if the system call
  // fails.
  template <class Suits>
  void wake_on(const Suits& suits);

 private:
  bool read_allowed();
  bool narrow(int processor);

  pid_t thread_ = 0;  // 0 before the first update()
  int processor_ = kNowhere;
  bool is_narrow_ = false;  // the affinity is restricted to processor_
  cpu_set_t allowed_ = {};  // the thread's full affinity, valid if is_narrow_
};

template <class Suits>
void ThreadAffinity::wake_on(const Suits& suits) {
  if (is_narrow_ || !read_allowed()) return;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (!CPU_ISSET(p, &allowed_) || !suits(p)) continue;
    is_narrow_ = narrow(p);
    if (is_narrow_) processor_ = p;
    return;
  }
}

}  // namespace keel::distribute

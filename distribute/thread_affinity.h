// ThreadAffinity: on which processor a thread runs.
//
// Schedulers leave two threads that wake each other on one processor while another is idle, for
// many steps. Who wakes a thread may see that and have it wake up elsewhere; it may run on all of
// its processors again as soon as it is awake.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace keel::distribute {

class ThreadAffinity {
 public:
  static constexpr int kNowhere = -1;

  static int current();  // of this thread
  static int allowed();  // how many processors this thread may run on; 0: who knows

  // By the thread itself, awake: sees where it is.
  void look();
  // Where it was then; kNowhere before.
  int processor() const { return processor_; }
  // While the thread sleeps: it wakes up on the first processor that it may run on and that suits.
  // Without one, or where the system refuses, nothing changes.
  template <class Suits>
  void wake_on(const Suits& suits);

 private:
  bool read_allowed();
  bool narrow(int processor);

  pid_t thread_ = 0;  // 0 before look
  int processor_ = kNowhere;
  bool is_narrow_ = false;
  cpu_set_t allowed_ = {};  // where it may run, if it is narrow
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

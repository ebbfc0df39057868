#include "distribute/thread_placement.h"

#include <unistd.h>

namespace keel::distribute {

void ThreadPlacement::look() {
  if (thread_ == 0) thread_ = gettid();
  if (is_narrow_) {
    sched_setaffinity(thread_, sizeof(allowed_), &allowed_);
    is_narrow_ = false;
  }
  processor_ = sched_getcpu();
  if (processor_ < 0 || processor_ >= CPU_SETSIZE) processor_ = kNowhere;
}

bool ThreadPlacement::read_allowed() {
  return thread_ != 0 && sched_getaffinity(thread_, sizeof(allowed_), &allowed_) == 0;
}

bool ThreadPlacement::narrow(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  return sched_setaffinity(thread_, sizeof(only), &only) == 0;
}

}  // namespace keel::distribute

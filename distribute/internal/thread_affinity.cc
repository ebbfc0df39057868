#include <keel/distribute/internal/thread_affinity.h>

#include <unistd.h>

namespace keel::distribute {

int ThreadAffinity::current() {
  const int processor = sched_getcpu();
  return processor >= 0 && processor < CPU_SETSIZE ? processor : kNowhere;
}

int ThreadAffinity::allowed() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

void ThreadAffinity::update() {
  if (thread_ == 0) thread_ = gettid();
  if (is_narrow_) is_narrow_ = sched_setaffinity(thread_, sizeof(allowed_), &allowed_) != 0;
  processor_ = current();
}

bool ThreadAffinity::read_allowed() {
  return thread_ != 0 && sched_getaffinity(thread_, sizeof(allowed_), &allowed_) == 0;
}

bool ThreadAffinity::narrow(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  return sched_setaffinity(thread_, sizeof(only), &only) == 0;
}

}  // namespace keel::distribute

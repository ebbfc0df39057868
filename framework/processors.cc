#include "framework/processors.h"

#include <sched.h>

namespace keel {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  std::vector<int> out;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return out;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (CPU_ISSET(p, &set)) out.push_back(p);
  }
  return out;
}

void run_on(int thread, const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int p : processors) CPU_SET(p, &set);
  sched_setaffinity(thread, sizeof(set), &set);
}

}  // namespace

const std::vector<int>& processors() {
  static const std::vector<int> kAllowed = allowed();
  return kAllowed;
}

void run_on_processor(int thread, int processor) { run_on(thread, {processor}); }

void run_on_all_processors() { run_on(0, processors()); }

}  // namespace keel

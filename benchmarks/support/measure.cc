#include "benchmarks/support/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <dirent.h>
#include <limits>
#include <sched.h>
#include <sys/resource.h>
#include <thread>

namespace keel::bench {
namespace {

constexpr int kTries = 4;
// In longer slices, a preemption takes only a small part of the slice and most slices contain one.
constexpr double kLongSlice = 0.03;
constexpr double kPause = 0.25;  // as a fraction of the preceding slice
constexpr double kLongestPause = 0.5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// All threads of the process, because the peer has its own threads.
bool set_policy(int policy, int priority) {
  sched_param parameters = {};
  parameters.sched_priority = priority;
  DIR* threads = opendir("/proc/self/task");
  if (threads == nullptr) return false;
  bool permitted = true;
  while (const dirent* entry = readdir(threads)) {
    const int thread = std::atoi(entry->d_name);
    if (thread != 0) permitted &= sched_setscheduler(thread, policy, &parameters) == 0;
  }
  closedir(threads);
  return permitted;
}

// A slice of time without preemption by other processes, if the process is allowed to have one.
class Slice {
 public:
  Slice() : begin_(now()), real_time_(may_run_in_real_time()) {
    if (real_time_) set_policy(SCHED_RR, 1);
    preempted_ = preempted();
  }
  ~Slice() {
    if (!real_time_) return;
    set_policy(SCHED_OTHER, 0);
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::min(kLongestPause, kPause * (now() - begin_))));
  }
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;

  bool clean() const { return preempted() == preempted_; }

 private:
  static bool may_run_in_real_time() {
    static const bool kMay = [] {
      const bool permitted = set_policy(SCHED_RR, 1);
      set_policy(SCHED_OTHER, 0);
      return permitted;
    }();
    return kMay;
  }
  static long preempted() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
  }

  const double begin_;
  const bool real_time_;
  long preempted_ = 0;
};

void prepare(const Contender& contender, int calls) {
  if (contender.prepare) contender.prepare(calls);
}

// Returns the number of calls that fill a slice.
int calibrate(const Contender& contender, double seconds_per_slice) {
  prepare(contender, 2);
  contender.run();
  const Slice slice;
  const double begin = now();
  contender.run();
  const double once = std::max(1e-8, now() - begin);
  return static_cast<int>(std::clamp(seconds_per_slice / once, 1.0, 1e7));
}

double time_slice(const Contender& contender, int calls) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    prepare(contender, calls + 1);
    const Slice slice;
    contender.run();  // reload what the others and the pause have evicted from the caches
    const double begin = now();
    for (int call = 0; call < calls; ++call) contender.run();
    const double seconds = now() - begin;
    best = std::min(best, seconds / calls);
    if (seconds >= kLongSlice || slice.clean()) break;
  }
  return best;
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Timing summarize(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return {.median = quantile(seconds, 0.5),
          .p99 = quantile(seconds, 0.99),
          .p999 = quantile(seconds, 0.999),
          .least = quantile(seconds, 0)};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

double geometric_mean(const std::vector<double>& values) {
  double logarithms = 0;
  for (double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

double Comparison::ratio(size_t i, size_t j) const {
  std::vector<double> ratios(slices[i].size());
  std::ranges::transform(slices[i], slices[j], ratios.begin(), std::divides<>());
  return median(std::move(ratios));
}

Comparison compare(std::vector<Contender> contenders, const MeasureOptions& options) {
  std::vector<int> calls;
  for (const Contender& contender : contenders) {
    calls.push_back(calibrate(contender, options.seconds_per_slice));
  }
  Comparison out;
  out.slices.resize(contenders.size());
  for (int turn = 0; turn < options.turns; ++turn) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      out.slices[i].push_back(time_slice(contenders[i], calls[i]));
    }
  }
  for (const auto& slices : out.slices) out.timings.push_back(summarize(slices));
  return out;
}

Comparison latencies(std::vector<Contender> contenders, int calls) {
  constexpr int kCallsOfRun = 25, kWarmUp = 3;
  std::vector<std::vector<double>> seconds(contenders.size());
  Comparison out;
  out.slices.resize(contenders.size());
  for (int done = 0; done < calls; done += kCallsOfRun) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      std::vector<double> run(std::min(kCallsOfRun, calls - done));
      for (int tries = 0; tries < kTries; ++tries) {
        prepare(contenders[i], kWarmUp + static_cast<int>(run.size()));
        const Slice slice;
        for (int warm_up = 0; warm_up < kWarmUp; ++warm_up) contenders[i].run();
        for (double& time : run) {
          const double begin = now();
          contenders[i].run();
          time = now() - begin;
        }
        if (slice.clean()) break;
      }
      seconds[i].insert(seconds[i].end(), run.begin(), run.end());
      out.slices[i].push_back(median(std::move(run)));
    }
  }
  for (auto& of_contender : seconds) out.timings.push_back(summarize(std::move(of_contender)));
  return out;
}

}  // namespace keel::bench

// Timing contenders side by side: they take turns in short slices of time, so what slows the
// machine for a while slows all of them, and ratios of the slices of one turn stay.
//
// Slices run in the real-time class where the process may, and are followed by a pause;
// a short one in which the kernel took a processor away all the same is done again, a few times.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace keel::bench {

struct Contender {
  std::string name;
  std::function<void()> run;  // one call of the work
  // Before each slice, outside of what is timed: makes what so many calls will use up.
  std::function<void(int calls)> prepare = {};
};

struct Timing {  // seconds per call
  double median = 0, p99 = 0, p999 = 0, least = 0;
};
Timing summarize(std::vector<double> seconds);
double median(std::vector<double> values);
double geometric_mean(const std::vector<double>& values);  // NaN if there are none

struct MeasureOptions {
  double seconds_per_slice = 0.01;
  int turns = 15;
};

struct Comparison {
  std::vector<Timing> timings;              // by contender
  std::vector<std::vector<double>> slices;  // by contender and turn, seconds per call

  // The median over the turns of i's time by j's: how many times faster j is.
  double ratio(size_t i, size_t j) const;
};

// Each slice repeats its work for about seconds_per_slice, once at least.
Comparison compare(std::vector<Contender> contenders, const MeasureOptions& options = {});

// Of `calls` single calls of each, in runs of some that take turns: a run is a turn, and its median
// stands in `slices`.
Comparison latencies(std::vector<Contender> contenders, int calls);

}  // namespace keel::bench

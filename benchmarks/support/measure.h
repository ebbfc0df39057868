// Times contenders in alternation, in short slices of time. A temporary slowdown of the machine
// affects all contenders, and the ratios of the slices of one turn do not change.
//
// Slices run in the real-time scheduling class if the process is allowed to use it, and are
// followed by a pause. A short slice in which the kernel preempted a thread nevertheless is
// repeated a few times.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace keel::bench {

struct Contender {
  std::string name;
  std::function<void()> run;  // one call of the work
  // Runs before each slice, outside of the timed part: creates the input for the given number of
  // calls.
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

  // Returns the median over the turns of i's time divided by j's time: the speedup of j over i.
  double ratio(size_t i, size_t j) const;
};

// Measures contenders. Each slice repeats its work for about seconds_per_slice, at least once.
Comparison compare(std::vector<Contender> contenders, const MeasureOptions& options = {});

// Measures `calls` single calls of each contender in alternating runs of several calls. A run is a
// turn, and `slices` contains its median.
Comparison latencies(std::vector<Contender> contenders, int calls);

}  // namespace keel::bench

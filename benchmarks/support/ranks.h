// Benchmarks that start themselves as several MPI ranks.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace keel::bench {

// Returns the path of this program.
std::string own_path();

// The output of a job.
using RankOutput = std::unique_ptr<FILE, int (*)(FILE*)>;
// Starts a program in several ranks of this machine.
RankOutput start_ranks(const std::string& program, int ranks);

// Runs steps. Returns the median of their times in seconds.
double median_step(int steps, const std::function<void()>& step);
// Prints the time of a step, for step_time_of().
void print_step_time(double seconds);
// Waits for the end of a job. Returns the milliseconds of a step that it has printed, or nothing if
// the ranks could not be started.
std::optional<double> step_time_of(const RankOutput& output);
// Starts a job and waits for its end.
std::optional<double> step_time_of_ranks(const std::string& program, int ranks);

}  // namespace keel::bench

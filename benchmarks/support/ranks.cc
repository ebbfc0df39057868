#include "benchmarks/support/ranks.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <unistd.h>
#include <utility>
#include <vector>

#include <keel/framework/base/errors.h>

#include "benchmarks/support/measure.h"

namespace keel::bench {
namespace {

constexpr char kMark[] = "milliseconds_per_step ";

}  // namespace

std::string own_path() {
  std::array<char, 4096> path = {};
  return readlink("/proc/self/exe", path.data(), path.size() - 1) > 0 ? path.data() : "";
}

RankOutput start_ranks(const std::string& program, int ranks) {
  const std::string command = str("mpirun --allow-run-as-root --oversubscribe --bind-to none -n ",
                                  ranks, " '", program, "' 2>&1");
  return {popen(command.c_str(), "r"), pclose};
}

double median_step(int steps, const std::function<void()>& step) {
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    seconds.push_back(time.count());
  }
  return median(std::move(seconds));
}

void print_step_time(double seconds) { std::cout << kMark << 1e3 * seconds << '\n' << std::flush; }

std::optional<double> step_time_of(const RankOutput& output) {
  if (output == nullptr) return {};
  std::array<char, 512> line;
  std::optional<double> out;
  while (std::fgets(line.data(), line.size(), output.get()) != nullptr) {
    if (std::strncmp(line.data(), kMark, sizeof(kMark) - 1) == 0) {
      out = std::strtod(line.data() + sizeof(kMark) - 1, nullptr);
    }
  }
  return out;
}

std::optional<double> step_time_of_ranks(const std::string& program, int ranks) {
  return step_time_of(start_ranks(program, ranks));
}

}  // namespace keel::bench

// Weak scaling over processes: two MPI ranks against one, each with a replica of its own and as
// many samples for it, and what one rank sends in a step.
//
// The program starts itself under mpirun, with one rank and with two in turn, on one worker each;
// the share is how much of the samples per second of a rank alone each of two has. Both are on this
// machine: they share its memory and caches, and their messages go through it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>

#include "benchmarks/models/click_trainer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"
#include "distribute/process_group.h"
#include "framework/errors.h"
#include "framework/parallel.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamplesOfReplica = 2048;
constexpr int kBatches = 8;
constexpr char kRank[] = "KEEL_BENCH_SCALING_STEPS";  // set for the processes that measure
constexpr char kMark[] = "milliseconds_per_step ";

// One rank: the median step, printed by the first.
int measure_steps(int steps) {
  set_num_workers(1);
  const int ranks = distribute::processes().size();
  const ClickWork work = {.dim = 16, .rows = criteo_table_sizes(), .adagrad = true};
  const auto batches = make_click_batches(work, kBatches, kSamplesOfReplica * ranks, 5);
  ClickTrainer trainer(work, batches, {.hosts = ranks, .cores = 1});
  std::vector<double> seconds;
  for (int step = 0; step < steps + kBatches; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    trainer.train(step % kBatches);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (step >= kBatches) seconds.push_back(time.count());
  }
  if (distribute::processes().rank() == 0) {
    std::cout << kMark << 1e3 * median(std::move(seconds)) << std::endl;
  }
  return 0;
}

// Milliseconds of a step of that many ranks; nothing if they cannot be started.
std::optional<double> run_ranks(const std::string& program, int ranks) {
  const std::string command = str("mpirun --allow-run-as-root --oversubscribe --bind-to none -n ",
                                  ranks, " '", program, "' 2>&1");
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
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

std::string own_path() {
  std::array<char, 4096> path = {};
  return readlink("/proc/self/exe", path.data(), path.size() - 1) > 0 ? path.data() : "";
}

int run(const Options& options) {
  Report report(options, "bench_scaling");
  const int turns = options.quick ? 3 : 7;
  setenv(kRank, options.quick ? "60" : "150", 1);
  std::vector<double> alone, together, shares;
  for (int turn = 0; turn < turns; ++turn) {
    const auto one = run_ranks(own_path(), 1);
    const auto two = run_ranks(own_path(), 2);
    if (!one || !two) {
      report.note("mpirun could not start the processes: not measured");
      return report.finish();
    }
    alone.push_back(*one);
    together.push_back(*two);
    shares.push_back(*one / *two);
  }
  report.add({.op = "dlrm_d16_adagrad, 2 ranks of 1 replica",
              .dim = 16,
              .optimizer = "adagrad",
              .threads = 1,
              .value = median(shares),
              .unit = "of one rank's speed",
              .more = {{"ms_1_rank", median(alone)}, {"ms_2_ranks", median(together)}}});
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  if (const char* steps = std::getenv(keel::bench::kRank)) {
    return keel::bench::measure_steps(std::max(1, std::atoi(steps)));
  }
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_scaling", "Weak scaling of DLRM training over MPI ranks."));
}

// Weak scaling over processes: compares two MPI ranks with one, each with its own replica and the
// same number of samples per rank, and measures the bytes that one rank sends per step.
//
// The program starts itself under mpirun with one rank and with two ranks in turn, with one worker
// per rank. The result is the samples per second of each of two ranks divided by those of a single
// rank. Both ranks are on this machine: they share its memory and caches, and exchange messages
// through its memory. To measure the cost of sharing alone, the program also starts two independent
// jobs of one rank at the same time. Two ranks cannot be faster than these copies, which are
// therefore the limit.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>

#include "benchmarks/models/click_trainer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/ranks.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamplesOfReplica = 2048;
constexpr int kBatches = 8;
constexpr int kMostStepsToWait = 1000;
constexpr char kRank[] = "KEEL_BENCH_SCALING_STEPS";  // set for the measuring processes
constexpr char kRendezvous[] =
    "KEEL_BENCH_SCALING_RENDEZVOUS";  // set for copies: a file to which both append

// A file in which two copies record their progress.
class Rendezvous {
 public:
  explicit Rendezvous(const char* path) : path_(path == nullptr ? "" : path) {}

  // Records that one of the copies has reached its next stage, the first or the second.
  void arrive() {
    if (!path_.empty()) std::ofstream(path_, std::ios::app) << '.' << std::flush;
    ++stage_;
  }
  // Returns true if both copies have reached the stage. Always true if there is no other copy.
  bool complete() const {
    std::error_code none;
    return path_.empty() || std::filesystem::file_size(path_, none) >= 2 * stage_;
  }

 private:
  const std::string path_;
  uintmax_t stage_ = 0;
};

// Measures one rank and prints the median step on rank 0. A copy continues to run steps until the
// other copy is ready, and at the end until the other copy has measured all its steps.
int measure_steps(int steps) {
  set_num_workers(1);
  const int ranks = distribute::processes().size();
  const ClickWork work = {.dim = 16, .rows = criteo_table_sizes(), .adagrad = true};
  const auto batches = make_click_batches(work, kBatches, kSamplesOfReplica * ranks, 5);
  ClickTrainer trainer(work, batches, {.hosts = ranks, .cores = 1});
  Rendezvous rendezvous(std::getenv(kRendezvous));
  int next = 0;
  const auto step = [&] { trainer.train(next++ % kBatches); };
  const auto step_until_complete = [&] {
    rendezvous.arrive();
    for (int more = 0; !rendezvous.complete(); ++more) {
      if (more == kMostStepsToWait) throw RuntimeError("bench_scaling: the other copy is gone");
      step();
    }
  };
  for (int i = 0; i < kBatches; ++i) step();
  step_until_complete();
  const double seconds = median_step(steps, step);
  step_until_complete();
  if (distribute::processes().rank() == 0) print_step_time(seconds);
  return 0;
}

// Returns the mean of two jobs of one rank that run at the same time.
std::optional<double> run_copies(const std::string& program) {
  const std::string rendezvous =
      (std::filesystem::temp_directory_path() / str("keel_bench_scaling_", getpid())).string();
  std::filesystem::remove(rendezvous);
  setenv(kRendezvous, rendezvous.c_str(), 1);
  const RankOutput first = start_ranks(program, 1);
  const RankOutput second = start_ranks(program, 1);
  unsetenv(kRendezvous);
  const auto a = step_time_of(first);
  const auto b = step_time_of(second);
  std::filesystem::remove(rendezvous);
  if (!a || !b) return {};
  return (*a + *b) / 2;
}

int run(const Options& options) {
  Report report(options, "bench_scaling");
  const int turns = options.quick ? 3 : 7;
  setenv(kRank, options.quick ? "40" : "150", 1);
  std::vector<double> alone, together, apart, shares, limits, of_limit;
  for (int turn = 0; turn < turns; ++turn) {
    const auto one = step_time_of_ranks(own_path(), 1);
    const auto two = step_time_of_ranks(own_path(), 2);
    const auto copies = run_copies(own_path());
    if (!one || !two || !copies) {
      report.note("mpirun could not start the processes: not measured");
      return report.finish();
    }
    alone.push_back(*one);
    together.push_back(*two);
    apart.push_back(*copies);
    shares.push_back(*one / *two);
    limits.push_back(*one / *copies);
    of_limit.push_back(*copies / *two);
  }
  report.add({.op = "dlrm_d16_adagrad, 2 ranks of 1 replica",
              .dim = 16,
              .optimizer = "adagrad",
              .threads = 1,
              .value = median(shares),
              .unit = "of one rank's speed",
              .ratio_to_limit = median(of_limit),
              .more = {{"limit_2_independent_copies", median(limits)},
                       {"ms_1_rank", median(alone)},
                       {"ms_2_ranks", median(together)},
                       {"ms_2_independent_copies", median(apart)}}});
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  if (const char* steps = std::getenv(keel::bench::kRank)) {
    return keel::bench::measure_steps(std::max(1, std::atoi(steps)));
  }
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_scaling",
      "Weak scaling of DLRM training over MPI ranks: the speed of each of two, of that "
      "of one alone. The\nlimit is the speed of each of two independent jobs of one rank at "
      "once."));
}

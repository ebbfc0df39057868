#include "benchmarks/dynamic/rank_speed.h"

#include <cstdlib>
#include <string>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/parallel.h>

#include "benchmarks/models/click_trainer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/ranks.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamplesOfReplica = 2048;
constexpr int kBatches = 8;
// Set for the measuring processes: the number of steps, the largest table, and whether tables are
// dynamic.
constexpr char kSteps[] = "KEEL_BENCH_DYNAMIC_STEPS";
constexpr char kRows[] = "KEEL_BENCH_DYNAMIC_ROWS";
constexpr char kDynamic[] = "KEEL_BENCH_DYNAMIC_TABLES";
// Static tables take most of the time to start a job.
constexpr int64_t kMostRows = 1'000'000, kMostRowsIfQuick = 100'000;

int64_t number_in(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

void measure_steps_of_rank(int steps, bool dynamic) {
  set_num_workers(1);
  const int ranks = distribute::processes().size();
  const int64_t most_rows = number_in(kRows, kMostRows);
  ClickWork work = {.dim = 16, .rows = criteo_table_sizes(most_rows), .adagrad = true};
  if (dynamic) work.dynamic = DynamicVocabulary{};
  const auto batches = make_click_batches(work, kBatches, kSamplesOfReplica * ranks, 5);
  ClickTrainer trainer(work, batches, {.hosts = ranks, .cores = 1});
  int next = 0;
  const auto step = [&] { trainer.train(next++ % kBatches); };
  for (int i = 0; i < 2 * kBatches; ++i) step();  // then all ids are known
  const double seconds = median_step(steps, step);
  if (distribute::processes().rank() == 0) print_step_time(seconds);
}

// Returns the speed of two ranks over one, or nothing if the ranks could not be started.
std::optional<double> share_of_one_rank(bool dynamic, std::vector<double>& one_rank,
                                        std::vector<double>& two_ranks) {
  setenv(kDynamic, dynamic ? "1" : "0", 1);
  const auto one = step_time_of_ranks(own_path(), 1);
  const auto two = step_time_of_ranks(own_path(), 2);
  if (!one || !two) return {};
  one_rank.push_back(*one);
  two_ranks.push_back(*two);
  return *one / *two;
}

}  // namespace

std::optional<int> measure_as_rank() {
  const int64_t steps = number_in(kSteps, 0);
  if (steps <= 0) return {};
  measure_steps_of_rank(static_cast<int>(steps), number_in(kDynamic, 0) == 1);
  return 0;
}

void measure_ranks(const Options& options, Report& report) {
  if (!options.wants("2 ranks")) return;
  setenv(kSteps, options.quick ? "24" : "150", 1);
  if (options.quick) setenv(kRows, std::to_string(kMostRowsIfQuick).c_str(), 1);
  std::vector<double> ratios, one_dynamic, two_dynamic, one_static, two_static;
  for (int turn = 0; turn < (options.quick ? 2 : 7); ++turn) {
    const auto dynamic = share_of_one_rank(true, one_dynamic, two_dynamic);
    const auto fixed = share_of_one_rank(false, one_static, two_static);
    if (!dynamic || !fixed) {
      report.note("mpirun could not start the processes: 2 ranks are not measured");
      return;
    }
    ratios.push_back(*dynamic / *fixed);
  }
  unsetenv(kSteps);
  unsetenv(kRows);
  report.add({.op = "2 ranks",
              .dim = 16,
              .optimizer = "adagrad",
              .threads = 1,
              .value = median(ratios),
              .unit = "of static scaling",
              .more = {{"dynamic_ms_1_rank", median(one_dynamic)},
                       {"dynamic_ms_2_ranks", median(two_dynamic)},
                       {"static_ms_1_rank", median(one_static)},
                       {"static_ms_2_ranks", median(two_static)}}});
}

}  // namespace keel::bench

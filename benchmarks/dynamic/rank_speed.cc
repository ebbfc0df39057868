#include "benchmarks/dynamic/rank_speed.h"

#include <cstdlib>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/parallel.h>

#include "benchmarks/models/click_trainer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/ranks.h"

namespace keel::bench {
namespace {

// What a job measures.
struct RankWork {
  int steps, turns;
  int64_t samples;    // of a replica
  int64_t most_rows;  // of a table
};
constexpr RankWork kFull = {.steps = 150, .turns = 7, .samples = 2048, .most_rows = 1'000'000};
// The 8 jobs end within a minute.
constexpr RankWork kQuick = {.steps = 24, .turns = 2, .samples = 768, .most_rows = 100'000};
constexpr int kBatches = 8;
// Set for the measuring processes: 1 for kQuick or 0 for kFull, and whether tables are dynamic.
constexpr char kIsQuick[] = "KEEL_BENCH_DYNAMIC_QUICK";
constexpr char kDynamic[] = "KEEL_BENCH_DYNAMIC_TABLES";

void measure_steps_of_rank(const RankWork& of, bool dynamic) {
  set_num_workers(1);
  const int ranks = distribute::processes().size();
  ClickWork work = {.dim = 16, .rows = criteo_table_sizes(of.most_rows), .adagrad = true};
  if (dynamic) work.dynamic = DynamicVocabulary{};
  const auto batches = make_click_batches(work, kBatches, of.samples * ranks, 5);
  ClickTrainer trainer(work, batches, {.hosts = ranks, .cores = 1});
  int next = 0;
  const auto step = [&] { trainer.train(next++ % kBatches); };
  for (int i = 0; i < 2 * kBatches; ++i) step();  // then all ids are known
  const double seconds = median_step(of.steps, step);
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
  const char* const is_quick = std::getenv(kIsQuick);
  if (is_quick == nullptr) return {};
  const char* const dynamic = std::getenv(kDynamic);
  measure_steps_of_rank(*is_quick == '1' ? kQuick : kFull, dynamic != nullptr && *dynamic == '1');
  return 0;
}

void measure_ranks(const Options& options, Report& report) {
  if (!options.wants("2 ranks")) return;
  setenv(kIsQuick, options.quick ? "1" : "0", 1);
  std::vector<double> ratios, one_dynamic, two_dynamic, one_static, two_static;
  for (int turn = 0; turn < (options.quick ? kQuick : kFull).turns; ++turn) {
    const auto dynamic = share_of_one_rank(true, one_dynamic, two_dynamic);
    const auto fixed = share_of_one_rank(false, one_static, two_static);
    if (!dynamic || !fixed) {
      report.note("mpirun could not start the processes: 2 ranks are not measured");
      return;
    }
    ratios.push_back(*dynamic / *fixed);
  }
  unsetenv(kIsQuick);
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

// Measures the cost of the fixed order of sums, which makes results have the same bits in every
// run: DLRM with several replicas, compared with the same sums in a free order.
//
// The parts of a step with sums over replicas, those of tables and of dense gradients, run
// separately in both orders (determinism/). Their difference is compared with a whole step of the
// same replicas, as in bench_train. In the free order there are no data races, but results differ
// by rounding. The fixed order of tables is the complete engine including its checks, so the
// measured cost is an upper bound. If the fixed order is faster, which is possible for dense
// gradients, the difference counts as negative.
#include <algorithm>

#include "benchmarks/determinism/dense_steps.h"
#include "benchmarks/determinism/table_steps.h"
#include "benchmarks/models/click_trainer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamples = 2048;
constexpr int64_t kIds = 64 * kSamples;  // per column, in all batches
constexpr int kStepsToCheck = 3;
constexpr double kAllowedByRounding = 1e-4;

template <class Steps>
std::function<void()> in_turn(Steps& steps, size_t batches) {
  return [&steps, batches, next = size_t{0}]() mutable {
    steps.step(static_cast<int>(next++ % batches));
  };
}

class Case {
 public:
  Case(const ClickWork& work, const std::vector<ClickBatch>& batches, int replicas)
      : batches_(batches.size()),
        fixed_(work, batches, replicas, Order::kFixed),
        free_(work, batches, replicas, Order::kFree),
        dense_fixed_(work, replicas, Order::kFixed),
        dense_free_(work, replicas, Order::kFree),
        trainer_(work, batches, {.cores = replicas}) {}

  void check(const std::string& name, Report& report) {
    for (int i = 0; i < kStepsToCheck; ++i) {
      fixed_.step(i);
      free_.step(i);
      dense_fixed_.step();
      dense_free_.step();
    }
    const auto compare_with = [&](const char* what, const std::vector<float>& ours,
                                  const std::vector<float>& others) {
      report.check(name + what, relative_difference(ours.data(), others.data(), std::ssize(ours)),
                   kAllowedByRounding);
    };
    compare_with(": tables", fixed_.some_rows(), free_.some_rows());
    compare_with(": dense", dense_fixed_.first_variable(), dense_free_.first_variable());
  }

  Comparison run(const MeasureOptions& options) {
    return compare({{"step", [this] { trainer_.train(next_++ % static_cast<int>(batches_)); }},
                    {"tables fixed", in_turn(fixed_, batches_)},
                    {"tables free", in_turn(free_, batches_)},
                    {"dense fixed", [this] { dense_fixed_.step(); }},
                    {"dense free", [this] { dense_free_.step(); }}},
                   options);
  }

 private:
  const size_t batches_;
  TableSteps fixed_, free_;
  DenseSteps dense_fixed_, dense_free_;
  ClickTrainer trainer_;
  int next_ = 0;
};

enum Place { kStep, kTablesFixed, kTablesFree, kDenseFixed, kDenseFree };

// For a whole step: the median over the turns of its time divided by its time in free order.
double ratio_of_step(const Comparison& times) {
  std::vector<double> ratios;
  for (size_t turn = 0; turn < times.slices[kStep].size(); ++turn) {
    const auto at = [&](Place place) { return times.slices[place][turn]; };
    const double cost = at(kTablesFixed) - at(kTablesFree) + at(kDenseFixed) - at(kDenseFree);
    ratios.push_back(at(kStep) / (at(kStep) - cost));
  }
  return median(std::move(ratios));
}

void run_case(const Options& options, const std::string& name, const ClickWork& work,
              const std::vector<ClickBatch>& batches, int replicas, Report& report) {
  Case of(work, batches, replicas);
  of.check(name, report);
  const Comparison times =
      of.run({.seconds_per_slice = options.quick ? 0.03 : 0.1, .turns = options.quick ? 9 : 15});
  const auto ms = [&](Place place) { return times.timings[place].median * 1e3; };
  report.add({.op = name,
              .dim = work.dim,
              .optimizer = work.adagrad ? "adagrad" : "sgd",
              .threads = options.threads,
              .value = ratio_of_step(times),
              .unit = "x a step in free order",
              .more = {{"tables_fixed_to_free", times.ratio(kTablesFixed, kTablesFree)},
                       {"dense_fixed_to_free", times.ratio(kDenseFixed, kDenseFree)},
                       {"step_ms", ms(kStep)},
                       {"tables_fixed_ms", ms(kTablesFixed)},
                       {"tables_free_ms", ms(kTablesFree)},
                       {"dense_fixed_ms", ms(kDenseFixed)},
                       {"dense_free_ms", ms(kDenseFree)}}});
}

int run(const Options& options) {
  Report report(options, "bench_determinism");
  for (const int64_t bag : {1, 10}) {
    for (const bool adagrad : {false, true}) {
      if (options.quick && bag > 1 && !adagrad) continue;
      const ClickWork work = {
          .dim = 16, .rows = criteo_table_sizes(), .bag = bag, .adagrad = adagrad};
      std::vector<ClickBatch> batches;
      for (const int replicas : {2, 4}) {
        const std::string name = std::string(bag > 1 ? "dlrm_multi_hot_d16_" : "dlrm_d16_") +
                                 (adagrad ? "adagrad" : "sgd") + ", " + std::to_string(replicas) +
                                 " replicas";
        if (!options.wants(name)) continue;
        if (batches.empty()) {
          const auto count = static_cast<int>(std::max<int64_t>(16, kIds / (kSamples * bag)));
          batches = make_click_batches(work, count, kSamples, 5);
        }
        run_case(options, name, work, batches, replicas, report);
      }
    }
  }
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_determinism",
      "The cost of sums in a fixed order: a training step of DLRM with 2 and 4 replicas against "
      "one "
      "whose\nsums over positions and replicas come in any order. libtorch is not compared: both "
      "are ours."));
}

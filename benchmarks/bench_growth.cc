// Measures how the time of a training step grows with the vocabulary, the batch, the number of
// tables and the number of replicas, and the memory per row.
//
// No batch is used twice: each is drawn right before its slice, outside of the timed part. The
// vocabulary should add only cache misses and the cost of more distinct rows per batch
// ("rows_times_2e7" is the factor). Keras's Adam and FTRL change every row in every step.
// "adam_lazy_rows" computes the same values but updates only rows that are read: the missed updates
// of a row are part of the step. libtorch runs its sparse steps on the same batches ("libtorch" is
// its growth). It has no counterpart to exact Adam and FTRL on large tables.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <unistd.h>

#include <keel/framework/base/errors.h>

#include "benchmarks/growth/steps.h"
#include "benchmarks/peer/peer.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Returns a label such as "256" or "2e7".
std::string short_number(double value) {
  char text[32];
  const int zeros = static_cast<int>(std::floor(std::log10(value)));
  const double digits = value / std::pow(10.0, zeros);
  if (zeros < 4 || digits != std::floor(digits)) {
    std::snprintf(text, sizeof text, "%.0f", value);
  } else {
    std::snprintf(text, sizeof text, "%.0fe%d", digits, zeros);
  }
  return text;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), report_(options, "bench_growth") {}

  int run() {
    set_peer_threads(options_.threads);
    by_vocabulary();
    by(&GrowthSetting::samples, "batch", {256, 1024, 4096, 16384}, kPerSample);
    by(&GrowthSetting::tables, "tables", {1, 4, 16, 64}, kPerTable);
    by(&GrowthSetting::replicas, "replicas", {1, 2, 4, 8, 16}, kPerStep);
    memory();
    return report_.finish();
  }

 private:
  // This quantity is constant if the step time is proportional to the varied quantity.
  enum Unit { kPerStep, kPerSample, kPerTable };

  std::vector<std::pair<std::string, std::string>> cases() const {
    if (options_.quick) {
      return {{"tpu", "sgd"}, {"tpu", "adagrad"}, {"cpu", "sgd"}, {"cpu", "adam_lazy_rows"}};
    }
    return {{"tpu", "sgd"},           {"tpu", "adagrad"},
            {"tpu", "adam"},          {"tpu", "ftrl"},
            {"cpu", "sgd"},           {"cpu", "adagrad"},
            {"cpu", "adam"},          {"cpu", "adam_lazy_rows"},
            {"cpu", "adam_replayed"}, {"cpu", "ftrl"},
            {"cpu", "ftrl_lazy_rows"}};
  }

  // Adam and FTRL as Keras defines them write the whole table in each step, so use small tables
  // only.
  static bool moves_all_rows(const GrowthSetting& s) {
    return s.strategy == "cpu" && (s.optimizer == "adam" || s.optimizer == "ftrl");
  }

  void by_vocabulary() {
    for (const auto& [strategy, optimizer] : cases()) {
      // One replica per core.
      const GrowthSetting setting = {
          .strategy = strategy, .optimizer = optimizer, .replicas = options_.threads};
      const std::string name = str("vocabulary_", strategy, "_", optimizer);
      if (!options_.wants(name)) continue;
      std::vector<int64_t> vocabularies = {10'000, 100'000, 1'000'000, 20'000'000};
      if (options_.quick) vocabularies = {10'000, 20'000'000};
      if (moves_all_rows(setting)) vocabularies.pop_back();
      std::vector<GrowthSetting> settings;
      for (int64_t vocabulary : vocabularies) {
        settings.push_back(setting);
        settings.back().vocabulary = vocabulary;
      }
      const std::vector<double> numbers(vocabularies.begin(), vocabularies.end());
      compare_settings(name, settings, numbers, kPerStep);
    }
  }

  template <class T>
  void by(T GrowthSetting::* what, const char* name, std::vector<T> values, Unit unit) {
    if (!options_.wants(name)) return;
    if (options_.quick) values = {values.front(), values.back()};
    std::vector<GrowthSetting> settings;
    for (T value : values) {
      GrowthSetting& setting = settings.emplace_back();
      setting.optimizer = "adagrad";
      if (unit == kPerTable) setting.vocabulary = 100'000;
      setting.*what = value;
    }
    compare_settings(name, settings, {values.begin(), values.end()}, unit);
  }

  // Measure all settings in alternation, so that a temporary slowdown of the machine affects all of
  // them.
  void compare_settings(const std::string& name, const std::vector<GrowthSetting>& settings,
                        const std::vector<double>& values, Unit unit) {
    std::vector<std::unique_ptr<GrowthSteps>> all;
    for (const GrowthSetting& setting : settings) all.push_back(make_growth_steps(setting));
    if (settings.front().vocabulary != settings.back().vocabulary) {
      for (const GrowthSetting& setting : {settings.front(), settings.back()}) {
        if (auto peer = make_growth_steps_of_peer(setting)) all.push_back(std::move(peer));
      }
    }
    std::vector<Contender> contenders;
    for (const auto& made : all) {
      GrowthSteps* const steps = made.get();
      contenders.push_back({"", [steps] { steps->step(); }, [steps](int n) { steps->prepare(n); }});
    }
    const Comparison times =
        compare(contenders, {.seconds_per_slice = 0.03, .turns = options_.quick ? 7 : 15});
    const size_t last = settings.size() - 1;
    const auto units = [&](size_t i) { return unit == kPerStep ? 1.0 : values[i]; };
    Result result = {
        .op = name,
        .dim = kGrowthDim,
        .optimizer = settings[0].optimizer,
        .threads = options_.threads,
        .value = times.ratio(last, 0) * units(0) / units(last),
        .unit = "x from " + short_number(values[0]) + " to " + short_number(values[last]),
        .labels = {{"strategy", settings[0].strategy}}};
    const char* const of_what[] = {"ms", "us_per_sample", "ms_per_table"};
    for (size_t i = 0; i < settings.size(); ++i) {
      const double ms = times.timings[i].median * 1e3 / units(i);
      result.more.emplace_back(std::string(of_what[unit]) + "_" + short_number(values[i]),
                               unit == kPerSample ? ms * 1e3 : ms);
      if (settings[i].vocabulary == settings[0].vocabulary) continue;
      result.more.emplace_back("rows_times_" + short_number(values[i]),
                               static_cast<double>(rows_of_batch(settings[i])) /
                                   static_cast<double>(rows_of_batch(settings[0])));
    }
    if (all.size() > settings.size()) {
      result.ratio_to_libtorch = times.ratio(last + 2, last);
      result.more.emplace_back("libtorch", times.ratio(last + 2, last + 1));
      result.more.emplace_back("libtorch_ms_" + short_number(values[last]),
                               times.timings[last + 2].median * 1e3);
    }
    report_.add(result);
  }

  // Measure the resident memory that a large table adds during training, and the share of weights
  // and slots in it.
  void memory() {
    const int64_t rows = options_.quick ? 4'000'000 : 20'000'000;
    for (const auto& [strategy, optimizer] : cases()) {
      const std::string name = str("memory_", strategy, "_", optimizer);
      if (!options_.wants(name)) continue;
      const int64_t before = resident_bytes();
      const GrowthSetting setting = {
          .strategy = strategy, .optimizer = optimizer, .vocabulary = rows};
      const auto steps = make_growth_steps(setting);
      const double per_row =
          static_cast<double>(resident_bytes() - before) / static_cast<double>(rows);
      const double needed = (1 + setting.slots()) * kGrowthDim * sizeof(float);
      report_.add({.op = name,
                   .dim = kGrowthDim,
                   .optimizer = optimizer,
                   .threads = options_.threads,
                   .value = per_row,
                   .unit = "bytes/row",
                   .ratio_to_limit = needed / per_row,
                   .labels = {{"strategy", strategy}}});
    }
  }

  const Options options_;
  Report report_;
};

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  const keel::bench::Options options = keel::bench::parse_options(
      argc, argv, "bench_growth",
      "Growth of the time of a training step with vocabulary, batch, tables and replicas.");
  return keel::bench::Bench(options).run();
}

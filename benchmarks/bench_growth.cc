// How the time of a training step grows: with the vocabulary, the batch, the number of tables and
// the number of replicas; and the memory that a row takes.
//
// Tables of 16 columns, bags of 10 ids by Zipf's law, summed; a step is lookup, gradient and
// update. No batch comes twice: each is drawn, outside of what is timed, right before its slice.
// Steps are timed after some millions of ids, so that all pages are there, common rows are met
// every few steps, rare ones come back after hundreds of them, and of a large table part of each
// batch is met for the first time. Of the vocabulary only cache misses should be left, and that a
// batch names more different rows ("rows_times_2e7" says how many times as many). Keras's Adam
// and FTRL move every row in every step; "adam_lazy_rows" gives the same values and moves those
// that somebody looks at: what a row has missed since it was last met is part of its step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <unistd.h>

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"
#include "distribute/tpu_strategy.h"
#include "layers/embedding/tpu_embedding.h"
#include "optimizers/adagrad.h"
#include "optimizers/adam.h"
#include "optimizers/ftrl.h"
#include "optimizers/sgd.h"

namespace keel::bench {
namespace {

constexpr int64_t kDim = 16;
constexpr int64_t kBag = 10;
constexpr int64_t kIdsBefore = 5'000'000;  // of each setting, before it is timed
constexpr int kLeastStepsBefore = 8;

struct Setting {
  std::string strategy = "tpu";
  std::string optimizer = "sgd";
  int64_t vocabulary = 1'000'000;  // of each table
  int64_t samples = 2048;
  int tables = 1;
  int replicas = 1;  // of the tpu strategy
};

// Slots of a row, of as many columns as the table.
int slots_of(const std::string& optimizer) {
  if (optimizer == "sgd") return 0;
  return optimizer == "adagrad" ? 1 : 2;
}

OptimizerHandle make_optimizer(distribute::Strategy& strategy, const std::string& name) {
  const auto scope = strategy.scope();
  if (name == "sgd") return optimizers::SGD({.learning_rate = 0.01});
  if (name == "adagrad") return optimizers::Adagrad({.learning_rate = 0.01});
  if (name == "adam") return optimizers::Adam({.learning_rate = 0.01});
  if (name == "ftrl") return optimizers::Ftrl({.learning_rate = 0.01});
  if (name == "adam_lazy_rows") {
    return optimizers::Adam({.learning_rate = 0.01, .lazy_rows = LazyRows::kClosedForm});
  }
  if (name == "ftrl_lazy_rows") {
    return optimizers::Ftrl({.learning_rate = 0.01, .lazy_rows = LazyRows::kClosedForm});
  }
  if (name == "adam_replayed") {
    return optimizers::Adam({.learning_rate = 0.01, .lazy_rows = LazyRows::kReplay});
  }
  throw ValueError("bench_growth: no optimizer '", name, "'");
}

Tensors bags_of(const BagBatch& all, int64_t begin, int64_t end) {
  const std::vector<int64_t> ids(all.ids.begin() + all.splits[begin],
                                 all.ids.begin() + all.splits[end]);
  std::vector<int64_t> splits;
  for (int64_t s = begin; s <= end; ++s) splits.push_back(all.splits[s] - all.splits[begin]);
  return RaggedTensor{Tensor::from(ids, {static_cast<int64_t>(ids.size())}),
                      Tensor::from(splits, {end - begin + 1})};
}

// One layer of tables and its training step.
class Growing {
 public:
  explicit Growing(const Setting& setting)
      : setting_(setting),
        strategy_(distribute::make_strategy(setting.strategy, {.num_cores = setting.replicas})),
        optimizer_(make_optimizer(*strategy_, setting.optimizer)),
        layer_(make_layer()),
        rows_(setting.vocabulary, Popularity::kZipf) {
    const int64_t ids_of_step = setting.samples * kBag * setting.tables;
    for (int64_t step_before = 0;
         step_before < std::max<int64_t>(kLeastStepsBefore, kIdsBefore / ids_of_step);
         ++step_before) {
      prepare(1);
      step();
    }
  }

  // Draws the batches of the next steps.
  void prepare(int steps) {
    batches_.clear();
    next_ = 0;
    for (int i = 0; i < steps; ++i) batches_.push_back(draw_batch());
  }

  // Different rows that the ids of a batch name.
  int64_t draw_rows() {
    int64_t rows = 0;
    for (BagBatch& bags : draw_bags()) {
      std::ranges::sort(bags.ids);
      const auto repeated = std::ranges::unique(bags.ids);
      rows += repeated.begin() - bags.ids.begin();
    }
    return rows;
  }

  // On the next batch that is prepared.
  void step() {
    const auto& batch = batches_.at(next_++);
    strategy_->run(
        [this](const Tensors& part) {
          GradientTape tape;
          std::vector<Tensor> sums;
          for (const TensorLike& found : flatten(layer_(part))) {
            sums.push_back(ops::sum(found.tensor()));
          }
          const Tensor loss = ops::sum(ops::stack(sums)) / static_cast<double>(setting_.samples);
          const auto variables = layer_->trainable_variables();
          optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
        },
        batch);
  }

 private:
  std::vector<BagBatch> draw_bags() {
    std::vector<BagBatch> bags;
    for (int t = 0; t < setting_.tables; ++t) {
      bags.push_back(make_bags(rows_, setting_.samples, kBag, false, random_));
    }
    return bags;
  }
  distribute::PerReplica<Tensors> draw_batch() {
    const std::vector<BagBatch> bags = draw_bags();
    const int replicas = strategy_->num_replicas_in_sync();
    return strategy_->distribute_values_from_function([&](int replica) {
      Tensors::Items features;
      for (const BagBatch& of_table : bags) {
        features.push_back(bags_of(of_table, setting_.samples * replica / replicas,
                                   setting_.samples * (replica + 1) / replicas));
      }
      return Tensors::list(std::move(features));
    });
  }

  layers::TPUEmbedding make_layer() const {
    const auto scope = strategy_->scope();
    Nest<FeatureConfig>::Items features;
    for (int t = 0; t < setting_.tables; ++t) {
      features.push_back(FeatureConfig{.table = make_table({.vocabulary_size = setting_.vocabulary,
                                                            .dim = kDim,
                                                            .initializer = "random_uniform",
                                                            .combiner = "sum"})});
    }
    layers::TPUEmbedding layer(
        {.feature_config = Nest<FeatureConfig>::list(std::move(features)),
         // Where tables are variables, apply_gradients is all they need.
         .optimizer = strategy_->is_tpu() ? TableOptimizer(optimizer_) : TableOptimizer()});
    Specs::Items specs(setting_.tables, TensorSpec{.shape = {kUnknown, kUnknown},
                                                   .dtype = DType::kInt64,
                                                   .layout = Layout::kRagged});
    layer->build(Specs::list(std::move(specs)));
    return layer;
  }

  const Setting setting_;
  const std::unique_ptr<distribute::Strategy> strategy_;
  const OptimizerHandle optimizer_;
  const layers::TPUEmbedding layer_;
  const RowIds rows_;
  Random random_ = Random(3);
  std::vector<distribute::PerReplica<Tensors>> batches_;
  size_t next_ = 0;
};

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// "256", "2e7".
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
    by_vocabulary();
    by(&Setting::samples, "batch", {256, 1024, 4096, 16384}, kPerSample);
    by(&Setting::tables, "tables", {1, 4, 16, 64}, kPerTable);
    by(&Setting::replicas, "replicas", {1, 2, 4, 8, 16}, kPerStep);
    memory();
    return report_.finish();
  }

 private:
  // What stays the same if the step is in proportion to what grows.
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

  // Adam and FTRL as Keras defines them, where each step writes the table: only small ones.
  static bool moves_all_rows(const Setting& s) {
    return s.strategy == "cpu" && (s.optimizer == "adam" || s.optimizer == "ftrl");
  }

  void by_vocabulary() {
    for (const auto& [strategy, optimizer] : cases()) {
      // A replica for each core.
      const Setting setting = {
          .strategy = strategy, .optimizer = optimizer, .replicas = options_.threads};
      const std::string name = str("vocabulary_", strategy, "_", optimizer);
      if (!options_.wants(name)) continue;
      std::vector<int64_t> vocabularies = {10'000, 100'000, 1'000'000, 20'000'000};
      if (options_.quick) vocabularies = {10'000, 20'000'000};
      if (moves_all_rows(setting)) vocabularies.pop_back();
      std::vector<Setting> settings;
      for (int64_t vocabulary : vocabularies) {
        settings.push_back(setting);
        settings.back().vocabulary = vocabulary;
      }
      const std::vector<double> numbers(vocabularies.begin(), vocabularies.end());
      compare_settings(name, settings, numbers, kPerStep);
    }
  }

  template <class T>
  void by(T Setting::*what, const char* name, std::vector<T> values, Unit unit) {
    if (!options_.wants(name)) return;
    if (options_.quick) values = {values.front(), values.back()};
    std::vector<Setting> settings;
    for (T value : values) {
      Setting& setting = settings.emplace_back();
      setting.optimizer = "adagrad";
      if (unit == kPerTable) setting.vocabulary = 100'000;
      setting.*what = value;
    }
    compare_settings(name, settings, {values.begin(), values.end()}, unit);
  }

  // All at once, so that what slows the machine for a while slows them alike.
  void compare_settings(const std::string& name, const std::vector<Setting>& settings,
                        const std::vector<double>& values, Unit unit) {
    std::vector<std::unique_ptr<Growing>> all;
    std::vector<Contender> contenders;
    for (const Setting& setting : settings) {
      all.push_back(std::make_unique<Growing>(setting));
      Growing* const growing = all.back().get();
      contenders.push_back(
          {"", [growing] { growing->step(); }, [growing](int steps) { growing->prepare(steps); }});
    }
    const Comparison times =
        compare(contenders, {.seconds_per_slice = 0.03, .turns = options_.quick ? 7 : 15});
    const size_t last = settings.size() - 1;
    const auto units = [&](size_t i) { return unit == kPerStep ? 1.0 : values[i]; };
    Result result = {
        .op = name,
        .dim = kDim,
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
      if (unit == kPerStep && settings[i].vocabulary != settings[0].vocabulary) {
        result.more.emplace_back(
            "rows_times_" + short_number(values[i]),
            static_cast<double>(all[i]->draw_rows()) / static_cast<double>(all[0]->draw_rows()));
      }
    }
    report_.add(result);
  }

  // Resident memory that a large table adds once it trains, and the share of weights and slots.
  void memory() {
    const int64_t rows = options_.quick ? 4'000'000 : 20'000'000;
    for (const auto& [strategy, optimizer] : cases()) {
      const std::string name = str("memory_", strategy, "_", optimizer);
      if (!options_.wants(name)) continue;
      const int64_t before = resident_bytes();
      const Growing table({.strategy = strategy, .optimizer = optimizer, .vocabulary = rows});
      const double per_row =
          static_cast<double>(resident_bytes() - before) / static_cast<double>(rows);
      const double needed = (1 + slots_of(optimizer)) * kDim * sizeof(float);
      report_.add({.op = name,
                   .dim = kDim,
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
      "How the time of a training step grows with vocabulary, batch, tables and replicas.");
  return keel::bench::Bench(options).run();
}

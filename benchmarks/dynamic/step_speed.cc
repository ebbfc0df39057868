#include "benchmarks/dynamic/step_speed.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <unistd.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "benchmarks/models/click_trainer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"

namespace keel::bench {
namespace {

constexpr int kBatches = 8;
constexpr int64_t kSamples = 2048;

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A DLRM whose batches get new ids before each step.
class Steps {
 public:
  Steps(const ClickWork& work, double new_share)
      : work_(work),
        batches_(make_click_batches(work, kBatches, kSamples, 1)),
        trainer_(work, batches_, {}),
        new_share_(new_share) {
    for (int batch = 0; batch < kBatches; ++batch) trainer_.train(batch);
  }

  void prepare() {
    if (new_share_ == 0) return;
    ClickBatch batch = batches_[next_];
    for (std::vector<int64_t>& ids : batch.ids) {
      for (int64_t& id : ids) {
        if (std::uniform_real_distribution(0.0, 1.0)(random_) < new_share_) id = new_id_++;
      }
    }
    trainer_.set_batch(next_, batch);
  }
  void run() {
    trainer_.train(next_);
    next_ = (next_ + 1) % kBatches;
  }

 private:
  const ClickWork work_;
  const std::vector<ClickBatch> batches_;
  ClickTrainer trainer_;
  const double new_share_;
  std::mt19937_64 random_{5};
  int64_t new_id_ = 1'000'000'000;
  int next_ = 0;
};

// One table in an engine.
class OneTable {
 public:
  OneTable(const TableConfig& config, int64_t batch)
      : table_(make_table(config)),
        scope_(strategy_.scope()),
        layer_({.feature_config = FeatureConfig{.table = table_},
                .optimizer = optimizers::Adagrad({.learning_rate = 0.01})}) {
    train(Tensor::zeros({batch}, DType::kInt64));
  }

  void train(const Tensor& ids) {
    strategy_.run([&] {
      GradientTape tape;
      const Tensor loss = ops::sum(layer_(Tensors(ids)).tensor());
      tape.gradient(loss, layer_->trainable_variables());
    });
  }
  Checkpoint checkpoint() const { return Checkpoint({.model = layer_}); }
  const layers::TPUEmbedding& layer() const { return layer_; }
  const Table& table() const { return table_; }

 private:
  const Table table_;
  distribute::TPUStrategy strategy_{{.num_hosts = 1, .num_cores = 1}};
  const distribute::Strategy::Scope scope_;
  const layers::TPUEmbedding layer_;
};

}  // namespace

void measure_steps(const Options& options, Report& report) {
  struct Case {
    const char* name;
    DynamicVocabulary dynamic;
    double new_share, capacity_factor;
  };
  const Case cases[] = {
      {"step, known ids", {}, 0, 1},
      {"step, 2 % new ids, LRU at load 0.8", {.eviction = Eviction::lru()}, 0.02, 1.25},
      {"step, 2 % new ids, LRU at capacity", {.eviction = Eviction::lru()}, 0.02, 0.1},
      {"step, new ids only", {}, 1, 1}};
  ClickWork work = {.rows = criteo_table_sizes(options.quick ? 10'000 : 1'000'000),
                    .adagrad = true};
  for (const Case& of : cases) {
    if (!options.wants(of.name)) continue;
    Steps fixed(work, 0);
    ClickWork changed = work;
    changed.dynamic = of.dynamic;
    changed.capacity_factor = of.capacity_factor;
    Steps dynamic(changed, of.new_share);
    const Comparison result = compare({{.name = "dynamic",
                                        .run = [&] { dynamic.run(); },
                                        .prepare = [&](int) { dynamic.prepare(); }},
                                       {.name = "static", .run = [&] { fixed.run(); }}},
                                      {.seconds_per_slice = 0, .turns = options.quick ? 15 : 101});
    report.add({.op = of.name,
                .dim = work.dim,
                .threads = options.threads,
                .value = result.ratio(0, 1),
                .unit = "times static",
                .more = {{"dynamic_ms", 1e3 * result.timings[0].median},
                         {"static_ms", 1e3 * result.timings[1].median}}});
  }
}

void measure_growth(const Options& options, Report& report) {
  if (!options.wants("growth")) return;
  constexpr int64_t kBatch = 16'384, kNew = kBatch / 4;
  const int64_t most = options.quick ? 100'000 : 10'000'000;
  OneTable grown(
      {.dim = 16, .dynamic = DynamicVocabulary{.capacity = most, .eviction = Eviction::lru()}},
      kBatch);
  std::vector<double> seconds;
  std::mt19937_64 random(1);
  // Beyond the capacity, so that rows are evicted once.
  for (int64_t known = 0; known < most + most / 20; known += kNew) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kBatch; ++i) {
      ids.push_back(i < kNew || known == 0
                        ? known + i
                        : static_cast<int64_t>(random() % static_cast<uint64_t>(known)));
    }
    const Tensor batch = Tensor::from(ids, {kBatch});
    seconds.push_back(seconds_of([&] { grown.train(batch); }));
  }
  const double longest = *std::ranges::max_element(seconds), middle = median(seconds);
  report.add({.op = "growth, longest step",
              .dim = 16,
              .threads = options.threads,
              .value = longest / middle,
              .unit = "times median",
              .more = {{"longest_ms", 1e3 * longest}, {"median_ms", 1e3 * middle}}});
}

void measure_checkpoints(const Options& options, Report& report) {
  if (!options.wants("checkpoint")) return;
  const int64_t rows = options.quick ? 20'000 : 2'000'000;
  constexpr int64_t kBatch = 10'000;
  OneTable fixed({.vocabulary_size = rows, .dim = 32}, kBatch);
  OneTable dynamic({.dim = 32, .dynamic = DynamicVocabulary{}}, kBatch);
  for (int64_t first = 0; first < rows; first += kBatch) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kBatch; ++i) ids.push_back(first + i);
    dynamic.train(Tensor::from(ids, {kBatch}));
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / str("keel_bench_dynamic.", getpid());
  std::filesystem::create_directories(folder);
  const auto write = [&](const OneTable& table) {
    table.checkpoint().write((folder / table.layer()->name()).string(), 1);
  };
  const auto restore = [&](const OneTable& table) {
    static_cast<void>(table.checkpoint().restore((folder / table.layer()->name()).string()));
  };
  const auto add = [&](const char* name, const auto& fn) {
    const Comparison result = compare({{.name = "dynamic", .run = [&] { fn(dynamic); }},
                                       {.name = "static", .run = [&] { fn(fixed); }}},
                                      {.seconds_per_slice = 0, .turns = options.quick ? 3 : 7});
    report.add({.op = name,
                .dim = 32,
                .value = result.ratio(0, 1),
                .unit = "times static",
                .more = {{"dynamic_s", result.timings[0].median},
                         {"static_s", result.timings[1].median}}});
  };
  add("checkpoint, write", write);
  add("checkpoint, restore", restore);
  std::filesystem::remove_all(folder);
}

}  // namespace keel::bench

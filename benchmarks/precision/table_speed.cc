#include "benchmarks/precision/table_speed.h"

#include <memory>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/internal/thread_communicator.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"

namespace keel::bench {
namespace {

using distribute::EmbeddingEngine;
using distribute::FeatureBatch;
using kernels::StorageType;

constexpr int64_t kSamples = 2048, kBag = 10;
constexpr std::pair<StorageType, const char*> kStorages[] = {{StorageType::kFloat32, "float32"},
                                                             {StorageType::kBFloat16, "bfloat16"},
                                                             {StorageType::kFloat16, "float16"}};

class TableOfStorage {
 public:
  TableOfStorage(StorageType storage, int64_t rows, int64_t dim,
                 const std::vector<FeatureBatch>& batches)
      : engine_(distribute::EngineConfiguration{
            .tables = {{.name = "table",
                        .rows = rows,
                        .dim = dim,
                        .combiner = kernels::Combiner::kSum,
                        .update = {.rule = std::make_shared<AdagradRule>(0.1, 0.0)},
                        .storage = storage}},
            .features = {{.table_id = 0}}}),
        batches_(batches),
        gradient_(Tensor::full<float>({kSamples, dim}, 1e-3F)) {
    engine_.initialize(0, 0, rows, Initializer("random_uniform").function(), {.seed = 1});
  }

  void lookup() { engine_.lookup(*alone_, {next_batch()}, false); }
  void step() {
    const auto found = engine_.lookup(*alone_, {next_batch()});
    engine_.apply(*alone_, found.ticket, {gradient_}, {{.learning_rate = 0.01}});
  }

 private:
  const FeatureBatch& next_batch() { return batches_[next_++ % batches_.size()]; }

  const std::shared_ptr<distribute::Communicator> alone_ = distribute::make_self_communicator();
  EmbeddingEngine engine_;
  const std::vector<FeatureBatch>& batches_;
  const Tensor gradient_;
  size_t next_ = 0;
};

std::vector<FeatureBatch> make_batches(int64_t rows) {
  std::vector<FeatureBatch> out;
  for (const BagBatch& bags :
       make_bag_pool(RowIds(rows, Popularity::kUniform), kSamples, kBag, false, 3)) {
    out.push_back({.ids = Tensor::from(bags.ids, {bags.size()}),
                   .row_splits = Tensor::from(bags.splits, {bags.samples() + 1}),
                   .weights = {}});
  }
  return out;
}

void measure(int64_t rows, int64_t dim, const Options& options, Report& report) {
  const std::vector<FeatureBatch> batches = make_batches(rows);
  std::vector<std::unique_ptr<TableOfStorage>> tables;
  for (const auto& [storage, name] : kStorages) {
    tables.push_back(std::make_unique<TableOfStorage>(storage, rows, dim, batches));
  }
  for (const bool steps : {false, true}) {
    std::vector<Contender> contenders;
    for (size_t i = 0; i < tables.size(); ++i) {
      contenders.push_back({kStorages[i].second, [table = tables[i].get(), steps] {
                              steps ? table->step() : table->lookup();
                            }});
    }
    const Comparison times = compare(std::move(contenders), {.turns = options.quick ? 9 : 25});
    for (size_t i = 0; i < tables.size(); ++i) {
      report.add({.op = steps ? "table_step" : "table_lookup",
                  .dim = dim,
                  .optimizer = steps ? "adagrad" : "",
                  .value = times.timings[i].median / (kSamples * kBag) * 1e9,
                  .unit = "ns/id",
                  .more = {{"rows", static_cast<double>(rows)}, {"faster", times.ratio(0, i)}},
                  .labels = {{"precision", kStorages[i].second}}});
    }
  }
}

}  // namespace

void measure_table_speed(const Options& options, Report& report) {
  for (const int64_t rows : {int64_t{1'000'000}, int64_t{8'000'000}}) {
    if (rows > 1'000'000 && options.quick) continue;
    for (const int64_t dim : {16, 64}) measure(rows, dim, options, report);
  }
}

}  // namespace keel::bench

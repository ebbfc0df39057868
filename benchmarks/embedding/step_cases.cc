// Training steps of one table: lookup with sums, gradients of the rows, update. Keel runs the
// complete engine. Both use huge pages; at its best settings, the peer gets them from malloc.
#include <algorithm>
#include <array>

#include "benchmarks/embedding/cases.h"
#include "benchmarks/embedding/engine_table.h"
#include "benchmarks/support/pages.h"

namespace keel::bench {
namespace {

constexpr double kLearningRate = 0.05;

double start_of(SparseOptimizer optimizer, int slot) {
  if (slot != 0) return 0;
  if (optimizer == SparseOptimizer::kAdagrad) return kAdagradStart;
  return optimizer == SparseOptimizer::kFtrl ? kFtrlStart : 0;
}

class Steps {
 public:
  Steps(Report& report, const Options& options, const TableSize& size, SparseOptimizer optimizer)
      : report_(report),
        options_(options),
        size_(size),
        optimizer_(optimizer),
        weights_(size.bytes(), Pages::kHuge),
        ours_({.rows = size.rows,
               .dim = size.dim,
               .optimizer = optimizer,
               .learning_rate = kLearningRate,
               .threads = options.threads}),
        gradient_(kSamples * size.dim) {
    fill(weights_.floats(), size.elements(), 0.1F);
    fill(gradient_.data(), static_cast<int64_t>(gradient_.size()), 0.1F);
    ours_.load(weights_.floats());
    ours_.set_gradient(gradient_.data(), kSamples);
    make_peer();
  }

  // Compares a few steps of both. Call it before the first run() because run() may make different
  // numbers of steps.
  void check(const BagKind& kind, const std::vector<BagBatch>& pool);
  void run(const BagKind& kind, const std::vector<BagBatch>& pool, Ratios& ratios);

 private:
  void make_peer();
  std::vector<float> rows_of_ours(const BagBatch& batch) const;
  std::vector<float> rows_of_peer(const BagBatch& batch) const;
  void peer_step(const std::vector<BagBatch>& pool);

  Report& report_;
  const Options& options_;
  const TableSize size_;
  const SparseOptimizer optimizer_;
  PagedMemory weights_;
  std::array<std::unique_ptr<PagedMemory>, 2> slots_;
  EngineTable ours_;
  std::unique_ptr<EmbeddingPeer> peer_;  // null without libtorch
  std::vector<float> gradient_;
  size_t peer_at_ = 0;
};

void Steps::make_peer() {
  EmbeddingPeerOptions options = {.table = weights_.floats(),
                                  .rows = size_.rows,
                                  .dim = size_.dim,
                                  .optimizer = optimizer_,
                                  .learning_rate = kLearningRate};
  for (int i = 0; i < slots_of(optimizer_); ++i) {
    slots_[i] = std::make_unique<PagedMemory>(size_.bytes(), Pages::kHuge);
    options.slots[i] = slots_[i]->floats();
    std::fill_n(options.slots[i], size_.elements(), static_cast<float>(start_of(optimizer_, i)));
  }
  peer_ = make_embedding_peer(options);
}

constexpr int64_t kCheckedRows = 4096;

std::vector<float> Steps::rows_of_ours(const BagBatch& batch) const {
  const int64_t n = std::min(kCheckedRows, batch.size());
  std::vector<float> out(n * size_.dim);
  for (int64_t i = 0; i < n; ++i) ours_.read_row(batch.ids[i], out.data() + i * size_.dim);
  return out;
}

std::vector<float> Steps::rows_of_peer(const BagBatch& batch) const {
  const int64_t n = std::min(kCheckedRows, batch.size());
  std::vector<float> out(n * size_.dim);
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(weights_.floats() + batch.ids[i] * size_.dim, size_.dim,
                out.data() + i * size_.dim);
  }
  return out;
}

void Steps::peer_step(const std::vector<BagBatch>& pool) {
  peer_->step(bags_of(pool[peer_at_]), gradient_.data());
  peer_at_ = (peer_at_ + 1) % pool.size();
}

// Compares the changes by a few steps instead of the rows because changes are small compared with
// the rows.
void Steps::check(const BagKind& kind, const std::vector<BagBatch>& pool) {
  if (peer_ == nullptr) return;
  ours_.set_batches(pool);
  peer_at_ = 0;
  std::vector<float> ours = rows_of_ours(pool[0]);
  std::vector<float> peers = rows_of_peer(pool[0]);
  for (int i = 0; i < 3; ++i) {
    ours_.step();
    peer_step(pool);
  }
  std::ranges::transform(rows_of_ours(pool[0]), ours, ours.begin(), std::minus<>());
  std::ranges::transform(rows_of_peer(pool[0]), peers, peers.begin(), std::minus<>());
  report_.check("step_" + name_of(optimizer_) + " " + name_of(size_) + " " + name_of(kind),
                relative_difference(ours.data(), peers.data(), static_cast<int64_t>(ours.size())));
}

void Steps::run(const BagKind& kind, const std::vector<BagBatch>& pool, Ratios& ratios) {
  ours_.set_batches(pool);
  peer_at_ = 0;
  std::vector<Contender> contenders = {{"ours", [this] { ours_.step(); }}};
  if (peer_ != nullptr) {
    contenders.push_back({"libtorch", [this, &pool] { peer_step(pool); }});
  }
  MeasureOptions measure = measure_options(options_);
  measure.seconds_per_slice = 0.015;  // several calls
  measure.turns = options_.quick ? 3 : 7;
  const Comparison times = compare(std::move(contenders), measure);
  const double ids = mean_ids(pool);
  Result result = {.op = "embedding_step",
                   .dim = size_.dim,
                   .optimizer = name_of(optimizer_),
                   .threads = options_.threads,
                   .value = times.timings[0].median / ids * 1e9,
                   .unit = "ns/id",
                   .labels = {{"table", name_of(size_)}, {"bags", name_of(kind)}}};
  if (peer_ != nullptr) {
    result.ratio_to_libtorch = times.ratio(1, 0);
    result.more.emplace_back("libtorch", times.timings[1].median / ids * 1e9);
    ratios["embedding_step " + result.optimizer].push_back(*result.ratio_to_libtorch);
  }
  report_.add(result);
}

}  // namespace

void run_steps(Report& report, const Options& options, const TableSize& table,
               SparseOptimizer optimizer, const std::vector<BagKind>& kinds, BatchPools& pools,
               Ratios& ratios) {
  const std::string name = "step_" + name_of(optimizer) + " " + name_of(table);
  const auto wanted = [&](const BagKind& kind) {
    return options.wants(name + " " + name_of(kind));
  };
  if (std::ranges::none_of(kinds, wanted)) return;
  if (!has_memory_for(2 * (1 + slots_of(optimizer)) * table.bytes(), name, report)) return;
  Steps steps(report, options, table, optimizer);
  for (const BagKind& kind : kinds) {
    if (wanted(kind)) steps.check(kind, pools.of(table.rows, kind));
  }
  for (const BagKind& kind : kinds) {
    if (wanted(kind)) steps.run(kind, pools.of(table.rows, kind), ratios);
  }
}

}  // namespace keel::bench

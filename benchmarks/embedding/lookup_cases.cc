// Lookups: Keel's kernel, the peer and the limit of reading the same rows, on tables with 4 KiB
// pages and with huge pages, and the complete engine, on huge pages (its default) and on small
// pages.
#include <algorithm>
#include <array>
#include <memory>

#include "benchmarks/embedding/cases.h"
#include "benchmarks/embedding/engine_table.h"
#include "benchmarks/support/limits.h"
#include "benchmarks/support/pages.h"

namespace keel::bench {
namespace {

// A contender that starts its slice with its own table in the caches, as far as they can hold it.
// The L3 cache of some machines holds several of the tables, so the first contender would otherwise
// warm it for the others.
Contender warmed(const std::string& name, const std::function<void()>& run) {
  return {name, run, [run](int calls) {
            for (int i = 0; i < calls; ++i) run();
          }};
}

// Calls `work` with the batches of a pool in turn.
Contender in_turn(const std::string& name, const std::vector<BagBatch>& pool,
                  const std::shared_ptr<size_t>& at,
                  const std::function<void(const BagBatch&)>& work) {
  return warmed(name, [&pool, at, work] {
    work(pool[*at]);
    *at = (*at + 1) % pool.size();
  });
}

// A table on pages of one size, and the contenders that read it.
struct PagedTable {
  PagedTable(const TableSize& size, const LookupKind& lookup, Pages pages)
      : memory(size.bytes(), pages), dim(size.dim) {
    fill(memory.floats(), size.elements(), 0.1F);
    peer = make_embedding_peer({.table = memory.floats(),
                                .rows = size.rows,
                                .dim = size.dim,
                                .combiner = lookup.combiner});
  }

  const PagedMemory memory;
  const int64_t dim;
  std::unique_ptr<EmbeddingPeer> peer;  // null without libtorch
};

class Lookups {
 public:
  Lookups(Report& report, const Options& options, const TableSize& size, const LookupKind& lookup)
      : report_(report),
        options_(options),
        size_(size),
        lookup_(lookup),
        small_(size, lookup, Pages::kSmall),
        huge_(size, lookup, Pages::kHuge),
        engine_4k_(engine_options(Pages::kSmall)),
        engine_(engine_options(Pages::kHuge)) {
    engine_4k_.load(small_.memory.floats());
    engine_.load(small_.memory.floats());
  }

  void run(const BagKind& kind, const std::vector<BagBatch>& pool, Ratios& ratios);

 private:
  void add(std::vector<Contender>& contenders, const std::vector<BagBatch>& pool);
  void check(const std::string& name, const BagBatch& batch);
  EngineTable::Options engine_options(Pages pages) const {
    return {.rows = size_.rows,
            .dim = size_.dim,
            .combiner = lookup_.combiner,
            .threads = options_.threads,
            .pages = pages};
  }

  Report& report_;
  const Options& options_;
  const TableSize size_;
  const LookupKind lookup_;
  PagedTable small_, huge_;
  EngineTable engine_4k_, engine_;
  std::vector<float> weights_, pooled_;
  // Indexes of contenders on small and on huge pages; those of the peer exist with libtorch.
  struct {
    std::array<size_t, 2> ours, limit, peer, engine;
  } places_ = {};
};

// Adds the contenders in an order in which Keel and the peer run equally long after the previous
// use of their table.
void Lookups::add(std::vector<Contender>& contenders, const std::vector<BagBatch>& pool) {
  const float* weights = lookup_.weighted ? weights_.data() : nullptr;
  // No contender looks up rows that another one has just looked up in the same table.
  const std::array<std::shared_ptr<size_t>, 2> at = {std::make_shared<size_t>(0),
                                                     std::make_shared<size_t>(0)};
  const std::array<const PagedTable*, 2> tables = {&small_, &huge_};
  for (int i = 0; i < 2; ++i) {
    places_.ours[i] = contenders.size();
    contenders.push_back(
        in_turn("ours", pool, at[i], [table = tables[i], weights, this](const BagBatch& batch) {
          kernels::pooled_gather(table->memory.floats(), table->dim, bags_of(batch, weights),
                                 lookup_.combiner, pooled_.data());
        }));
  }
  for (int i = 0; i < 2; ++i) {
    const float* table = tables[i]->memory.floats();
    const RowDistance distance = best_distance(table, size_.dim, pool, options_.threads);
    places_.limit[i] = contenders.size();
    contenders.push_back(in_turn("limit", pool, at[i], [=, this](const BagBatch& batch) {
      read_rows(table, size_.dim, batch.ids.data(), batch.size(), options_.threads, distance);
    }));
  }
  places_.engine[1] = contenders.size();
  contenders.push_back(warmed("engine", [this] { engine_.lookup(); }));
  for (int i = 0; i < 2 && small_.peer != nullptr; ++i) {
    places_.peer[i] = contenders.size();
    contenders.push_back(
        in_turn("libtorch", pool, at[i], [table = tables[i], weights](const BagBatch& batch) {
          table->peer->lookup(bags_of(batch, weights));
        }));
  }
  places_.engine[0] = contenders.size();
  contenders.push_back(warmed("engine, 4 KiB pages", [this] { engine_4k_.lookup(); }));
}

void Lookups::check(const std::string& name, const BagBatch& batch) {
  const kernels::Bags bags = bags_of(batch, lookup_.weighted ? weights_.data() : nullptr);
  kernels::pooled_gather(small_.memory.floats(), size_.dim, bags, lookup_.combiner, pooled_.data());
  engine_.lookup();
  const auto n = static_cast<int64_t>(pooled_.size());
  report_.check(name + " (engine and kernel)",
                relative_difference(pooled_.data(), engine_.looked_up().data(), n));
  if (small_.peer == nullptr) return;
  report_.check(name, relative_difference(pooled_.data(), small_.peer->lookup(bags), n));
}

void Lookups::run(const BagKind& kind, const std::vector<BagBatch>& pool, Ratios& ratios) {
  const std::string op = "lookup_" + lookup_.name;
  const std::string name = op + " " + name_of(size_) + " " + name_of(kind);
  if (!options_.wants(name)) return;
  weights_.clear();
  if (lookup_.weighted) {
    weights_.resize(std::ranges::max(pool, {}, &BagBatch::size).size());
    fill(weights_.data(), static_cast<int64_t>(weights_.size()), 1);
  }
  pooled_.resize(kSamples * size_.dim);
  engine_4k_.set_batches(pool, weights_);
  engine_.set_batches(pool, weights_);
  check(name, pool[0]);
  std::vector<Contender> contenders;
  add(contenders, pool);
  const Comparison times = compare(std::move(contenders), measure_options(options_));

  const double ids = mean_ids(pool);
  const auto ns_per_id = [&](size_t i) { return times.timings[i].median / ids * 1e9; };
  const auto& [ours, limit, peer, engine] = places_;
  Result result = {.op = op,
                   .dim = size_.dim,
                   .threads = options_.threads,
                   .value = ns_per_id(ours[0]),
                   .unit = "ns/id",
                   .ratio_to_limit = times.ratio(limit[0], ours[0]),
                   .more = {{"kernel_huge", ns_per_id(ours[1])},
                            {"kernel_huge_of_limit", times.ratio(limit[1], ours[1])},
                            {"engine_4k", ns_per_id(engine[0])},
                            {"engine_huge", ns_per_id(engine[1])},
                            {"engine_huge_of_limit", times.ratio(limit[1], engine[1])}},
                   .labels = {{"table", name_of(size_)}, {"bags", name_of(kind)}}};
  if (small_.peer != nullptr) {
    result.ratio_to_libtorch = times.ratio(peer[0], ours[0]);
    result.more.emplace_back("libtorch_4k", ns_per_id(peer[0]));
    result.more.emplace_back("libtorch_huge", ns_per_id(peer[1]));
    const auto keep = [&](const std::string& what, size_t its, size_t peers) {
      const double ratio = times.ratio(peers, its);
      result.more.emplace_back(what, ratio);
      ratios[op + " " + what].push_back(ratio);
    };
    keep("kernel_4k_vs_libtorch_4k", ours[0], peer[0]);
    keep("kernel_huge_vs_libtorch_huge", ours[1], peer[1]);
    keep("kernel_huge_vs_libtorch_4k", ours[1], peer[0]);
    keep("engine_4k_vs_libtorch_4k", engine[0], peer[0]);
    keep("engine_huge_vs_libtorch_huge", engine[1], peer[1]);
  }
  // Cases that exceed the caches and that are not bounded by the starts of bags.
  if (size_.bytes() >= size_t{200} << 20 && kind.bag >= 10 &&
      kind.popularity == Popularity::kUniform) {
    ratios[op + " kernel_4k_of_limit"].push_back(*result.ratio_to_limit);
    ratios[op + " kernel_huge_of_limit"].push_back(times.ratio(limit[1], ours[1]));
  }
  report_.add(result);
}

}  // namespace

void run_lookups(Report& report, const Options& options, const TableSize& table,
                 const LookupKind& lookup, const std::vector<BagKind>& kinds, BatchPools& pools,
                 Ratios& ratios) {
  const std::string name = "lookup_" + lookup.name + " " + name_of(table);
  const auto wanted = [&](const BagKind& kind) {
    return options.wants(name + " " + name_of(kind));
  };
  if (std::ranges::none_of(kinds, wanted)) return;
  if (!has_memory_for(4 * table.bytes(), name, report)) return;
  Lookups lookups(report, options, table, lookup);
  for (const BagKind& kind : kinds) lookups.run(kind, pools.of(table.rows, kind), ratios);
}

}  // namespace keel::bench

// Lookups: our kernel, the peer's and the limit of reading the same rows, on tables of 4 KiB pages
// and again on huge ones, and the engine that users see, on huge ones as it is and on small ones.
#include <algorithm>
#include <memory>

#include "benchmarks/embedding/cases.h"
#include "benchmarks/embedding/engine_table.h"
#include "benchmarks/support/limits.h"
#include "benchmarks/support/pages.h"

namespace keel::bench {
namespace {

// Calls `work` with the batches of a pool in turn.
std::function<void()> in_turn(const std::vector<BagBatch>& pool,
                              const std::function<void(const BagBatch&)>& work) {
  return [&pool, work, at = size_t{0}]() mutable {
    work(pool[at]);
    at = (at + 1) % pool.size();
  };
}

// A table on pages of one size with what reads it.
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
  struct Places {  // of contenders; the peer's are -1 without libtorch
    size_t ours = 0, limit = 0;
    int peer = -1;
  };
  Places add(std::vector<Contender>& contenders, const PagedTable& table,
             const std::vector<BagBatch>& pool);
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
};

Lookups::Places Lookups::add(std::vector<Contender>& contenders, const PagedTable& table,
                             const std::vector<BagBatch>& pool) {
  const float* weights = lookup_.weighted ? weights_.data() : nullptr;
  Places out = {.ours = contenders.size()};
  contenders.push_back({"ours", in_turn(pool, [&table, weights, this](const BagBatch& batch) {
                          kernels::pooled_gather(table.memory.floats(), table.dim,
                                                 bags_of(batch, weights), lookup_.combiner,
                                                 pooled_.data());
                        })});
  out.limit = contenders.size();
  const int64_t ahead = best_rows_ahead(table.memory.floats(), table.dim, pool, options_.threads);
  contenders.push_back({"limit", in_turn(pool, [&table, ahead, this](const BagBatch& batch) {
                          read_rows(table.memory.floats(), table.dim, batch.ids.data(),
                                    batch.size(), options_.threads, ahead);
                        })});
  if (table.peer != nullptr) {
    out.peer = static_cast<int>(contenders.size());
    contenders.push_back({"libtorch", in_turn(pool, [&table, weights](const BagBatch& batch) {
                            table.peer->lookup(bags_of(batch, weights));
                          })});
  }
  return out;
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
  const Places small = add(contenders, small_, pool);
  const Places huge = add(contenders, huge_, pool);
  const size_t engine_4k = contenders.size();
  contenders.push_back({"engine, 4 KiB pages", [this] { engine_4k_.lookup(); }});
  const size_t engine = contenders.size();
  contenders.push_back({"engine", [this] { engine_.lookup(); }});
  const Comparison times = compare(std::move(contenders), measure_options(options_));

  const double ids = mean_ids(pool);
  const auto ns_per_id = [&](size_t i) { return times.timings[i].median / ids * 1e9; };
  Result result = {.op = op,
                   .dim = size_.dim,
                   .threads = options_.threads,
                   .value = ns_per_id(small.ours),
                   .unit = "ns/id",
                   .ratio_to_limit = times.ratio(small.limit, small.ours),
                   .more = {{"kernel_huge", ns_per_id(huge.ours)},
                            {"kernel_huge_of_limit", times.ratio(huge.limit, huge.ours)},
                            {"engine_4k", ns_per_id(engine_4k)},
                            {"engine_huge", ns_per_id(engine)},
                            {"engine_huge_of_limit", times.ratio(huge.limit, engine)}},
                   .labels = {{"table", name_of(size_)}, {"bags", name_of(kind)}}};
  if (small.peer >= 0) {
    result.ratio_to_libtorch = times.ratio(small.peer, small.ours);
    result.more.emplace_back("libtorch_4k", ns_per_id(small.peer));
    result.more.emplace_back("libtorch_huge", ns_per_id(huge.peer));
    const auto keep = [&](const std::string& what, size_t ours, int peer) {
      const double ratio = times.ratio(peer, ours);
      result.more.emplace_back(what, ratio);
      ratios[op + " " + what].push_back(ratio);
    };
    keep("kernel_4k_vs_libtorch_4k", small.ours, small.peer);
    keep("kernel_huge_vs_libtorch_huge", huge.ours, huge.peer);
    keep("kernel_huge_vs_libtorch_4k", huge.ours, small.peer);
    keep("engine_4k_vs_libtorch_4k", engine_4k, small.peer);
    keep("engine_huge_vs_libtorch_huge", engine, huge.peer);
  }
  // What the caches do not hold, and the starts of bags do not bound.
  if (size_.bytes() >= size_t{200} << 20 && kind.bag >= 10 &&
      kind.popularity == Popularity::kUniform) {
    ratios[op + " kernel_4k_of_limit"].push_back(*result.ratio_to_limit);
    ratios[op + " kernel_huge_of_limit"].push_back(times.ratio(huge.limit, huge.ours));
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

// Embedding tables: lookups and training steps of Keel, compared with the peer and with the limit
// of reading random rows.
#include <algorithm>

#include "benchmarks/embedding/cases.h"
#include "benchmarks/peer/peer.h"

namespace keel::bench {
namespace {

using kernels::Combiner;

std::vector<BagKind> kinds_of(const std::vector<int64_t>& bags) {
  std::vector<BagKind> out;
  for (const int64_t bag : bags) {
    for (const Popularity popularity : {Popularity::kUniform, Popularity::kZipf}) {
      out.push_back({.bag = bag, .popularity = popularity});
    }
  }
  return out;
}

std::vector<TableSize> tables_of(const Options& options) {
  if (options.quick) return {{100'000, 64}, {1'000'000, 16}, {1'000'000, 64}};
  std::vector<TableSize> out;
  for (const int64_t rows : {100'000, 1'000'000, 10'000'000}) {
    for (const int64_t dim : {16, 64, 128}) out.push_back({rows, dim});
  }
  return out;
}

// *_of_limit: bags of at least 10 uniform ids, in tables larger than 200 MiB.
void add_means(Report& report, const Options& options, const Ratios& ratios) {
  for (const auto& [what, values] : ratios) {
    report.add({.op = what,
                .threads = options.threads,
                .value = geometric_mean(values),
                .unit = "x",
                .more = {{"least", std::ranges::min(values)},
                         {"most", std::ranges::max(values)},
                         {"cases", static_cast<double>(values.size())}},
                .labels = {{"of", "geometric mean"}}});
  }
}

int run(const Options& options) {
  set_peer_threads(options.threads);
  Report report(options, "bench_embedding");
  report.note(
      "kernel: the pooling loop alone; engine: the embedding engine, as layers call it; 4k, huge: "
      "on pages of that size. A lookup's value and its ratio to libtorch are kernel_4k's.");
  if (peer_available()) {
    report.note(
        "libtorch has no sparse Adam in C++ and no FTRL: its steps of these are composed of ATen "
        "operators on coalesced gradients.");
  }
  const std::vector<BagKind> all = kinds_of({1, 10, 50});
  const std::vector<BagKind> some = kinds_of({10});
  const std::vector<LookupKind> lookups = {{"sum", Combiner::kSum},
                                           {"mean", Combiner::kMean},
                                           {"weighted", Combiner::kSum, /*weighted=*/true}};
  BatchPools pools;
  Ratios ratios;
  for (const TableSize& table : tables_of(options)) {
    for (const LookupKind& lookup : lookups) {
      const bool few = options.quick ? lookup.name != "sum" : lookup.weighted;
      run_lookups(report, options, table, lookup, few ? some : all, pools, ratios);
    }
    for (const SparseOptimizer optimizer : {SparseOptimizer::kSgd, SparseOptimizer::kAdagrad,
                                            SparseOptimizer::kAdam, SparseOptimizer::kFtrl}) {
      run_steps(report, options, table, optimizer, options.quick ? some : all, pools, ratios);
    }
  }
  add_means(report, options, ratios);
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_embedding",
      "Lookups (sum, mean, weighted) and training steps (SGD, Adagrad, sparse Adam, FTRL) of one "
      "table,\nbatch 2048, by vocabulary, dim, bag size and popularity of ids, against libtorch's "
      "EmbeddingBag\nand the limit of reading the same rows. libtorch has no sparse Adam in C++ "
      "and "
      "no FTRL: its steps of\nthese are composed of ATen operators on coalesced gradients. Names "
      "of "
      "cases:\n\"lookup_sum 1e6x64 bag 10 zipf\", \"step_adagrad 1e6x64 bag 10 uniform\"."));
}

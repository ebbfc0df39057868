// The cases of bench_embedding: one table, a batch of bags, one combiner or optimizer.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "benchmarks/peer/embedding_peer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {

constexpr int64_t kSamples = 2048;

struct TableSize {
  int64_t rows = 0, dim = 0;

  int64_t elements() const { return rows * dim; }
  size_t bytes() const { return elements() * sizeof(float); }
};

struct BagKind {
  int64_t bag = 1;
  Popularity popularity = Popularity::kUniform;  // zipf bags are ragged too
};

std::string name_of(const TableSize& table);  // "1e6x64"
std::string name_of(const BagKind& kind);     // "bag 10 zipf"

// Batches of one kind, created once for all tables with the same number of rows.
class BatchPools {
 public:
  const std::vector<BagBatch>& of(int64_t rows, const BagKind& kind);

 private:
  std::map<std::tuple<int64_t, int64_t, Popularity>, std::vector<BagBatch>> pools_;
};

double mean_ids(const std::vector<BagBatch>& batches);
kernels::Bags bags_of(const BagBatch& batch, const float* weights = nullptr);

// Collects the ratios of the cases of one kind of work for their geometric mean.
using Ratios = std::map<std::string, std::vector<double>>;

// Returns true if `bytes` are available; otherwise adds a note about the skipped case.
bool has_memory_for(size_t bytes, const std::string& what, Report& report);

MeasureOptions measure_options(const Options& options);

// Defined in lookup_cases.cc and step_cases.cc: all cases of one table.
struct LookupKind {
  std::string name;  // "sum", "mean", "weighted"
  kernels::Combiner combiner = kernels::Combiner::kSum;
  bool weighted = false;
};
void run_lookups(Report& report, const Options& options, const TableSize& table,
                 const LookupKind& lookup, const std::vector<BagKind>& kinds, BatchPools& pools,
                 Ratios& ratios);
void run_steps(Report& report, const Options& options, const TableSize& table,
               SparseOptimizer optimizer, const std::vector<BagKind>& kinds, BatchPools& pools,
               Ratios& ratios);
std::string name_of(SparseOptimizer optimizer);  // "sgd"

}  // namespace keel::bench

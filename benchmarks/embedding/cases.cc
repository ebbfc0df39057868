#include "benchmarks/embedding/cases.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace keel::bench {
namespace {

size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  size_t kib = 0;
  while (file >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib << 10;
  }
  return 0;
}

}  // namespace

std::string name_of(const TableSize& table) {
  const int exponent = static_cast<int>(std::lround(std::log10(static_cast<double>(table.rows))));
  return "1e" + std::to_string(exponent) + "x" + std::to_string(table.dim);
}

std::string name_of(const BagKind& kind) {
  return "bag " + std::to_string(kind.bag) +
         (kind.popularity == Popularity::kZipf ? " zipf" : " uniform");
}

std::string name_of(SparseOptimizer optimizer) {
  switch (optimizer) {
    case SparseOptimizer::kSgd:
      return "sgd";
    case SparseOptimizer::kAdagrad:
      return "adagrad";
    case SparseOptimizer::kAdam:
      return "adam";
    case SparseOptimizer::kFtrl:
      return "ftrl";
  }
  return "";
}

const std::vector<BagBatch>& BatchPools::of(int64_t rows, const BagKind& kind) {
  auto& pool = pools_[{rows, kind.bag, kind.popularity}];
  if (pool.empty()) {
    pool = make_bag_pool(RowIds(rows, kind.popularity), kSamples, kind.bag,
                         kind.popularity == Popularity::kZipf, /*seed=*/1);
  }
  return pool;
}

double mean_ids(const std::vector<BagBatch>& batches) {
  int64_t ids = 0;
  for (const BagBatch& batch : batches) ids += batch.size();
  return static_cast<double>(ids) / static_cast<double>(batches.size());
}

kernels::Bags bags_of(const BagBatch& batch, const float* weights) {
  return {.ids = batch.ids.data(),
          .splits = batch.splits.data(),
          .samples = batch.samples(),
          .weights = weights};
}

bool has_memory_for(size_t bytes, const std::string& what, Report& report) {
  constexpr double kShare = 0.85;
  const size_t available = available_bytes();
  if (static_cast<double>(bytes) <= kShare * static_cast<double>(available)) return true;
  std::ostringstream line;
  line << what << ": skipped, needs " << (bytes >> 20) << " MiB, of " << (available >> 20);
  report.note(line.str());
  return false;
}

MeasureOptions measure_options(const Options& options) {
  if (options.quick) return {.seconds_per_slice = 0.004, .turns = 5};
  return {.seconds_per_slice = 0.01, .turns = 11};
}

}  // namespace keel::bench

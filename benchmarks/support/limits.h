// What the machine can do at most, by loops that do nothing else: measured in the same run as what
// is held against it.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"

namespace keel::bench {

// Each measures for some tenths of a second and gives its best slice.
double peak_gflops(int threads);  // float32 multiply-add
// bfloat16 products into float32, by tiles if there are any; 0: none in the target
double peak_bfloat16_gflops(int threads);
double stream_read_gbps(int threads);  // memory far above the caches
double stream_copy_gbps(int threads);  // bytes read plus bytes written
// Bytes of rows per second of a table, by uniform ids.
double gather_gbps(const float* table, int64_t rows, int64_t dim, int threads);

// The same work as contenders: to take turns with what is compared.
struct PeakWork {
  Contender contender;
  double flops = 0;  // of one call
};
PeakWork peak_work(int threads);
PeakWork peak_bfloat16_work(int threads);  // 0 flops: none in the target
// Rows are asked for so many before their turn, into the L1 cache or the L2.
struct RowDistance {
  int64_t rows = 0;
  bool into_l2 = false;
};
// Sums n rows and writes nothing: at the best distance no lookup of these ids is faster. `dim` is
// 16, 32, 64 or 128 (ValueError).
void read_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, int threads,
               const RowDistance& distance);
// The distance that is measured to be best for these batches of ids.
RowDistance best_distance(const float* table, int64_t dim, const std::vector<BagBatch>& batches,
                          int threads);

}  // namespace keel::bench

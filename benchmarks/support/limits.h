// Measures the limits of the machine with loops that do nothing else, in the same run as the work
// that is compared with them.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"

namespace keel::bench {

// Each function measures for some tenths of a second and returns its best slice.
double peak_gflops(int threads);  // float32 multiply-adds
// bfloat16 products that sum in float32, in tiles if available; 0 if the target has none
double peak_bfloat16_gflops(int threads);
double stream_read_gbps(int threads);  // memory much larger than the caches
double stream_copy_gbps(int threads);  // bytes read plus bytes written
// Returns the bytes of rows per second that uniform ids can read from a table.
double gather_gbps(const float* table, int64_t rows, int64_t dim, int threads);

// The work of the limits as contenders, measured in alternation with the compared work.
struct PeakWork {
  Contender contender;
  double flops = 0;  // per call
};
PeakWork peak_work(int threads);
PeakWork peak_bfloat16_work(int threads);  // 0 flops: none in the target
// The number of rows that prefetching is ahead, and its target (L1 or L2).
struct RowDistance {
  int64_t rows = 0;
  bool into_l2 = false;
};
// Sums n rows without writing. At the best prefetch distance, no lookup of these ids is faster.
// Throws ValueError unless `dim` is 16, 32, 64 or 128.
void read_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, int threads,
               const RowDistance& distance);
// Measures the best prefetch distance for these batches of ids.
RowDistance best_distance(const float* table, int64_t dim, const std::vector<BagBatch>& batches,
                          int threads);

}  // namespace keel::bench

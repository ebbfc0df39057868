// Compares the speed of lookups and steps of 16-bit tables with float32 tables.
#pragma once

#include "benchmarks/support/report.h"

namespace keel::bench {

// Measures an EmbeddingEngine on one thread: sums of bags of uniform ids, and the same with an
// exact Adagrad step. "faster" is the speedup over float32.
void measure_table_speed(const Options& options, Report& report);

}  // namespace keel::bench

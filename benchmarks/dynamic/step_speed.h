// The speed of steps and checkpoints of tables for unbounded ids.
#pragma once

#include "benchmarks/support/report.h"

namespace keel::bench {

// Compares training steps of DLRM with those of static tables: with known ids, with 2 % new ids
// under LRU, and with new ids only.
void measure_steps(const Options& options, Report& report);
// Measures the longest step over the median while a table grows, with eviction at its end.
void measure_growth(const Options& options, Report& report);
// Compares writing and restoring a table with a static one of the same bytes.
void measure_checkpoints(const Options& options, Report& report);

}  // namespace keel::bench

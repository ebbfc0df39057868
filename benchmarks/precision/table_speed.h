// How fast tables of 16-bit floats are looked up and stepped, beside those of float32.
#pragma once

#include "benchmarks/support/report.h"

namespace keel::bench {

// Of an EmbeddingEngine on one thread: sums of bags of uniform ids, and the same with an exact
// Adagrad step. "faster" is how many times as fast as float32.
void measure_table_speed(const Options& options, Report& report);

}  // namespace keel::bench

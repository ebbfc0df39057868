// The speed and size of the index of tables for unbounded ids.
#pragma once

#include "benchmarks/support/report.h"

namespace keel::bench {

// Measures finding and inserting batches of ids, over absl::flat_hash_map, and the bytes of a row.
void measure_key_index(const Options& options, Report& report);

}  // namespace keel::bench

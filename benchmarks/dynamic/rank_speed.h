// Training with tables for unbounded ids in two MPI ranks.
#pragma once

#include <optional>

#include "benchmarks/support/options.h"
#include "benchmarks/support/report.h"

namespace keel::bench {

// If this process is a rank that measure_ranks() has started, measures its steps and returns the
// exit code.
std::optional<int> measure_as_rank();
// Compares the speed of two ranks over one, each with its own replica and the same number of
// samples, between tables for unbounded ids and static tables.
void measure_ranks(const Options& options, Report& report);

}  // namespace keel::bench

// The serving plan of a DLRM with tables for unbounded ids, compared with static tables.
#pragma once

#include "benchmarks/support/options.h"
#include "benchmarks/support/report.h"

namespace keel::bench {

void measure_serving(const Options& options, Report& report);

}  // namespace keel::bench

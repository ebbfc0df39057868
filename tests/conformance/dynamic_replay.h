// Replays reference cases of tables for unbounded ids through the public API.
//
// Cases of an engine run under TPUStrategies with every distribution of their replicas over hosts.
// Cases of variables run under a CPUStrategy, where one replica has the samples of all replicas.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel::conformance {

// Returns the failures of a case, one per line; empty if the case passes. Never throws.
std::string replay_dynamic_case(const Config& test_case);

}  // namespace keel::conformance

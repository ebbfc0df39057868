// Replays reference cases of tables for unbounded ids through the public API.
//
// Cases of an engine run under TPUStrategies with every distribution of their replicas over hosts.
// Cases of variables run under a CPUStrategy, where one replica has the samples of all replicas,
// and, without sequences, in the replicas of a TPUStrategy.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <keel/framework/config/config.h>

namespace keel::conformance {

// Returns the failures of a case, one per line; empty if the case passes. Never throws. Collective
// over processes, each of which needs a host: distributions over fewer hosts are left out. If
// `bits` is not null, the case runs with up to 3 hosts, even if it has fewer replicas, and `bits`
// is set to hashes of the tables at the end by "engine" or "variable" and the number of hosts.
std::string replay_dynamic_case(const Config& test_case,
                                std::map<std::string, uint64_t>* bits = nullptr);

}  // namespace keel::conformance

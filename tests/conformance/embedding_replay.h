// Replays reference cases of embeddings through the public API. Every case is an object {"name",
// "inputs", "expected"}. Its inputs specify the mode ("host", "engine" or "host_and_engine") and
// what is looked up or trained.
//
// Host cases run under a CPUStrategy. Engine cases run under TPUStrategies with several numbers of
// cores and hosts, all of which must give the expected results.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel::conformance {

// Returns the failures of a case, one per line: expected and actual values, an error of the
// library, or an unknown kind, optimizer or field. Empty if the case passes. Never throws.
std::string replay_embedding_case(const Config& test_case);

}  // namespace keel::conformance

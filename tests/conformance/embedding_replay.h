// Replays reference cases of embeddings through the public API: every case is an object
// {"name", "inputs", "expected"} whose inputs say in which mode ("host", "engine" or
// "host_and_engine") what is looked up or trained.
//
// Host cases run under a CPUStrategy; engine cases under TPUStrategies of several numbers of cores
// and hosts, all of which must give what is expected.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel::conformance {

// What went wrong, line by line: expected and got, an error of the library, or a kind, optimizer
// or field that is unknown. Empty if the case passes. Never throws.
std::string replay_embedding_case(const Config& test_case);

}  // namespace keel::conformance

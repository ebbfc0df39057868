// The accelerator system of a strategy, which holds at most one active embedding engine.
#pragma once

#include <memory>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/strategy.h>

namespace keel::distribute {

// Makes `engine` the strategy's engine until it is destroyed or the system is initialized again.
// Throws RuntimeError, naming `caller`, if another engine is active.
void set_live_engine(const Strategy& strategy, const std::shared_ptr<EmbeddingEngine>& engine,
                     const char* caller);
// Returns the strategy's engine, or null if there is none.
std::shared_ptr<EmbeddingEngine> live_engine(const Strategy& strategy);
// Throws RuntimeError, naming `caller`, if the strategy has an engine.
void require_no_live_engine(const Strategy& strategy, const char* caller);

// Removes the strategy's engine and its tables (tf.tpu.experimental.initialize_tpu_system), so that
// another engine can be created. Lookups of objects built on the old engine throw RuntimeError from
// then on. Throws RuntimeError if called inside a replica.
void initialize_tpu_system(const Strategy& strategy);

}  // namespace keel::distribute

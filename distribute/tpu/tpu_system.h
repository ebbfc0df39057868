// The accelerator system of a strategy, which holds at most one active embedding engine.
#pragma once

#include <memory>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/strategy.h>

namespace keel::distribute {

// Makes `engine` the active engine of the strategy until the engine is destroyed or
// initialize_tpu_system() is called. Throws RuntimeError, naming `caller`, if another engine is
// active.
void set_live_engine(const Strategy& strategy, const std::shared_ptr<EmbeddingEngine>& engine,
                     const char* caller);
// Returns the active engine of the strategy, or null if there is none.
std::shared_ptr<EmbeddingEngine> live_engine(const Strategy& strategy);
// Throws RuntimeError, naming `caller`, if the strategy has an active engine.
void require_no_live_engine(const Strategy& strategy, const char* caller);

// Deactivates the strategy's engine, so that another one can be created
// (tf.tpu.experimental.initialize_tpu_system). Objects built on the old engine can no longer be
// used: their lookups throw RuntimeError. Throws RuntimeError if called inside a replica.
void initialize_tpu_system(const Strategy& strategy);

}  // namespace keel::distribute

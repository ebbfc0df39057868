// The active embedding engine of a strategy's accelerator, of which there is at most one.
#pragma once

#include <memory>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/strategy.h>

namespace keel::distribute {

// Makes `engine` the active engine of the strategy until the engine is destroyed or
// initialize_tpu_system() is called. Throws RuntimeError, naming `caller`, if another engine is
// active.
void set_active_engine(const Strategy& strategy, const std::shared_ptr<EmbeddingEngine>& engine,
                       const char* caller);
// Returns the active engine of the strategy, or null if there is none.
std::shared_ptr<EmbeddingEngine> active_engine(const Strategy& strategy);
// Throws RuntimeError, naming `caller`, if the strategy has an active engine.
void require_no_active_engine(const Strategy& strategy, const char* caller);

}  // namespace keel::distribute

// The accelerator system of a strategy: it holds at most one live embedding engine.
#pragma once

#include <memory>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/strategy.h>

namespace keel::distribute {

// Makes `engine` the strategy's engine, for as long as somebody holds it or until the system is
// initialized again. RuntimeError, naming `caller`, if another is live.
void set_live_engine(const Strategy& strategy, const std::shared_ptr<EmbeddingEngine>& engine,
                     const char* caller);
// Null if there is none.
std::shared_ptr<EmbeddingEngine> live_engine(const Strategy& strategy);
// RuntimeError, naming `caller`, if there is one.
void require_no_live_engine(const Strategy& strategy, const char* caller);

// Forgets the engine and all that it holds (tf.tpu.experimental.initialize_tpu_system): another may
// be built then. Lookups of objects built on the old one are RuntimeErrors from then on.
// RuntimeError inside a replica.
void initialize_tpu_system(const Strategy& strategy);

}  // namespace keel::distribute

#include <map>
#include <mutex>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>

namespace keel::distribute {
namespace {

struct Systems {
  std::mutex mutex;  // guards engines
  std::map<std::weak_ptr<const void>, std::weak_ptr<EmbeddingEngine>, std::owner_less<>> engines;
};

Systems& systems() {
  static Systems all;
  return all;
}

void erase_expired_strategies(Systems& s) {
  std::erase_if(s.engines, [](const auto& entry) { return entry.first.expired(); });
}

[[noreturn]] void throw_engine_exists(const char* caller) {
  throw RuntimeError(caller,
                     ": the strategy's accelerator already runs an embedding engine, and a program "
                     "can have one TPUEmbedding at a time; destroy the other one, or call "
                     "initialize_tpu_system, which clears its tables");
}

}  // namespace

void set_active_engine(const Strategy& strategy, const std::shared_ptr<EmbeddingEngine>& engine,
                       const char* caller) {
  Systems& s = systems();
  const std::lock_guard lock(s.mutex);
  erase_expired_strategies(s);
  std::weak_ptr<EmbeddingEngine>& slot = s.engines[strategy.lifetime()];
  if (!slot.expired()) throw_engine_exists(caller);
  slot = engine;
}

std::shared_ptr<EmbeddingEngine> active_engine(const Strategy& strategy) {
  Systems& s = systems();
  const std::lock_guard lock(s.mutex);
  const auto it = s.engines.find(strategy.lifetime());
  return it == s.engines.end() ? nullptr : it->second.lock();
}

void require_no_active_engine(const Strategy& strategy, const char* caller) {
  if (active_engine(strategy) != nullptr) throw_engine_exists(caller);
}

void initialize_tpu_system(const Strategy& strategy) {
  if (current_replica_context() != nullptr) {
    throw RuntimeError(
        "initialize_tpu_system: called inside a replica; call it from the main program");
  }
  Systems& s = systems();
  const std::lock_guard lock(s.mutex);
  s.engines.erase(strategy.lifetime());
}

}  // namespace keel::distribute

#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/internal/backend.h>

namespace keel {

void TPUEmbeddingLayer::V0Backend::check_strategy() const {
  const distribute::Strategy& now = distribute::Strategy::current();
  if (!now.is_tpu()) {
    throw RuntimeError(
        "TPUEmbedding: the layer was created under a TPUStrategy and is called under ", now.name(),
        "; pass serving_config for lookups outside its own strategy");
  }
}

}  // namespace keel

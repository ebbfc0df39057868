#include <keel/layers/internal/layer_extension.h>

// Every layer of keel_compat that files may name: the interfaces of other packages and of earlier
// versions. See builtin_layers.cc.
// clang-format off
#define KEEL_COMPAT_LAYERS(X) \
  X(DenseFeaturesLayer) \
  X(DistributedEmbeddingLayer) \
  X(EmbeddingFeaturesLayer) \
  X(SequenceFeaturesLayer)
// clang-format on

KEEL_DEFINE_LAYER_LIST(compat, KEEL_COMPAT_LAYERS)

namespace keel::internal {

static const LayerExtension compat_layers(register_compat_layers);

}  // namespace keel::internal

// The target keel_compat makes the linker look for this symbol, and so keep this source.
extern "C" const char keel_compat_is_linked = 1;

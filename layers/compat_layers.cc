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

KEEL_DEFINE_LAYER_EXTENSION(compat, KEEL_COMPAT_LAYERS)

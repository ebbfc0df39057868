#include <keel/layers/embedding/mid_level/tpu_embedding_v0.h>

#include <keel/distribute/strategy.h>

namespace keel::tpu {
namespace {

constexpr char kCaller[] = "TPUEmbeddingV0";

Nest<FeatureConfig> under_tpu(const Nest<FeatureConfig>& features) {
  const distribute::Strategy& now = distribute::Strategy::current();
  if (!now.is_tpu()) {
    throw RuntimeError(kCaller, ": must be constructed in the scope of a TPUStrategy, received ",
                       now.name());
  }
  return features;
}

}  // namespace

TPUEmbeddingV0::TPUEmbeddingV0(const Nest<FeatureConfig>& feature_config,
                               const EmbeddingOptimizer& optimizer)
    : VariableEmbedding(kCaller, under_tpu(feature_config), optimizer, LookupRules::kV0) {}

}  // namespace keel::tpu

#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>

namespace keel::tpu {
namespace {

constexpr char kV0Caller[] = "TPUEmbeddingV0";

Nest<FeatureConfig> under_tpu(const Nest<FeatureConfig>& features) {
  const distribute::Strategy& now = distribute::Strategy::current();
  if (!now.is_tpu()) {
    throw RuntimeError(kV0Caller, ": must be constructed in the scope of a TPUStrategy, received ",
                       now.name());
  }
  return features;
}

const Nest<FeatureConfig>& static_features(const Nest<FeatureConfig>& features) {
  reject_dynamic(collect_tables(features, {}), kV0Caller);
  return features;
}

}  // namespace

TPUEmbeddingV0::TPUEmbeddingV0(const Nest<FeatureConfig>& feature_config,
                               const EmbeddingOptimizer& optimizer)
    : VariableEmbedding(kV0Caller, static_features(under_tpu(feature_config)), optimizer,
                        LookupRules::kV0) {}

}  // namespace keel::tpu

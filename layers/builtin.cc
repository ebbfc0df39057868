#include "layers/core/activation.h"
#include "layers/core/dense.h"
#include "layers/core/dropout.h"
#include "layers/core/embedding.h"
#include "layers/core/flatten.h"
#include "layers/core/identity.h"
#include "layers/core/masking.h"
#include "layers/core/relu.h"
#include "layers/core/reshape.h"
#include "layers/embedding/distributed_embedding.h"
#include "layers/embedding/embed_reduce.h"
#include "layers/embedding/partial_tpu_embedding.h"
#include "layers/embedding/tpu_embedding.h"
#include "layers/estimator/dense_features.h"
#include "layers/estimator/embedding_features.h"
#include "layers/functional.h"
#include "layers/input_layer.h"
#include "layers/interaction/dot_interaction.h"
#include "layers/interaction/feature_cross.h"
#include "layers/keras_keys.h"
#include "layers/merging/concatenate.h"
#include "layers/merging/dot.h"
#include "layers/merging/merge.h"
#include "layers/normalization/batch_normalization.h"
#include "layers/normalization/layer_normalization.h"
#include "layers/normalization/normalization.h"
#include "layers/normalization/rescaling.h"
#include "layers/preprocessing/discretization.h"
#include "layers/preprocessing/hashing.h"
#include "layers/preprocessing/integer_lookup.h"
#include "layers/preprocessing/string_lookup.h"
#include "layers/registry.h"
#include "layers/sequential.h"

namespace keel {
namespace {

void add_models(Registry<Layer>& r) {
  r.add(FunctionalModel::kClassName,
        [](const Config& c) { return FunctionalModel::from_config(c).shared(); });
  r.add("Model", [](const Config& c) { return FunctionalModel::from_config(c).shared(); });
  r.add(SequentialModel::kClassName,
        [](const Config& c) { return SequentialModel::from_config(c).shared(); });
}

// Every layer that files may name. A reader sees them all here; nothing registers itself. A new
// layer is its header, source and test, listed in layers/ and tests/CMakeLists.txt, a line here,
// and a case in tests/layers/conformance_test.cc.
void add_builtin_layers(Registry<Layer>& r) {
  add_models(r);
  r.add<ActivationLayer>();
  r.add<AddLayer>();
  r.add<AverageLayer>();
  r.add<BatchNormalizationLayer>();
  r.add<ConcatenateLayer>();
  r.add<DenseFeaturesLayer>();
  r.add<DenseLayer>();
  r.add<DiscretizationLayer>();
  r.add(DistributedEmbeddingLayer::kClassName,
        [](const Config& c) { return DistributedEmbeddingLayer::from_config(c); });
  r.add<DotInteractionLayer>();
  r.add<DotLayer>();
  r.add<DropoutLayer>();
  r.add<EmbedReduceLayer>();
  r.add(EmbeddingFeaturesLayer::kClassName,
        [](const Config& c) { return EmbeddingFeaturesLayer::from_config(c); });
  r.add<EmbeddingLayer>();
  r.add<FeatureCrossLayer>();
  r.add<FlattenLayer>();
  r.add<HashingLayer>();
  r.add<IdentityLayer>();
  r.add<InputLayer>();
  r.add<IntegerLookupLayer>();
  r.add<LayerNormalizationLayer>();
  r.add<MaskingLayer>();
  r.add<MaximumLayer>();
  r.add<MinimumLayer>();
  r.add<MultiplyLayer>();
  r.add<NormalizationLayer>();
  r.add(PartialTPUEmbeddingLayer::kClassName,
        [](const Config& c) { return PartialTPUEmbeddingLayer::from_config(c); });
  r.add<ReLULayer>();
  r.add<RescalingLayer>();
  r.add<ReshapeLayer>();
  r.add<SequenceFeaturesLayer>();
  r.add<StringLookupLayer>();
  r.add<SubtractLayer>();
  r.add(TPUEmbeddingLayer::kClassName,
        [](const Config& c) { return TPUEmbeddingLayer::from_config(c); });
}

}  // namespace

Registry<Layer>& layer_registry() {
  static Registry<Layer>& registry = []() -> Registry<Layer>& {
    static Registry<Layer> all("layer");
    add_builtin_layers(all);
    return all;
  }();
  return registry;
}

namespace layers {

Config serialize(const Layer& layer) {
  Config config = layer.get_config();
  if (config.find("trainable") != nullptr) config.set("trainable", layer.trainable());
  return Config::dict({{"class_name", layer.class_name()},
                       {"config", to_keras(layer.class_name(), std::move(config))}});
}

LayerHandle<Layer> deserialize(const Config& config) {
  const std::string& full_name = config["class_name"].string();
  // Files of keras_rs name the package too; the classes are the same.
  constexpr std::string_view kPackage = "keras_rs>";
  const std::string class_name =
      full_name.starts_with(kPackage) ? full_name.substr(kPackage.size()) : full_name;
  return LayerHandle<Layer>(
      kAdopt, layer_registry().make(class_name, from_keras(class_name, config["config"])));
}

}  // namespace layers
}  // namespace keel

#include <keel/layers/internal/keras_keys.h>
#include <keel/layers/internal/layer_extension.h>
#include <keel/layers/internal/shared_layers.h>
#include <keel/layers/registry.h>

// Every layer and model of keel_layers that files may name. A new layer needs a header, a source
// with KEEL_REGISTER(Layer, MyLayer), a test, and a line in this list, or in that of
// catalog_layers.cc or compat_layers.cc if its folder belongs to keel_catalog or keel_compat
// (cmake/KeelExtensions.cmake).
// clang-format off
#define KEEL_BUILTIN_LAYERS(X) \
  X(ActivationLayer) \
  X(ActivityRegularizationLayer) \
  X(AddLayer) \
  X(AlphaDropoutLayer) \
  X(AverageLayer) \
  X(BatchNormalizationLayer) \
  X(CategoryEncodingLayer) \
  X(ConcatenateLayer) \
  X(Cropping1DLayer) \
  X(Cropping2DLayer) \
  X(Cropping3DLayer) \
  X(DenseLayer) \
  X(DiscretizationLayer) \
  X(DotInteractionLayer) \
  X(DotLayer) \
  X(DropoutLayer) \
  X(EinsumDenseLayer) \
  X(ELULayer) \
  X(EmbeddingLayer) \
  X(EmbedReduceLayer) \
  X(FeatureCrossLayer) \
  X(FeatureSpaceLayer) \
  X(FlattenLayer) \
  X(FunctionalModel) \
  X(GaussianDropoutLayer) \
  X(GaussianNoiseLayer) \
  X(GroupNormalizationLayer) \
  X(HashedCrossingLayer) \
  X(HashingLayer) \
  X(IdentityLayer) \
  X(InputLayer) \
  X(IntegerLookupLayer) \
  X(LambdaLayer) \
  X(LayerNormalizationLayer) \
  X(LeakyReLULayer) \
  X(MaskingLayer) \
  X(MaximumLayer) \
  X(MinimumLayer) \
  X(MultiplyLayer) \
  X(NormalizationLayer) \
  X(PartialTPUEmbeddingLayer) \
  X(PermuteLayer) \
  X(PositionWeightsLayer) \
  X(PReLULayer) \
  X(ReLULayer) \
  X(RepeatVectorLayer) \
  X(RescalingLayer) \
  X(ReshapeLayer) \
  X(ReversibleEmbeddingLayer) \
  X(RMSNormalizationLayer) \
  X(SequentialModel) \
  X(SoftmaxLayer) \
  X(StringLookupLayer) \
  X(SubtractLayer) \
  X(TernaryDenseLayer) \
  X(TextVectorizationLayer) \
  X(TPUEmbeddingLayer) \
  X(UnitNormalizationLayer) \
  X(ZeroPadding1DLayer) \
  X(ZeroPadding2DLayer) \
  X(ZeroPadding3DLayer)
// clang-format on

KEEL_DEFINE_LAYER_LIST(builtin, KEEL_BUILTIN_LAYERS)

namespace keel {
namespace internal {
namespace {

constinit const LayerExtension* first_extension = nullptr;
constinit Registry<Layer>* made_registry = nullptr;

}  // namespace

LayerExtension::LayerExtension(Add add) : add_(add), next_(first_extension) {
  first_extension = this;
  if (made_registry != nullptr) add_(*made_registry);
}

void add_extensions(Registry<Layer>& registry) {
  made_registry = &registry;
  for (const LayerExtension* one = first_extension; one != nullptr; one = one->next_) {
    one->add_(registry);
  }
}

}  // namespace internal

Registry<Layer>& layer_registry() {
  static Registry<Layer>& registry = []() -> Registry<Layer>& {
    static Registry<Layer> all("layer");
    internal::register_builtin_layers(all);
    internal::add_extensions(all);
    return all;
  }();
  return registry;
}

namespace layers {

Config serialize(const Layer& layer) {
  SharedLayerWriter shared;
  Config config = layer.get_config();
  if (config.find("trainable") != nullptr) config.set("trainable", layer.trainable());
  const std::string class_name = layer_registry().name_of(layer);
  Config values = to_keras(class_name, std::move(config));
  Config out = Config::dict({{"class_name", class_name}, {"config", std::move(values)}});
  shared.number(layer, out);
  return shared.finish(std::move(out));
}

LayerHandle<Layer> deserialize(const Config& config) {
  SharedLayerReader shared;
  if (auto layer = shared.find(config)) return {kAdopt, std::move(layer)};
  const std::string class_name = class_from_keras(config["class_name"].string());
  const std::string ignored_keys = layer_registry().traits(class_name).ignored_keys;
  const std::shared_ptr<Layer> layer =
      layer_registry().make(class_name, from_keras(class_name, ignored_keys, config["config"]));
  shared.add(config, layer);
  return {kAdopt, layer};
}

}  // namespace layers
}  // namespace keel

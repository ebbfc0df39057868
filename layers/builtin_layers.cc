#include <keel/layers/internal/keras_keys.h>
#include <keel/layers/registry.h>

// Every layer and model that files may name. A new layer needs a header, a source with
// KEEL_REGISTER(Layer, MyLayer), a test, and a line in this list.
// clang-format off
#define KEEL_BUILTIN_LAYERS(X) \
  X(ActivationLayer) \
  X(ActivityRegularizationLayer) \
  X(AdaptiveAveragePooling1DLayer) \
  X(AdaptiveAveragePooling2DLayer) \
  X(AdaptiveAveragePooling3DLayer) \
  X(AdaptiveMaxPooling1DLayer) \
  X(AdaptiveMaxPooling2DLayer) \
  X(AdaptiveMaxPooling3DLayer) \
  X(AdditiveAttentionLayer) \
  X(AddLayer) \
  X(AlphaDropoutLayer) \
  X(AttentionLayer) \
  X(AugMixLayer) \
  X(AutoContrastLayer) \
  X(AverageLayer) \
  X(AveragePooling1DLayer) \
  X(AveragePooling2DLayer) \
  X(AveragePooling3DLayer) \
  X(BatchNormalizationLayer) \
  X(BidirectionalLayer) \
  X(BruteForceRetrievalLayer) \
  X(CategoryEncodingLayer) \
  X(CenterCropLayer) \
  X(ConcatenateLayer) \
  X(ContrastLimitedAdaptiveHistogramEqualizationLayer) \
  X(Conv1DLayer) \
  X(Conv1DTransposeLayer) \
  X(Conv2DLayer) \
  X(Conv2DTransposeLayer) \
  X(Conv3DLayer) \
  X(Conv3DTransposeLayer) \
  X(ConvLSTM1DLayer) \
  X(ConvLSTM2DLayer) \
  X(ConvLSTM3DLayer) \
  X(Cropping1DLayer) \
  X(Cropping2DLayer) \
  X(Cropping3DLayer) \
  X(CutMixLayer) \
  X(DenseFeaturesLayer) \
  X(DenseLayer) \
  X(DepthwiseConv1DLayer) \
  X(DepthwiseConv2DLayer) \
  X(DiscretizationLayer) \
  X(DistributedEmbeddingLayer) \
  X(DotInteractionLayer) \
  X(DotLayer) \
  X(DropoutLayer) \
  X(EinsumDenseLayer) \
  X(ELULayer) \
  X(EmbeddingFeaturesLayer) \
  X(EmbeddingLayer) \
  X(EmbedReduceLayer) \
  X(EqualizationLayer) \
  X(FeatureCrossLayer) \
  X(FeatureSpaceLayer) \
  X(FlattenLayer) \
  X(FunctionalModel) \
  X(GaussianDropoutLayer) \
  X(GaussianNoiseLayer) \
  X(GlobalAveragePooling1DLayer) \
  X(GlobalAveragePooling2DLayer) \
  X(GlobalAveragePooling3DLayer) \
  X(GlobalMaxPooling1DLayer) \
  X(GlobalMaxPooling2DLayer) \
  X(GlobalMaxPooling3DLayer) \
  X(GroupedQueryAttentionLayer) \
  X(GroupNormalizationLayer) \
  X(GRUCellLayer) \
  X(GRULayer) \
  X(HashedCrossingLayer) \
  X(HashingLayer) \
  X(IdentityLayer) \
  X(InputLayer) \
  X(IntegerLookupLayer) \
  X(LambdaLayer) \
  X(LayerNormalizationLayer) \
  X(LeakyReLULayer) \
  X(LSTMCellLayer) \
  X(LSTMLayer) \
  X(MaskingLayer) \
  X(MaximumLayer) \
  X(MaxNumBoundingBoxesLayer) \
  X(MaxPooling1DLayer) \
  X(MaxPooling2DLayer) \
  X(MaxPooling3DLayer) \
  X(MelSpectrogramLayer) \
  X(MinimumLayer) \
  X(MixUpLayer) \
  X(MultiHeadAttentionLayer) \
  X(MultiplyLayer) \
  X(NormalizationLayer) \
  X(OperatorLayer) \
  X(PartialTPUEmbeddingLayer) \
  X(PermuteLayer) \
  X(PipelineLayer) \
  X(PositionWeightsLayer) \
  X(PReLULayer) \
  X(RandAugmentLayer) \
  X(RandomBrightnessLayer) \
  X(RandomColorDegenerationLayer) \
  X(RandomColorJitterLayer) \
  X(RandomContrastLayer) \
  X(RandomCropLayer) \
  X(RandomElasticTransformLayer) \
  X(RandomErasingLayer) \
  X(RandomFlipLayer) \
  X(RandomGaussianBlurLayer) \
  X(RandomGrayscaleLayer) \
  X(RandomHueLayer) \
  X(RandomInvertLayer) \
  X(RandomPerspectiveLayer) \
  X(RandomPosterizationLayer) \
  X(RandomRotationLayer) \
  X(RandomSaturationLayer) \
  X(RandomSharpnessLayer) \
  X(RandomShearLayer) \
  X(RandomTranslationLayer) \
  X(RandomZoomLayer) \
  X(ReLULayer) \
  X(RepeatVectorLayer) \
  X(RescalingLayer) \
  X(ReshapeLayer) \
  X(ResizingLayer) \
  X(ReversibleEmbeddingLayer) \
  X(RMSNormalizationLayer) \
  X(RNNLayer) \
  X(SeparableConv1DLayer) \
  X(SeparableConv2DLayer) \
  X(SequenceFeaturesLayer) \
  X(SequentialModel) \
  X(SimpleRNNCellLayer) \
  X(SimpleRNNLayer) \
  X(SoftmaxLayer) \
  X(SolarizationLayer) \
  X(SpatialDropout1DLayer) \
  X(SpatialDropout2DLayer) \
  X(SpatialDropout3DLayer) \
  X(SpectralNormalizationLayer) \
  X(StackedRNNCellsLayer) \
  X(STFTSpectrogramLayer) \
  X(StringLookupLayer) \
  X(SubtractLayer) \
  X(TernaryDenseLayer) \
  X(TextVectorizationLayer) \
  X(TimeDistributedLayer) \
  X(TPUEmbeddingLayer) \
  X(UnitNormalizationLayer) \
  X(UpSampling1DLayer) \
  X(UpSampling2DLayer) \
  X(UpSampling3DLayer) \
  X(WrapperLayer) \
  X(ZeroPadding1DLayer) \
  X(ZeroPadding2DLayer) \
  X(ZeroPadding3DLayer)
// clang-format on

namespace keel {
namespace internal {

#define DECLARE(name) KEEL_DECLARE_REGISTRATION(Layer, name)
KEEL_BUILTIN_LAYERS(DECLARE)
#undef DECLARE

}  // namespace internal

Registry<Layer>& layer_registry() {
  static Registry<Layer>& registry = []() -> Registry<Layer>& {
    static Registry<Layer> all("layer");
#define ADD(name) internal::register_##name(all);
    KEEL_BUILTIN_LAYERS(ADD)
#undef ADD
    return all;
  }();
  return registry;
}

namespace layers {

Config serialize(const Layer& layer) {
  Config config = layer.get_config();
  if (config.find("trainable") != nullptr) config.set("trainable", layer.trainable());
  const std::string class_name = layer_registry().name_of(layer);
  Config values = to_keras(class_name, std::move(config));
  return Config::dict({{"class_name", class_name}, {"config", std::move(values)}});
}

LayerHandle<Layer> deserialize(const Config& config) {
  const std::string class_name = class_from_keras(config["class_name"].string());
  const std::string ignored_keys = layer_registry().traits(class_name).ignored_keys;
  return LayerHandle<Layer>(
      kAdopt,
      layer_registry().make(class_name, from_keras(class_name, ignored_keys, config["config"])));
}

}  // namespace layers
}  // namespace keel

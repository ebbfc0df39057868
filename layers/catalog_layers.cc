#include <keel/layers/internal/layer_extension.h>

// Every layer of keel_catalog that files may name: families that few recommenders use. See
// builtin_layers.cc.
// clang-format off
#define KEEL_CATALOG_LAYERS(X) \
  X(AdaptiveAveragePooling1DLayer) \
  X(AdaptiveAveragePooling2DLayer) \
  X(AdaptiveAveragePooling3DLayer) \
  X(AdaptiveMaxPooling1DLayer) \
  X(AdaptiveMaxPooling2DLayer) \
  X(AdaptiveMaxPooling3DLayer) \
  X(AdditiveAttentionLayer) \
  X(AttentionLayer) \
  X(AugMixLayer) \
  X(AutoContrastLayer) \
  X(AveragePooling1DLayer) \
  X(AveragePooling2DLayer) \
  X(AveragePooling3DLayer) \
  X(BidirectionalLayer) \
  X(BruteForceRetrievalLayer) \
  X(CenterCropLayer) \
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
  X(CutMixLayer) \
  X(DepthwiseConv1DLayer) \
  X(DepthwiseConv2DLayer) \
  X(EqualizationLayer) \
  X(GlobalAveragePooling1DLayer) \
  X(GlobalAveragePooling2DLayer) \
  X(GlobalAveragePooling3DLayer) \
  X(GlobalMaxPooling1DLayer) \
  X(GlobalMaxPooling2DLayer) \
  X(GlobalMaxPooling3DLayer) \
  X(GroupedQueryAttentionLayer) \
  X(GRUCellLayer) \
  X(GRULayer) \
  X(LSTMCellLayer) \
  X(LSTMLayer) \
  X(MaxNumBoundingBoxesLayer) \
  X(MaxPooling1DLayer) \
  X(MaxPooling2DLayer) \
  X(MaxPooling3DLayer) \
  X(MelSpectrogramLayer) \
  X(MixUpLayer) \
  X(MultiHeadAttentionLayer) \
  X(OperatorLayer) \
  X(PipelineLayer) \
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
  X(ResizingLayer) \
  X(RNNLayer) \
  X(SeparableConv1DLayer) \
  X(SeparableConv2DLayer) \
  X(SimpleRNNCellLayer) \
  X(SimpleRNNLayer) \
  X(SolarizationLayer) \
  X(SpatialDropout1DLayer) \
  X(SpatialDropout2DLayer) \
  X(SpatialDropout3DLayer) \
  X(SpectralNormalizationLayer) \
  X(StackedRNNCellsLayer) \
  X(STFTSpectrogramLayer) \
  X(TimeDistributedLayer) \
  X(UpSampling1DLayer) \
  X(UpSampling2DLayer) \
  X(UpSampling3DLayer) \
  X(WrapperLayer)
// clang-format on

KEEL_DEFINE_LAYER_LIST(catalog, KEEL_CATALOG_LAYERS)

namespace keel::internal {

static const LayerExtension catalog_layers(register_catalog_layers);

}  // namespace keel::internal

// The target keel_catalog makes the linker look for this symbol, and so keep this source.
extern "C" const char keel_catalog_is_linked = 1;

#include "layers/activation/activation.h"
#include "layers/activation/elu.h"
#include "layers/activation/leaky_relu.h"
#include "layers/activation/prelu.h"
#include "layers/activation/relu.h"
#include "layers/activation/softmax.h"
#include "layers/attention/attention.h"
#include "layers/attention/grouped_query_attention.h"
#include "layers/attention/multi_head_attention.h"
#include "layers/convolution/conv1d.h"
#include "layers/convolution/depthwise_conv1d.h"
#include "layers/convolution/separable_conv1d.h"
#include "layers/core/dense.h"
#include "layers/core/einsum_dense.h"
#include "layers/core/embedding.h"
#include "layers/core/identity.h"
#include "layers/core/masking.h"
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
#include "layers/normalization/group_normalization.h"
#include "layers/normalization/layer_normalization.h"
#include "layers/normalization/normalization.h"
#include "layers/normalization/rescaling.h"
#include "layers/normalization/rms_normalization.h"
#include "layers/normalization/unit_normalization.h"
#include "layers/pooling/average_pooling1d.h"
#include "layers/pooling/global_average_pooling1d.h"
#include "layers/pooling/global_max_pooling1d.h"
#include "layers/pooling/max_pooling1d.h"
#include "layers/preprocessing/category_encoding.h"
#include "layers/preprocessing/discretization.h"
#include "layers/preprocessing/hashing.h"
#include "layers/preprocessing/integer_lookup.h"
#include "layers/preprocessing/string_lookup.h"
#include "layers/recurrent/gru.h"
#include "layers/recurrent/gru_cell.h"
#include "layers/recurrent/lstm.h"
#include "layers/recurrent/lstm_cell.h"
#include "layers/recurrent/simple_rnn.h"
#include "layers/recurrent/simple_rnn_cell.h"
#include "layers/registry.h"
#include "layers/regularization/activity_regularization.h"
#include "layers/regularization/alpha_dropout.h"
#include "layers/regularization/dropout.h"
#include "layers/regularization/gaussian_dropout.h"
#include "layers/regularization/gaussian_noise.h"
#include "layers/regularization/spatial_dropout1d.h"
#include "layers/reshaping/cropping1d.h"
#include "layers/reshaping/flatten.h"
#include "layers/reshaping/permute.h"
#include "layers/reshaping/repeat_vector.h"
#include "layers/reshaping/reshape.h"
#include "layers/reshaping/up_sampling1d.h"
#include "layers/reshaping/zero_padding1d.h"
#include "layers/retrieval/brute_force_retrieval.h"
#include "layers/sequential.h"
#include "layers/wrappers/bidirectional.h"
#include "layers/wrappers/time_distributed.h"

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
// and a case in tests/layers/conformance_test.cc. One whose call() has no `training` in Keras
// stands in takes_training (keras_calls.cc) too, one that plans should run by themselves in
// serving/planner.h or, if it is a function of each element, serving/row_function.h.
void add_builtin_layers(Registry<Layer>& r) {
  add_models(r);
  r.add<ActivationLayer>();
  r.add<ActivityRegularizationLayer>();
  r.add<AddLayer>();
  r.add<AdditiveAttentionLayer>();
  r.add<AlphaDropoutLayer>();
  r.add<AttentionLayer>();
  r.add<AverageLayer>();
  r.add<AveragePooling1DLayer>();
  r.add<BatchNormalizationLayer>();
  r.add(BidirectionalLayer::kClassName,
        [](const Config& c) { return BidirectionalLayer::from_config(c); });
  r.add<BruteForceRetrievalLayer>();
  r.add<CategoryEncodingLayer>();
  r.add<ConcatenateLayer>();
  r.add<Conv1DLayer>();
  r.add<Cropping1DLayer>();
  r.add<DenseLayer>();
  r.add<DenseFeaturesLayer>();
  r.add<DepthwiseConv1DLayer>();
  r.add<DiscretizationLayer>();
  r.add(DistributedEmbeddingLayer::kClassName,
        [](const Config& c) { return DistributedEmbeddingLayer::from_config(c); });
  r.add<DotLayer>();
  r.add<DotInteractionLayer>();
  r.add<DropoutLayer>();
  r.add<EinsumDenseLayer>();
  r.add<ELULayer>();
  r.add<EmbeddingLayer>();
  r.add(EmbeddingFeaturesLayer::kClassName,
        [](const Config& c) { return EmbeddingFeaturesLayer::from_config(c); });
  r.add<EmbedReduceLayer>();
  r.add<FeatureCrossLayer>();
  r.add<FlattenLayer>();
  r.add<GaussianDropoutLayer>();
  r.add<GaussianNoiseLayer>();
  r.add<GlobalAveragePooling1DLayer>();
  r.add<GlobalMaxPooling1DLayer>();
  r.add<GroupedQueryAttentionLayer>();
  r.add<GroupNormalizationLayer>();
  r.add<GRULayer>();
  r.add<GRUCellLayer>();
  r.add<HashingLayer>();
  r.add<IdentityLayer>();
  r.add<InputLayer>();
  r.add<IntegerLookupLayer>();
  r.add<LayerNormalizationLayer>();
  r.add<LeakyReLULayer>();
  r.add<LSTMLayer>();
  r.add<LSTMCellLayer>();
  r.add<MaskingLayer>();
  r.add<MaximumLayer>();
  r.add<MaxPooling1DLayer>();
  r.add<MinimumLayer>();
  r.add<MultiHeadAttentionLayer>();
  r.add<MultiplyLayer>();
  r.add<NormalizationLayer>();
  r.add(PartialTPUEmbeddingLayer::kClassName,
        [](const Config& c) { return PartialTPUEmbeddingLayer::from_config(c); });
  r.add<PermuteLayer>();
  r.add<PReLULayer>();
  r.add<ReLULayer>();
  r.add<RepeatVectorLayer>();
  r.add<RescalingLayer>();
  r.add<ReshapeLayer>();
  r.add<RMSNormalizationLayer>();
  r.add<SeparableConv1DLayer>();
  r.add<SequenceFeaturesLayer>();
  r.add<SimpleRNNLayer>();
  r.add<SimpleRNNCellLayer>();
  r.add<SoftmaxLayer>();
  r.add<SpatialDropout1DLayer>();
  r.add<StringLookupLayer>();
  r.add<SubtractLayer>();
  r.add(TimeDistributedLayer::kClassName,
        [](const Config& c) { return TimeDistributedLayer::from_config(c); });
  r.add(TPUEmbeddingLayer::kClassName,
        [](const Config& c) { return TPUEmbeddingLayer::from_config(c); });
  r.add<UnitNormalizationLayer>();
  r.add<UpSampling1DLayer>();
  r.add<ZeroPadding1DLayer>();
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
  const std::string class_name = class_from_keras(config["class_name"].string());
  return LayerHandle<Layer>(
      kAdopt, layer_registry().make(class_name, from_keras(class_name, config["config"])));
}

}  // namespace layers
}  // namespace keel

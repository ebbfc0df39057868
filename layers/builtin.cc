#include <keel/layers/activation/activation.h>
#include <keel/layers/activation/elu.h>
#include <keel/layers/activation/leaky_relu.h>
#include <keel/layers/activation/prelu.h>
#include <keel/layers/activation/relu.h>
#include <keel/layers/activation/softmax.h>
#include <keel/layers/attention/attention.h>
#include <keel/layers/attention/grouped_query_attention.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/convolution/conv1d.h>
#include <keel/layers/convolution/depthwise_conv1d.h>
#include <keel/layers/convolution/separable_conv1d.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/einsum_dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/core/identity.h>
#include <keel/layers/core/masking.h>
#include <keel/layers/embedding/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/partial_tpu_embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/estimator/dense_features.h>
#include <keel/layers/estimator/embedding_features.h>
#include <keel/layers/functional.h>
#include <keel/layers/input_layer.h>
#include <keel/layers/interaction/dot_interaction.h>
#include <keel/layers/interaction/feature_cross.h>
#include <keel/layers/keras_keys.h>
#include <keel/layers/merging/concatenate.h>
#include <keel/layers/merging/dot.h>
#include <keel/layers/merging/merge.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/normalization/group_normalization.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/normalization/rescaling.h>
#include <keel/layers/normalization/rms_normalization.h>
#include <keel/layers/normalization/unit_normalization.h>
#include <keel/layers/pooling/average_pooling1d.h>
#include <keel/layers/pooling/global_average_pooling1d.h>
#include <keel/layers/pooling/global_max_pooling1d.h>
#include <keel/layers/pooling/max_pooling1d.h>
#include <keel/layers/preprocessing/category_encoding.h>
#include <keel/layers/preprocessing/discretization.h>
#include <keel/layers/preprocessing/hashing.h>
#include <keel/layers/preprocessing/integer_lookup.h>
#include <keel/layers/preprocessing/string_lookup.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/gru_cell.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/lstm_cell.h>
#include <keel/layers/recurrent/simple_rnn.h>
#include <keel/layers/recurrent/simple_rnn_cell.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/activity_regularization.h>
#include <keel/layers/regularization/alpha_dropout.h>
#include <keel/layers/regularization/dropout.h>
#include <keel/layers/regularization/gaussian_dropout.h>
#include <keel/layers/regularization/gaussian_noise.h>
#include <keel/layers/regularization/spatial_dropout1d.h>
#include <keel/layers/reshaping/cropping1d.h>
#include <keel/layers/reshaping/flatten.h>
#include <keel/layers/reshaping/permute.h>
#include <keel/layers/reshaping/repeat_vector.h>
#include <keel/layers/reshaping/reshape.h>
#include <keel/layers/reshaping/up_sampling1d.h>
#include <keel/layers/reshaping/zero_padding1d.h>
#include <keel/layers/retrieval/brute_force_retrieval.h>
#include <keel/layers/sequential.h>
#include <keel/layers/wrappers/bidirectional.h>
#include <keel/layers/wrappers/time_distributed.h>

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

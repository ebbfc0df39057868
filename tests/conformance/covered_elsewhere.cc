#include "tests/conformance/known_classes.h"

namespace keel::conformance {
namespace {

constexpr char kOurs[] = "is no class of Keras";
constexpr char kRandom[] = "draws random numbers in training and changes nothing otherwise";
constexpr char kNoNumbers[] = "computes no numbers";
constexpr char kModel[] = "is a model of other layers";
constexpr char kCell[] = "is what a recurrent layer with records runs";
constexpr char kAlias[] = "is another name of what has a record";
constexpr char kNone[] = "the file has no record of it";

const std::vector<CoveredElsewhere>& functions() {
  static const std::vector<CoveredElsewhere> kFunctions = {
      {"activations", "hard_swish", kAlias, "layers/activations_test.cc"},
      {"activations", "swish", kAlias, "layers/activations_test.cc"},
      {"activations", "threshold", kNone, "layers/activations_test.cc"},
      {"initializers", "RowIdInitializer", kOurs, "framework/initializers_test.cc"},
      {"losses", "AutoCrossentropy", kOurs, "layers/losses/loss_test.cc"},
      {"losses", "CategoricalGeneralizedCrossEntropy", kNone, "layers/losses/crossentropy_test.cc"},
      {"losses", "Circle", kNone, "layers/losses/similarity_test.cc"},
      {"losses", "ListMLELoss", kOurs, "layers/losses/list_mle_test.cc"},
      {"losses", "PairwiseHingeLoss", kOurs, "layers/losses/pairwise_test.cc"},
      {"losses", "PairwiseLogisticLoss", kOurs, "layers/losses/pairwise_test.cc"},
      {"losses", "PairwiseMeanSquaredError", kOurs, "layers/losses/pairwise_test.cc"},
      {"losses", "PairwiseSoftZeroOneLoss", kOurs, "layers/losses/pairwise_test.cc"},
      {"metrics", "AutoAccuracy", kOurs, "layers/metrics/metric_test.cc"},
      {"metrics", "AutoCrossentropy", kOurs, "layers/metrics/metric_test.cc"},
      {"metrics", "Calibration", kOurs, "layers/metrics/calibration_test.cc"},
      {"metrics", "DCG", kOurs, "layers/metrics/ranking_test.cc"},
      {"metrics", "ExactAUC", kOurs, "layers/metrics/exact_auc_test.cc"},
      {"metrics", "GAUC", kOurs, "layers/metrics/exact_auc_test.cc"},
      {"metrics", "MeanAveragePrecision", kOurs, "layers/metrics/ranking_test.cc"},
      {"metrics", "MeanMetricWrapper", kNone, "layers/metrics/metric_test.cc"},
      {"metrics", "MeanReciprocalRank", kOurs, "layers/metrics/ranking_test.cc"},
      {"metrics", "NDCG", kOurs, "layers/metrics/ranking_test.cc"},
      {"metrics", "NormalizedEntropy", kOurs, "layers/metrics/calibration_test.cc"},
      {"metrics", "PrecisionAtK", kOurs, "layers/metrics/ranking_test.cc"},
      {"metrics", "RecallAtK", kOurs, "layers/metrics/ranking_test.cc"},
  };
  return kFunctions;
}

const std::vector<CoveredElsewhere>& layers() {
  static const std::vector<CoveredElsewhere> kLayers = {
      {"layers", "ActivityRegularization", kNoNumbers,
       "layers/regularization/activity_regularization_test.cc"},
      {"layers", "AdditiveAttention", kNone, "layers/attention/attention_test.cc"},
      {"layers", "AlphaDropout", kRandom, "layers/regularization/alpha_dropout_test.cc"},
      {"layers", "Bidirectional", kNone, "layers/wrappers/bidirectional_test.cc"},
      {"layers", "BruteForceRetrieval", kOurs, "layers/retrieval/brute_force_retrieval_test.cc"},
      {"layers", "DenseFeatures", kOurs, "layers/estimator/dense_features_test.cc"},
      {"layers", "DepthwiseConv1D", kNone, "layers/convolution/depthwise_conv1d_test.cc"},
      {"layers", "Discretization", kNone, "layers/preprocessing/discretization_test.cc"},
      {"layers", "DistributedEmbedding", kOurs, "layers/embedding/distributed_embedding_test.cc"},
      {"layers", "DotInteraction", kOurs, "layers/interaction/dot_interaction_test.cc"},
      {"layers", "EmbedReduce", kOurs, "layers/embedding/embed_reduce_test.cc"},
      {"layers", "EmbeddingFeatures", kOurs, "layers/estimator/embedding_features_test.cc"},
      {"layers", "FeatureCross", kOurs, "layers/interaction/feature_cross_test.cc"},
      {"layers", "Functional", kModel, "layers/functional_test.cc"},
      {"layers", "GRUCell", kCell, "layers/recurrent/recurrent_cell_test.cc"},
      {"layers", "GaussianDropout", kRandom, "layers/regularization/gaussian_dropout_test.cc"},
      {"layers", "GaussianNoise", kRandom, "layers/regularization/gaussian_noise_test.cc"},
      {"layers", "GroupQueryAttention", kNone, "layers/attention/grouped_query_attention_test.cc"},
      {"layers", "Hashing", kNone, "layers/preprocessing/hashing_test.cc"},
      {"layers", "Identity", kNoNumbers, "layers/core/identity_test.cc"},
      {"layers", "InputLayer", kNoNumbers, "layers/functional_config_test.cc"},
      {"layers", "IntegerLookup", kNone, "layers/preprocessing/integer_lookup_test.cc"},
      {"layers", "LSTMCell", kCell, "layers/recurrent/recurrent_cell_test.cc"},
      {"layers", "Masking", kNoNumbers, "layers/masks_test.cc"},
      {"layers", "Model", kModel, "layers/functional_test.cc"},
      {"layers", "MultiHeadAttention", kNone, "layers/attention/multi_head_attention_test.cc"},
      {"layers", "PartialTPUEmbedding", kOurs, "layers/embedding/partial_tpu_embedding_test.cc"},
      {"layers", "SeparableConv1D", kNone, "layers/convolution/separable_conv1d_test.cc"},
      {"layers", "SequenceFeatures", kOurs, "layers/estimator/dense_features_test.cc"},
      {"layers", "Sequential", kModel, "layers/sequential_test.cc"},
      {"layers", "SimpleRNNCell", kCell, "layers/recurrent/recurrent_cell_test.cc"},
      {"layers", "SpatialDropout1D", kRandom, "layers/regularization/spatial_dropout1d_test.cc"},
      {"layers", "StringLookup", kNone, "layers/preprocessing/string_lookup_test.cc"},
      {"layers", "TPUEmbedding", kOurs, "layers/embedding/tpu_embedding_test.cc"},
      {"layers", "TimeDistributed", kNone, "layers/wrappers/time_distributed_test.cc"},
  };
  return kLayers;
}

}  // namespace

const std::vector<CoveredElsewhere>& covered_elsewhere() {
  static const std::vector<CoveredElsewhere> kAll = [] {
    std::vector<CoveredElsewhere> out = functions();
    out.insert(out.end(), layers().begin(), layers().end());
    return out;
  }();
  return kAll;
}

}  // namespace keel::conformance

#include "tests/conformance/keras_api.h"

#include <absl/strings/str_split.h>

namespace keel::conformance {
namespace {

std::vector<std::string> words(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

KerasSection models() { return {"Models", "keras", {{"", words("Functional Model Sequential")}}}; }

KerasSection layers() {
  return {
      "Layers",
      "keras.layers",
      {{"",
        words("Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveMaxPooling1D "
              "Add AdditiveAttention AlphaDropout Attention Average AveragePooling1D "
              "BatchNormalization Bidirectional CategoryEncoding Concatenate Conv1D "
              "Conv1DTranspose Cropping1D Dense DepthwiseConv1D Discretization Dot Dropout ELU "
              "EinsumDense Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise "
              "GlobalAveragePooling1D GlobalMaxPooling1D GroupNormalization GroupQueryAttention "
              "HashedCrossing Hashing Identity InputLayer IntegerLookup LSTM LSTMCell "
              "LayerNormalization LeakyReLU Masking MaxPooling1D Maximum Minimum "
              "MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN ReLU "
              "RepeatVector Rescaling Reshape ReversibleEmbedding SeparableConv1D SimpleRNN "
              "SimpleRNNCell Softmax SpatialDropout1D SpectralNormalization StackedRNNCells "
              "StringLookup Subtract TernaryDense TextVectorization TimeDistributed "
              "UnitNormalization "
              "UpSampling1D ZeroPadding1D")},
       {"for data of two or three spatial dimensions",
        words("AdaptiveAveragePooling2D AdaptiveAveragePooling3D AdaptiveMaxPooling2D "
              "AdaptiveMaxPooling3D AveragePooling2D AveragePooling3D Conv2D Conv2DTranspose "
              "Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping2D Cropping3D "
              "DepthwiseConv2D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling2D "
              "GlobalMaxPooling3D MaxPooling2D MaxPooling3D SeparableConv2D SpatialDropout2D "
              "SpatialDropout3D UpSampling2D UpSampling3D ZeroPadding2D ZeroPadding3D")},
       {"", words("AugMix AutoContrast CenterCrop ContrastLimitedAdaptiveHistogramEqualization "
                  "CutMix Equalization MaxNumBoundingBoxes MixUp "
                  "RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter "
                  "RandomContrast RandomCrop RandomElasticTransform RandomErasing RandomFlip "
                  "RandomGaussianBlur RandomGrayscale RandomHue RandomInvert RandomPerspective "
                  "RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear "
                  "RandomTranslation RandomZoom Resizing Solarization")},
       {"", words("MelSpectrogram STFTSpectrogram")},
       {"specific to Python; derive from Layer instead", words("Lambda Pipeline Wrapper")},
       {"of other libraries", words("FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper")}}};
}

KerasSection losses() {
  return {
      "Losses",
      "keras.losses",
      {{"",
        words("BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy "
              "CategoricalFocalCrossentropy CategoricalGeneralizedCrossEntropy CategoricalHinge "
              "Circle CosineSimilarity Dice Hinge Huber KLDivergence LogCosh MeanAbsoluteError "
              "MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson "
              "SparseCategoricalCrossentropy SquaredHinge Tversky CTC")}}};
}

KerasSection metrics() {
  return {
      "Metrics",
      "keras.metrics",
      {{"",
        words("AUC Accuracy BinaryAccuracy BinaryCrossentropy CategoricalAccuracy "
              "CategoricalCrossentropy CategoricalHinge ConcordanceCorrelation CosineSimilarity "
              "F1Score FBetaScore FalseNegatives FalsePositives Hinge KLDivergence LogCoshError "
              "Mean MeanAbsoluteError MeanAbsolutePercentageError MeanMetricWrapper "
              "MeanSquaredError MeanSquaredLogarithmicError PearsonCorrelation Poisson Precision "
              "PrecisionAtRecall R2Score Recall RecallAtPrecision RootMeanSquaredError "
              "SensitivityAtSpecificity SparseCategoricalAccuracy SparseCategoricalCrossentropy "
              "SparseTopKCategoricalAccuracy SpecificityAtSensitivity SquaredHinge Sum "
              "TopKCategoricalAccuracy TrueNegatives TruePositives BinaryIoU IoU MeanIoU OneHotIoU "
              "OneHotMeanIoU")}}};
}

KerasSection optimizers() {
  return {
      "Optimizers",
      "keras.optimizers",
      {{"", words("Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion LossScaleOptimizer "
                  "MultiOptimizer Muon Nadam OptimizerMap RMSprop SGD ScheduleFreeAdamW")}}};
}

KerasSection schedules() {
  return {"Learning rate schedules",
          "keras.optimizers.schedules",
          {{"", words("CosineDecay CosineDecayRestarts ExponentialDecay InverseTimeDecay "
                      "PiecewiseConstantDecay PolynomialDecay")}}};
}

KerasSection callbacks() {
  return {"Callbacks",
          "keras.callbacks",
          {{"", words("BackupAndRestore CSVLogger EarlyStopping History LambdaCallback "
                      "LearningRateScheduler ModelCheckpoint ProgbarLogger ReduceLROnPlateau "
                      "SwapEMAWeights TensorBoard TerminateOnNaN")},
           {"sends data to a web server", words("RemoteMonitor")},
           {"of other libraries", words("OrbaxCheckpoint")}}};
}

KerasSection initializers() {
  return {"Initializers",
          "keras.initializers",
          {{"", words("Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal "
                      "LecunUniform Ones Orthogonal RandomNormal RandomUniform TruncatedNormal "
                      "STFT VarianceScaling Zeros")}}};
}

KerasSection regularizers() {
  return {"Regularizers", "keras.regularizers", {{"", words("L1 L1L2 L2 OrthogonalRegularizer")}}};
}

KerasSection constraints() {
  return {"Constraints", "keras.constraints", {{"", words("MaxNorm MinMaxNorm NonNeg UnitNorm")}}};
}

KerasSection activations() {
  return {
      "Activations",
      "keras.activations",
      {{"",
        words("celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish "
              "hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid "
              "silu soft_shrink softmax softplus softsign sparse_plus sparse_sigmoid sparsemax "
              "squareplus swish tanh tanh_shrink threshold")}}};
}

}  // namespace

const std::vector<KerasSection>& keras_api() {
  static const std::vector<KerasSection> kApi = {
      models(),    layers(),       losses(),       metrics(),     optimizers(), schedules(),
      callbacks(), initializers(), regularizers(), constraints(), activations()};
  return kApi;
}

}  // namespace keel::conformance

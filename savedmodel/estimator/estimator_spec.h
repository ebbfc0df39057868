// EstimatorSpec: the model that a model_fn returns (tf.estimator.EstimatorSpec).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <keel/framework/data/dataset.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/training/compile/compile_options.h>

namespace keel::estimator {

// The mode in which model_fn is called.
enum class ModeKeys { kTrain, kEval, kPredict };

// A metric for evaluation, with the symbolic tensors that it is computed from.
struct EvalMetric {
  MetricHandle metric;
  Tensor y_true;
  Tensor y_pred;
  Tensor sample_weight = {};  // if empty, all ones
};

// All tensors are symbolic: results of layers and ops applied to the arguments of model_fn.
struct EstimatorSpec {
  ModeKeys mode = ModeKeys::kPredict;
  Tensors predictions = {};          // the result of predict
  Tensor loss = {};                  // a scalar: the mean over the rows of the batch
  OptimizerArgument optimizer = {};  // for the variables outside the embedding engine
  std::map<std::string, EvalMetric> eval_metrics = {};  // by the name in the result of evaluate
};

// Builds the model. It is called once per call of train, evaluate or predict. The layers that it
// creates get their weights from the estimator's checkpoint in the order of their calls, so this
// order must not depend on the mode.
//
// `features` is a dict: the features of a batch, with the activations of embedding features,
// float32 [batch, dimension] or [batch, max_sequence_length, dimension], under their keys, and the
// lengths of sequences under "<key>_seq_length_". `labels` is empty for predictions.
using ModelFn =
    std::function<EstimatorSpec(const Tensors& features, const Tensors& labels, ModeKeys mode)>;

// Returns the data: batches of `batch_size` rows, which are tuples (features, labels) with a dict
// of features. For predictions, a dict of features without labels is sufficient.
using InputFn = std::function<data::Dataset(int64_t batch_size)>;

}  // namespace keel::estimator

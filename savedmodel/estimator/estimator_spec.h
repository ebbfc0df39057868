// EstimatorSpec: what a model_fn says of a model (tf.estimator.EstimatorSpec).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <keel/framework/data/dataset.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/training/compile/compile_options.h>

namespace keel::estimator {

enum class ModeKeys { kTrain, kEval, kPredict };

// A metric of evaluation, of symbolic tensors.
struct EvalMetric {
  MetricHandle metric;
  Tensor y_true;
  Tensor y_pred;
  Tensor sample_weight = {};  // empty: ones
};

// All tensors are symbolic: results of layers and ops on what model_fn was given.
struct EstimatorSpec {
  ModeKeys mode = ModeKeys::kPredict;
  Tensors predictions = {};          // what predict gives
  Tensor loss = {};                  // a scalar: the mean over the rows that it is given
  OptimizerArgument optimizer = {};  // of what the embedding engine does not hold
  std::map<std::string, EvalMetric> eval_metrics = {};  // by the name that evaluate gives them
};

// Builds the model, once for each call of train, evaluate and predict: layers that it makes get
// their weights from the estimator's checkpoint, in the order they are called, so this order must
// not depend on the mode. `features` is a dict: the features of a batch, with the activations of
// embedding features, float32 [batch, dimension] or [batch, max_sequence_length, dimension], under
// their keys, and "<key>_seq_length_" of sequences. `labels` is empty for predictions.
using ModelFn =
    std::function<EstimatorSpec(const Tensors& features, const Tensors& labels, ModeKeys mode)>;

// Makes the data: batches of `batch_size` rows, tuples (features, labels) with a dict of features;
// for predictions a dict alone will do.
using InputFn = std::function<data::Dataset(int64_t batch_size)>;

}  // namespace keel::estimator

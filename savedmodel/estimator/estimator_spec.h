// EstimatorSpec: the model for one mode, as a model_fn returns it (tf.estimator.EstimatorSpec).
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

// A metric of evaluate(), with the symbolic tensors that it is computed from.
struct EvalMetric {
  MetricHandle metric;
  Tensor y_true;
  Tensor y_pred;
  Tensor sample_weight = {};  // if empty, all ones
};

// `mode` must be the mode that model_fn was called with. kTrain requires `loss` and `optimizer`,
// kEval requires `loss`, and kPredict requires `predictions`. All tensors must be symbolic,
// computed by layers and ops from the arguments of model_fn.
struct EstimatorSpec {
  ModeKeys mode = ModeKeys::kPredict;
  Tensors predictions = {};          // the result of predict
  Tensor loss = {};                  // a scalar: the mean over the rows of the batch
  OptimizerArgument optimizer = {};  // for the variables outside the embedding engine
  std::map<std::string, EvalMetric> eval_metrics = {};  // by the name in the result of evaluate
};

// Builds the model. Each call of a TPUEstimator's train(), evaluate(), predict() or
// export_saved_model() calls it once. The layers that it creates get their weights from the
// estimator's checkpoint in the order of their calls, so this order must not depend on the mode.
//
// `features` is a dict of the features of a batch. An embedding feature is replaced by its
// activations, float32 [batch, dimension] or, for a sequence, [batch, max_sequence_length,
// dimension]. The lengths of a sequence have the key "<key>_seq_length_". `labels` is empty for
// predictions.
using ModelFn =
    std::function<EstimatorSpec(const Tensors& features, const Tensors& labels, ModeKeys mode)>;

// Returns a dataset of batches of `batch_size` rows. Each element is a tuple (features, labels),
// where features is a dict. For predictions, the dict alone is sufficient.
using InputFn = std::function<data::Dataset(int64_t batch_size)>;

}  // namespace keel::estimator

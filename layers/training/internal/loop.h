// The loops behind Model::fit, evaluate and predict.
#pragma once

#include <keel/layers/training/internal/trainer.h>

namespace keel {

// Trains on a dataset of batches; see Model::fit.
History fit_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                 const FitOptions& options);
// Trains on arrays: `data` is (x, y) or (x, y, sample_weight). Rows are shuffled, split for
// validation and batched as `options` says.
History fit_loop(Trainer& trainer, Model& model, const Tensors& data, const FitOptions& options);

// Evaluates the model on all batches; see Model::evaluate.
Logs evaluate_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                   const EvaluateOptions& options);

// Returns the outputs for all rows; see Model::predict.
Tensors predict_loop(distribute::Strategy& strategy, Model& model, const data::Dataset& data,
                     const PredictOptions& options);

// Splits (x, y) or (x, y, sample_weight) into batches. Throws ValueError, prefixed with `caller`,
// unless batch_size > 0.
data::Dataset batches_of(const char* caller, const Tensors& arrays, int64_t batch_size);

}  // namespace keel

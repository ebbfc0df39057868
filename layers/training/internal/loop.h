// The loops behind Model::evaluate and predict.
#pragma once

#include <vector>

#include <keel/layers/training/internal/batch_source.h>
#include <keel/layers/training/internal/callback_list.h>
#include <keel/layers/training/internal/step_context.h>
#include <keel/layers/training/internal/trainer.h>

namespace keel {

// Evaluates the model on all batches; see Model::evaluate.
Logs evaluate_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                   const EvaluateOptions& options);

// Returns the outputs for all rows; see Model::predict.
Tensors predict_loop(distribute::Strategy& strategy, Model& model, const data::Dataset& data,
                     const PredictOptions& options);

// Runs one evaluation: all batches of one epoch of `source`. Returns the logs.
Logs run_tests(Trainer& trainer, Model& model, BatchSource& source, const CallbackList& callbacks,
               StepContext context);

// Splits (x, y) or (x, y, sample_weight) into batches. Throws ValueError, prefixed with `caller`,
// unless batch_size > 0.
data::Dataset batches_of(const char* caller, const Tensors& arrays, int64_t batch_size);

// Returns the callbacks and, unless `verbose` is silent, a progress bar.
std::vector<CallbackHandle> with_progress(std::vector<CallbackHandle> callbacks, Verbose verbose);

}  // namespace keel

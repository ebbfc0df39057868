// The loops of Model::fit, evaluate and predict.
#pragma once

#include <keel/layers/training/internal/trainer.h>

namespace keel {

History fit_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                 const FitOptions& options);
// `data` are (x, y) or (x, y, sample_weight), shuffled and split as the options say.
History fit_loop(Trainer& trainer, Model& model, const Tensors& data, const FitOptions& options);

Logs evaluate_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                   const EvaluateOptions& options);

Tensors predict_loop(distribute::Strategy& strategy, Model& model, const data::Dataset& data,
                     const PredictOptions& options);

// (x, y) or (x, y, sample_weight) as batches. ValueError, naming `caller`, unless batch_size > 0.
data::Dataset batches_of(const char* caller, const Tensors& arrays, int64_t batch_size);

}  // namespace keel

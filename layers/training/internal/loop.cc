#include <keel/layers/training/internal/loop.h>

#include <keel/layers/training/internal/predict_step.h>
#include <keel/layers/training/internal/train_step.h>
#include <keel/layers/training/progbar_logger.h>

namespace keel {
namespace {

constexpr char kEvaluate[] = "Model.evaluate";
constexpr char kPredict[] = "Model.predict";

}  // namespace

std::vector<CallbackHandle> with_progress(std::vector<CallbackHandle> callbacks, Verbose verbose) {
  if (verbose != Verbose::kSilent) {
    callbacks.push_back(callbacks::ProgbarLogger({.verbose = verbose}));
  }
  return callbacks;
}

data::Dataset batches_of(const char* caller, const Tensors& arrays, int64_t batch_size) {
  if (batch_size <= 0) {
    throw ValueError(caller, ": batch_size must be positive, received ", batch_size);
  }
  return data::Dataset::from_tensor_slices(arrays).batch(batch_size);
}

Logs run_tests(Trainer& trainer, Model& model, BatchSource& source, const CallbackList& callbacks,
               StepContext context) {
  context.training = false;
  trainer.reset(model);
  callbacks.call(&Callback::on_test_begin);
  source.start_epoch();
  while (const auto batch = source.next()) {
    callbacks.call(&Callback::on_test_batch_begin, context.step);
    TrainStep(trainer, model, *batch, context).run();
    callbacks.call(&Callback::on_test_batch_end, context.step,
                   trainer.logs(model, Trainer::LogsOf::kBatch));
    ++context.step;
  }
  Logs logs = trainer.logs(model);
  callbacks.call(&Callback::on_test_end, logs);
  return logs;
}

Logs evaluate_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                   const EvaluateOptions& options) {
  BatchSource source(kEvaluate, trainer.strategy(), data, options.steps,
                     BatchSource::Epochs::kFromStart);
  const CallbackList callbacks(with_progress(options.callbacks, options.verbose), &model,
                               {.steps = source.steps()});
  return run_tests(trainer, model, source, callbacks, {.caller = kEvaluate});
}

Tensors predict_loop(distribute::Strategy& strategy, Model& model, const data::Dataset& data,
                     const PredictOptions& options) {
  BatchSource source(kPredict, strategy, data, options.steps, BatchSource::Epochs::kFromStart);
  const CallbackList callbacks(with_progress(options.callbacks, options.verbose), &model,
                               {.steps = source.steps()});
  callbacks.call(&Callback::on_predict_begin);
  source.start_epoch();
  std::vector<Tensors> outputs;
  int64_t step = 0;
  while (const auto batch = source.next()) {
    callbacks.call(&Callback::on_predict_batch_begin, step);
    const std::vector<Tensors> parts = predict_step(strategy, model, *batch);
    outputs.insert(outputs.end(), parts.begin(), parts.end());
    callbacks.call(&Callback::on_predict_batch_end, step);
    ++step;
  }
  callbacks.call(&Callback::on_predict_end);
  return concat_rows(outputs);
}

}  // namespace keel

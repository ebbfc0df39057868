#include "layers/training/loop.h"

#include <cmath>
#include <iostream>
#include <set>

#include "layers/training/batch_source.h"
#include "layers/training/callback_list.h"
#include "layers/training/progbar_logger.h"

namespace keel {
namespace {

constexpr char kFit[] = "Model.fit";
constexpr char kEvaluate[] = "Model.evaluate";
constexpr char kPredict[] = "Model.predict";

std::vector<CallbackHandle> with_progress(std::vector<CallbackHandle> callbacks, Verbose verbose) {
  if (verbose != Verbose::kSilent) {
    callbacks.push_back(callbacks::ProgbarLogger({.verbose = verbose}));
  }
  return callbacks;
}

// One pass over `source`, or as many batches as it gives to an epoch.
Logs run_tests(Trainer& trainer, Model& model, BatchSource& source, const CallbackList& callbacks,
               const char* who) {
  trainer.reset();
  callbacks.call(&Callback::on_test_begin);
  source.start_epoch();
  int64_t step = 0;
  while (const auto batch = source.next()) {
    callbacks.call(&Callback::on_test_batch_begin, step);
    trainer.test_step(model, *batch, {.who = who, .step = step});
    callbacks.call(&Callback::on_test_batch_end, step, trainer.logs());
    ++step;
  }
  Logs logs = trainer.logs();
  callbacks.call(&Callback::on_test_end, logs);
  return logs;
}

Logs run_epoch(Trainer& trainer, Model& model, BatchSource& source, const CallbackList& callbacks,
               int64_t epoch) {
  trainer.reset();
  callbacks.call(&Callback::on_epoch_begin, epoch);
  source.start_epoch();
  int64_t step = 0;
  while (!model.stop_training()) {
    const auto batch = source.next();
    if (!batch) break;
    callbacks.call(&Callback::on_train_batch_begin, step);
    trainer.train_step(model, *batch, {.who = kFit, .epoch = epoch, .step = step});
    callbacks.call(&Callback::on_train_batch_end, step, trainer.logs());
    ++step;
  }
  return trainer.logs();
}

void collect_notes(const Layer& layer, std::set<const Layer*>& seen,
                   std::vector<std::string>& notes) {
  if (!seen.insert(&layer).second) return;
  const std::vector<std::string> own = layer.notes();
  notes.insert(notes.end(), own.begin(), own.end());
  for (const auto& sublayer : layer.sublayers()) collect_notes(*sublayer, seen, notes);
}

// Notes may be about all processes, so all make them.
void show_notes(const Model& model) {
  std::set<const Layer*> seen;
  std::vector<std::string> notes;
  collect_notes(model, seen, notes);
  if (distribute::processes().rank() != 0) return;
  for (const std::string& note : notes) std::cout << note << '\n';
}

void check(const FitOptions& options) {
  if (options.initial_epoch < 0 || options.epochs <= options.initial_epoch) {
    throw ValueError(kFit, ": epochs must be above initial_epoch, which is not negative; received ",
                     options.epochs, " and ", options.initial_epoch);
  }
}

std::optional<data::Dataset> validation_batches(const FitOptions& options) {
  const ValidationData& data = options.validation_data;
  if (data.arrays) return batches_of(kFit, *data.arrays, options.batch_size);
  return data.dataset;
}

}  // namespace

data::Dataset batches_of(const char* who, const Tensors& arrays, int64_t batch_size) {
  if (batch_size <= 0) {
    throw ValueError(who, ": batch_size must be positive, received ", batch_size);
  }
  return data::Dataset::from_tensor_slices(arrays).batch(batch_size);
}

History fit_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                 const FitOptions& options) {
  check(options);
  BatchSource source(kFit, trainer.strategy(), data, options.steps_per_epoch);
  std::optional<BatchSource> validation;
  if (const auto batches = validation_batches(options)) {
    validation.emplace(kFit, trainer.strategy(), *batches, options.validation_steps);
  }
  const CallbackList callbacks(with_progress(options.callbacks, options.verbose), &model,
                               {.epochs = options.epochs, .steps = source.steps()});
  History history;
  model.set_stop_training(false);
  callbacks.call(&Callback::on_train_begin);
  for (int64_t epoch = options.initial_epoch; epoch < options.epochs; ++epoch) {
    Logs logs = run_epoch(trainer, model, source, callbacks, epoch);
    if (validation) {
      for (const auto& [name, value] :
           run_tests(trainer, model, *validation, callbacks, "Model.fit, validation")) {
        logs["val_" + name] = value;
      }
    }
    callbacks.call(&Callback::on_epoch_end, epoch, logs);
    history.append(epoch, logs);
    if (model.stop_training()) break;
  }
  callbacks.call(&Callback::on_train_end, history.last());
  if (options.verbose != Verbose::kSilent) show_notes(model);
  return history;
}

History fit_loop(Trainer& trainer, Model& model, const Tensors& data, const FitOptions& options) {
  check(options);
  FitOptions rest = options;
  Tensors training = data;
  const double split = options.validation_split;
  if (!(split >= 0 && split < 1)) {
    throw ValueError(kFit, ": validation_split must be in [0, 1), received ", split);
  }
  if (split > 0) {
    const int64_t rows = row_count(data);
    const auto kept = static_cast<int64_t>(std::floor(static_cast<double>(rows) * (1 - split)));
    if (kept == 0 || kept == rows) {
      throw ValueError(kFit, ": validation_split ", split, " of ", rows,
                       " rows leaves no rows to train or to validate with");
    }
    if (options.validation_data.arrays || options.validation_data.dataset) {
      throw ValueError(kFit, ": received both validation_split and validation_data");
    }
    training = slice_rows(data, 0, kept);
    rest.validation_data.arrays = slice_rows(data, kept, rows);
  }
  if (!options.shuffle) {
    return fit_loop(trainer, model, batches_of(kFit, training, options.batch_size), rest);
  }
  if (options.batch_size <= 0) {
    throw ValueError(kFit, ": batch_size must be positive, received ", options.batch_size);
  }
  const auto rows = std::max<int64_t>(row_count(training), 1);
  const data::Dataset batches = data::Dataset::from_tensor_slices(training)
                                    .shuffle(rows, {.seed = options.seed})
                                    .batch(options.batch_size);
  return fit_loop(trainer, model, batches, rest);
}

Logs evaluate_loop(Trainer& trainer, Model& model, const data::Dataset& data,
                   const EvaluateOptions& options) {
  BatchSource source(kEvaluate, trainer.strategy(), data, options.steps);
  const CallbackList callbacks(with_progress(options.callbacks, options.verbose), &model,
                               {.steps = source.steps()});
  return run_tests(trainer, model, source, callbacks, kEvaluate);
}

Tensors predict_loop(distribute::Strategy& strategy, Model& model, const data::Dataset& data,
                     const PredictOptions& options) {
  BatchSource source(kPredict, strategy, data, options.steps);
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

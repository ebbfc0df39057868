#include <keel/layers/training/internal/fit_loop.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include <keel/layers/training/compile/step_data.h>
#include <keel/layers/training/internal/process_agreement.h>
#include <keel/layers/training/internal/train_step.h>

namespace keel {
namespace {

constexpr char kFit[] = "Model.fit";
constexpr char kValidation[] = "Model.fit, validation";

void collect_notices(const Layer& layer, std::set<const Layer*>& seen,
                     std::vector<std::string>& training_notices) {
  if (!seen.insert(&layer).second) return;
  const std::vector<std::string> own = layer.training_notices();
  training_notices.insert(training_notices.end(), own.begin(), own.end());
  for (const auto& sublayer : layer.sublayers()) collect_notices(*sublayer, seen, training_notices);
}

// All processes collect notices, because computing a notice may be collective; rank 0 prints them.
void print_notices(const Model& model) {
  std::set<const Layer*> seen;
  std::vector<std::string> training_notices;
  collect_notices(model, seen, training_notices);
  if (distribute::processes().rank() != 0) return;
  for (const std::string& notice : training_notices) std::cout << notice << '\n';
}

void check(const FitOptions& options) {
  if (options.initial_epoch < 0 || options.epochs < 0) {
    throw ValueError(kFit, ": epochs and initial_epoch must not be negative, received ",
                     options.epochs, " and ", options.initial_epoch);
  }
  const auto* every = std::get_if<int64_t>(&options.validation_freq);
  if (every != nullptr && *every <= 0) {
    throw ValueError(kFit, ": validation_freq must be positive, received ", *every);
  }
}

std::optional<data::Dataset> validation_batches(const FitOptions& options) {
  const ValidationData& data = options.validation_data;
  if (!data.arrays) return data.dataset;
  return batches_of(kFit, *data.arrays, options.validation_batch_size.value_or(options.batch_size));
}

bool validates_after(const FitOptions& options, int64_t epoch) {
  if (const auto* every = std::get_if<int64_t>(&options.validation_freq)) {
    return (epoch + 1) % *every == 0;
  }
  const auto& epochs = std::get<std::vector<int64_t>>(options.validation_freq);
  return std::ranges::find(epochs, epoch + 1) != epochs.end();
}

data::Dataset weighted_by_class(const data::Dataset& batches, const FitOptions& options) {
  if (options.class_weight.empty()) return batches;
  return batches.map([weights = options.class_weight](const Tensors& batch) {
    return with_class_weights(batch, weights, kFit);
  });
}

// Checks everything that can be checked before the first batch is read. Returns the batches to
// train on.
data::Dataset checked(const Trainer& trainer, const Model& model, const data::Dataset& batches,
                      const FitOptions& options) {
  check(options);
  if (trainer.optimizer() == nullptr) {
    throw RuntimeError(kFit, ": the model has no optimizer; pass one to compile()");
  }
  check_same_training(trainer.strategy().process_group(), kFit, model, trainer, options);
  return weighted_by_class(batches, options);
}

}  // namespace

FitData fit_data(const Tensors& arrays, const FitOptions& options) {
  check(options);
  FitOptions rest = options;
  Tensors training = arrays;
  const double split = options.validation_split;
  if (!(split >= 0 && split < 1)) {
    throw ValueError(kFit, ": validation_split must be in [0, 1), received ", split);
  }
  if (split > 0) {
    const int64_t rows = row_count(arrays);
    const auto kept = static_cast<int64_t>(std::floor(static_cast<double>(rows) * (1 - split)));
    if (kept == 0 || kept == rows) {
      throw ValueError(
          kFit, ": validation_split ", split, " of ", rows,
          " rows leaves no rows for training or for validation; change it or pass validation_data");
    }
    if (options.validation_data.arrays || options.validation_data.dataset) {
      throw ValueError(kFit,
                       ": received both validation_split and validation_data; pass one of them");
    }
    training = slice_rows(arrays, 0, kept);
    rest.validation_data.arrays = slice_rows(arrays, kept, rows);
  }
  if (!options.shuffle) {
    return {batches_of(kFit, training, options.batch_size), rest};
  }
  if (options.batch_size <= 0) {
    throw ValueError(kFit, ": batch_size must be positive, received ", options.batch_size);
  }
  const auto rows = std::max<int64_t>(row_count(training), 1);
  const data::Dataset batches = data::Dataset::from_tensor_slices(training)
                                    .shuffle(rows, {.seed = options.seed})
                                    .batch(options.batch_size);
  return {batches, rest};
}

FitLoop::FitLoop(Trainer& trainer, Model& model, const data::Dataset& batches,
                 const FitOptions& options)
    : trainer_(trainer),
      model_(model),
      options_(options),
      source_(kFit, trainer.strategy(), checked(trainer, model, batches, options),
              options.steps_per_epoch, BatchSource::Epochs::kRunOn) {
  if (const auto validation = validation_batches(options)) {
    validation_.emplace(kValidation, trainer.strategy(), *validation, options.validation_steps,
                        BatchSource::Epochs::kFromStart);
  }
  callbacks_.emplace(with_progress(options.callbacks, options.verbose), &model,
                     CallbackParams{.epochs = options.epochs,
                                    .steps = source_.steps(),
                                    .validates = validation_.has_value()});
}

History FitLoop::run() {
  model_.set_stop_training(false);
  // Discards a resume point that an earlier, failed run may have left.
  model_.take_resume_point();
  callbacks_->call(&Callback::on_train_begin);
  const std::optional<ResumePoint> resume = model_.take_resume_point();
  int64_t epoch = options_.initial_epoch;
  if (resume) {
    skip_epochs(resume->epoch);
    epoch = resume->epoch;
    if (epoch >= options_.epochs) restore(*resume, first_batch());
  }
  for (bool first = true; epoch < options_.epochs; ++epoch, first = false) {
    run_epoch(epoch, first ? resume : std::nullopt);
    if (model_.stop_training()) break;
  }
  if (model_.built() && options_.epochs > 0) {
    trainer_.optimizer()->finalize_variable_values(model_.trainable_variables());
  }
  callbacks_->call(&Callback::on_train_end, history_.last());
  if (options_.verbose != Verbose::kSilent) print_notices(model_);
  return history_;
}

FitLoop::NextBatch FitLoop::prefetch() {
  NextBatch out = {.fetched = model_.supports_prefetch()};
  if (!out.fetched) return out;
  try {
    out.batch = source_.next();
  } catch (...) {
    out.error = std::current_exception();
  }
  return out;
}

void FitLoop::skip_epochs(int64_t end) {
  source_.skip_epochs(std::min(end, options_.epochs) - options_.initial_epoch);
  for (int64_t epoch = options_.initial_epoch; validation_ && epoch < end; ++epoch) {
    if (validates_after(options_, epoch)) validation_->skip_epochs(1);
  }
}

std::optional<FitLoop::Batch> FitLoop::first_batch() {
  source_.start_epoch();
  return source_.next();
}

void FitLoop::restore(const ResumePoint& resume, const std::optional<Batch>& batch) {
  if (batch) trainer_.build(model_, *batch, kFit);
  if (resume.restore) resume.restore();
}

// A run that resumes at the start of an epoch restores its state before the epoch begins, as a
// backup between epochs was taken; one that resumes inside an epoch restores after
// on_epoch_begin(), which would otherwise overwrite the restored state.
void FitLoop::run_epoch(int64_t epoch, const std::optional<ResumePoint>& resume) {
  std::optional<Batch> batch;
  if (resume) batch = first_batch();
  if (resume && resume->step == 0) restore(*resume, batch);
  trainer_.reset(model_);
  callbacks_->call(&Callback::on_epoch_begin, epoch);
  int64_t step = 0;
  if (!resume) {
    batch = first_batch();
  } else if (resume->step > 0) {
    const std::optional<Batch> any = batch;
    for (; batch && step < resume->step; ++step) batch = source_.next();
    restore(*resume, any);
  }
  while (batch && !model_.stop_training()) {
    const NextBatch next = prefetch();
    callbacks_->call(&Callback::on_train_batch_begin, step);
    const StepContext context = {
        .caller = kFit, .epoch = epoch, .step = step, .tolerates_nan = callbacks_->tolerates_nan()};
    TrainStep(trainer_, model_, *batch, context).run(next.batch ? &*next.batch : nullptr);
    callbacks_->call(&Callback::on_train_batch_end, step,
                     trainer_.logs(model_, Trainer::LogsOf::kBatch));
    if (model_.stop_training()) break;
    ++step;
    if (next.error) std::rethrow_exception(next.error);
    batch = next.fetched ? next.batch : source_.next();
  }
  end_epoch(epoch);
}

void FitLoop::end_epoch(int64_t epoch) {
  Logs logs = trainer_.logs(model_);
  if (validation_ && validates_after(options_, epoch)) {
    const StepContext context = {.caller = kValidation,
                                 .tolerates_nan = callbacks_->tolerates_nan()};
    for (const auto& [name, value] :
         run_tests(trainer_, model_, *validation_, *callbacks_, context)) {
      logs["val_" + name] = value;
    }
  }
  callbacks_->call(&Callback::on_epoch_end, epoch, logs);
  history_.append(epoch, logs);
}

}  // namespace keel

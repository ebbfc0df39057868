#include "examples/ctr/ctr_training.h"

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <ostream>
#include <unistd.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/process_group.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/termination.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/layers/metrics/probabilistic.h>
#include <keel/layers/training/internal/terminal_progress.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/optimizer.h>

namespace keel::examples {
namespace {

constexpr int64_t kPredictBatch = 4096;
constexpr int64_t kCheckpointsKept = 3;
constexpr int64_t kMostOptionBytes = 1 << 20;

// The state of EarlyStopping under its own names, and the other values that a checkpoint stores for
// it.
constexpr char kWait[] = "wait", kBestEpoch[] = "best_epoch", kBest[] = "best";
constexpr char kWeights[] = "weights/";
constexpr char kHasBest[] = "has_best", kHasWeights[] = "has_weights", kStopped[] = "stopped";

OptimizerHandle make_optimizer(const std::string& name, double learning_rate) {
  OptimizerHandle out = optimizers::get(name);
  out->set_learning_rate(learning_rate);
  return out;
}

CtrModelOptions with_optimizer(CtrModelOptions options, const OptimizerHandle& optimizer) {
  options.embedding_optimizer = optimizer;
  return options;
}

// Returns the batches of one epoch, starting at a given step. Their order depends only on the seed
// and the epoch, so a resumed run gets the batches of an uninterrupted run.
data::Dataset epoch_batches(const CtrExamples& rows, const CtrTrainingOptions& options,
                            int64_t epoch, int64_t first_step) {
  const auto seed = static_cast<int64_t>(options.seed) * 1'000'003 + epoch;
  const auto all = data::Dataset::from_tensor_slices(Tensors::tuple({rows.features, rows.labels}));
  const auto ordered =
      options.in_order
          ? all
          : all.shuffle(rows.labels.dim(0), {.seed = seed, .reshuffle_each_iteration = false});
  return ordered.batch(options.batch_size).skip(first_step);
}

std::string options_path(const std::string& folder) {
  return std::filesystem::path(folder) / "options.json";
}

// Returns the value in the form that a flag accepts.
std::string text_of(const Config& value) {
  return value.is_string() ? value.string() : to_json(value);
}

}  // namespace

bool has_both_classes(const Tensor& labels) {
  const auto values = labels.data<float>();
  return !values.empty() &&
         std::ranges::adjacent_find(values, std::ranges::not_equal_to()) != values.end();
}

Logs ctr_metrics(const Tensor& labels, const Tensor& predictions) {
  const metrics::AUC auc({});
  const metrics::BinaryCrossentropy log_loss({});
  log_loss->update_state(labels, predictions);
  Logs out = {{"loss", log_loss->result()}};
  if (!has_both_classes(labels)) return out;
  auc->update_state(labels, predictions);
  out["auc"] = auc->result();
  return out;
}

CtrTraining::CtrTraining(distribute::Strategy& strategy, const CtrFeatures& features,
                         CtrTrainingOptions options)
    : strategy_(strategy),
      options_(std::move(options)),
      embedding_optimizer_(
          make_optimizer(options_.embedding_optimizer, options_.embedding_learning_rate)),
      dense_optimizer_(optimizers::Adam({.learning_rate = options_.learning_rate})),
      model_(make_ctr_model(features, with_optimizer(options_.model, embedding_optimizer_))),
      early_stopping_({.monitor = "val_loss",
                       .patience = options_.patience,
                       .mode = "min",
                       .restore_best_weights = true}) {
  if (options_.resume) check_fixed_options();
}

CtrTraining::GlobalStep CtrTraining::step(const distribute::PerReplica<Tensors>& batch) {
  // One reduction combines the number of rows of the global batch and whether a process must end.
  const bool signal = TerminationSignals::received().has_value();
  std::vector<Tensor> counts;
  for (const Tensors& part : batch.values()) {
    counts.push_back(
        Tensor::from<double>({static_cast<double>(row_count(part)), signal ? 1.0 : 0.0}, {2}));
  }
  const std::vector<double> sums =
      strategy_.reduce(distribute::ReduceOp::kSum, distribute::PerReplica(std::move(counts)))
          .to_vector<double>();
  const auto losses = strategy_.run(
      [&](const Tensors& part) {
        GradientTape tape;
        const Tensor y = model_.model(part[0], {.training = true}).tensor();
        Tensor loss = ops::sum(losses::binary_crossentropy(part[1].tensor(), y)) / sums[0];
        apply(tape, loss);
        return loss;
      },
      batch);
  return {.loss = strategy_.reduce(distribute::ReduceOp::kSum, losses).item<float>(),
          .signal = sums[1] > 0};
}

// The embedding optimizer updates the variables of the embedding layer: its tables, or the virtual
// variable that represents them. The other optimizer updates all other variables.
void CtrTraining::apply(GradientTape& tape, const Tensor& loss) {
  const std::vector<Variable> variables = model_.model->trainable_variables();
  const std::vector<Variable> tables = model_.embedding->trainable_variables();
  const std::vector<Gradient> gradients = tape.gradient(loss, variables);
  std::vector<Variable> of_tables, of_dense;
  std::vector<Gradient> table_gradients, dense_gradients;
  for (size_t i = 0; i < variables.size(); ++i) {
    const bool is_table = std::ranges::find(tables, variables[i]) != tables.end();
    (is_table ? of_tables : of_dense).push_back(variables[i]);
    (is_table ? table_gradients : dense_gradients).push_back(gradients[i]);
  }
  embedding_optimizer_->apply_gradients(table_gradients, of_tables);
  dense_optimizer_->apply_gradients(dense_gradients, of_dense);
}

Tensor CtrTraining::predict_and_train(const CtrExamples& rows) {
  std::vector<Tensor> predictions;
  const auto batches =
      data::Dataset::from_tensor_slices(Tensors::tuple({rows.features, rows.labels}))
          .batch(options_.batch_size);
  for (const Tensors& batch : batches) {
    predictions.push_back(
        model_.model->predict(batch[0], {.batch_size = kPredictBatch, .verbose = Verbose::kSilent})
            .tensor());
    for (const auto& parts :
         strategy_.experimental_distribute_dataset(data::Dataset::from_tensors(batch), {})) {
      step(parts);
    }
  }
  return ops::concat(predictions, 0);
}

Logs CtrTraining::validate(const CtrExamples& rows) const {
  const Tensor predictions =
      model_.model
          ->predict(rows.features, {.batch_size = kPredictBatch, .verbose = Verbose::kSilent})
          .tensor();
  Logs out;
  for (const auto& [name, value] : ctr_metrics(rows.labels, predictions)) {
    out["val_" + name] = value;
  }
  return out;
}

CtrTraining::End CtrTraining::run(const CtrExamples& train,
                                  const std::optional<CtrExamples>& validation, std::ostream& out) {
  model_.model->set_stop_training(false);
  early_stopping_.set_model(&*model_.model);
  early_stopping_.set_params({.epochs = options_.epochs, .validates = validation.has_value()});
  early_stopping_.on_train_begin();
  open_checkpoints(validation.has_value());
  if (options_.resume) restore_checkpoint(out);

  const int64_t steps_per_epoch =
      (train.labels.dim(0) + options_.batch_size - 1) / options_.batch_size;
  const int64_t total = steps_per_epoch * options_.epochs;
  const int64_t stop = options_.stop_after_steps;
  const int64_t every = options_.checkpoint_steps;
  const auto style =
      isatty(STDOUT_FILENO) != 0 ? TerminalProgress::Style::kBar : TerminalProgress::Style::kLine;
  int64_t step = steps();
  while (step < total && !model_.model->stop_training()) {
    if (stop > 0 && step >= stop) return End::kStopped;
    const int64_t epoch = step / steps_per_epoch;
    const std::string head = absl::StrCat("Epoch ", epoch + 1, "/", options_.epochs);
    TerminalProgress progress(out, style, head, steps_per_epoch);
    Logs logs;
    double loss_sum = 0;
    int64_t done = 0;
    std::optional<End> end;
    for (const auto& batch : strategy_.experimental_distribute_dataset(
             epoch_batches(train, options_, epoch, step % steps_per_epoch),
             {.experimental_per_replica_buffer_size = 2})) {
      const GlobalStep result = this->step(batch);
      loss_sum += result.loss;
      ++step;
      ++done;
      logs = {{"loss", loss_sum / static_cast<double>(done)}};
      progress.update(step - epoch * steps_per_epoch, logs);
      const bool ends_epoch = step % steps_per_epoch == 0;
      if (ends_epoch && validation) {
        logs.merge(validate(*validation));
        early_stopping_.on_epoch_end(epoch, logs);
      }
      if (result.signal) {
        end = End::kSignal;
      } else if (step == stop && step < total && !model_.model->stop_training()) {
        end = End::kStopped;
      }
      if (end || (every > 0 ? step % every == 0 : ends_epoch)) save_checkpoint();
      if (end) break;
    }
    progress.finish(step - epoch * steps_per_epoch, logs);
    if (end) return *end;
  }
  if (!validation) return End::kFinished;
  early_stopping_.on_train_end({});
  out << "weights of epoch " << early_stopping_.best_epoch() + 1
      << ", which has the lowest validation loss\n";
  return End::kFinished;
}

void CtrTraining::check_fixed_options() const {
  const std::string path = options_path(options_.checkpoint_dir);
  if (!path_exists(path)) return;
  const Config before = [&] {
    try {
      Config out = parse_json(read_text_file(path, kMostOptionBytes));
      out.entries();  // throws unless it is an object
      return out;
    } catch (const Error& error) {
      if (dynamic_cast<const IoError*>(&error) != nullptr) throw;
      throw IoError(path, ": not the options of a run: ", error.what(),
                    "; restore it from a copy, or remove it to resume without comparing options");
    }
  }();
  for (const auto& [flag, value] : options_.fixed.entries()) {
    const Config* const was = before.find(flag);
    if (was == nullptr || *was == value) continue;
    const std::string old = text_of(*was);
    throw ValueError("--resume: the run in '", options_.checkpoint_dir, "' had --", flag, "=", old,
                     ", received ", text_of(value), "; pass --", flag, "=", old,
                     ", or start a new run in another --checkpoint_dir");
  }
}

void CtrTraining::open_checkpoints(bool validates) {
  if (options_.checkpoint_dir.empty()) return;
  std::map<std::string, StateEntry> values;
  if (validates) {
    const auto add = [&](const std::string& name, const Tensor& value, bool any_rows = false) {
      early_stopping_state_[name] = value;
      values["early_stopping/" + name] = {
          .name = name,
          .get = [this, name] { return early_stopping_state_.at(name); },
          .set = [this, name](const Tensor& v) { early_stopping_state_.at(name) = v; },
          .any_rows = any_rows};
    };
    for (const char* name : {kWait, kBestEpoch, kHasBest, kHasWeights, kStopped}) {
      add(name, Tensor::scalar(int64_t{0}));
    }
    add(kBest, Tensor::scalar(0.0));
    int64_t i = 0;
    for_each_state_entry(*model_.model, [&](const std::string&, const StateEntry& entry) {
      if (entry.kind == StateEntry::Kind::kWeight) {
        add(absl::StrCat(kWeights, i++), entry.get(), entry.any_rows);
      }
    });
  }
  checkpoints_.emplace(
      Checkpoint({.model = LayerHandle<Layer>(model_.model),
                  .optimizers = {{"embedding", embedding_optimizer_}, {"dense", dense_optimizer_}},
                  .values = std::move(values)}),
      options_.checkpoint_dir, CheckpointManagerOptions{.max_to_keep = kCheckpointsKept});
}

void CtrTraining::save_checkpoint() {
  if (!checkpoints_) return;
  if (!early_stopping_state_.empty()) {
    const Callback::State state = early_stopping_.state();
    for (const auto& [name, value] : state) early_stopping_state_.at(name) = value;
    const auto set = [&](const char* name, bool value) {
      early_stopping_state_.at(name) = Tensor::scalar(int64_t{value});
    };
    set(kHasBest, state.contains(kBest));
    set(kHasWeights, state.contains(absl::StrCat(kWeights, 0)));
    set(kStopped, model_.model->stop_training());
  }
  // Write once per run, but not before its first checkpoint: until then, the folder may contain
  // checkpoints of another run.
  if (!last_checkpoint_) {
    distribute::run_collectively(distribute::processes(), "options.json", [&] {
      if (distribute::processes().rank() != 0) return;
      write_file_atomically(options_path(options_.checkpoint_dir), to_json(options_.fixed) + "\n");
    });
  }
  last_checkpoint_ = checkpoints_->save(steps());
}

void CtrTraining::restore_checkpoint(std::ostream& out) {
  const auto latest = checkpoints_->restore_or_initialize();
  out << (latest ? "resumed from " + latest->path : "no checkpoint found; starting a new run")
      << '\n';
  if (!latest || early_stopping_state_.empty()) return;
  const auto is_set = [&](const char* name) {
    return early_stopping_state_.at(name).item<int64_t>() != 0;
  };
  Callback::State state;
  for (const auto& [name, value] : early_stopping_state_) {
    const bool is_weight = name.starts_with(kWeights);
    const bool is_known = is_weight ? is_set(kHasWeights) : name != kBest || is_set(kHasBest);
    if (is_known) state.emplace(name, value);
  }
  early_stopping_.set_state(state);
  model_.model->set_stop_training(is_set(kStopped));
}

}  // namespace keel::examples

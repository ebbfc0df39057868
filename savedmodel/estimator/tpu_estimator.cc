#include <keel/savedmodel/estimator/tpu_estimator.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>

#include <keel/savedmodel/estimator/internal/estimator_run.h>
#include <keel/savedmodel/saved_model.h>

namespace keel::estimator {
namespace {

constexpr char kCaller[] = "TPUEstimator";

void check_positive(const char* what, int64_t value) {
  if (value < 1) throw ValueError(kCaller, ": ", what, " must be positive, received ", value);
}

void check_config(const RunConfig& config) {
  if (config.model_dir.empty()) throw ValueError(kCaller, ": config.model_dir must be set");
  check_positive("iterations_per_loop", config.tpu_config.iterations_per_loop);
  check_positive("save_checkpoints_steps", config.save_checkpoints_steps);
  check_positive("num_hosts", config.cluster.num_hosts);
  check_positive("num_cores", config.cluster.num_cores);
  if (config.keep_checkpoint_max < 0 || config.log_step_count_steps < 0) {
    throw ValueError(kCaller,
                     ": keep_checkpoint_max and log_step_count_steps must not be negative");
  }
}

// The full batches of a dataset, or all of its batches. start() begins again.
class Batches {
 public:
  Batches(const InputFn& input_fn, int64_t batch_size, bool whole)
      : dataset_(input_fn(batch_size)), batch_size_(batch_size), whole_(whole) {
    start();
  }
  void start() { iterator_ = dataset_.iterator(); }
  // Throws ValueError for a batch with too many rows.
  std::optional<Tensors> next() {
    while (std::optional<Tensors> batch = iterator_->next()) {
      const int64_t rows = row_count(*batch);
      if (rows > batch_size_) {
        throw ValueError(kCaller, ": input_fn must return batches of at most ", batch_size_,
                         " rows, received one of ", rows);
      }
      if (rows == batch_size_ || (!whole_ && rows > 0)) return batch;
    }
    return {};
  }
  // Throws ValueError if there is no batch.
  Tensors first() {
    std::optional<Tensors> out = next();
    if (!out) {
      throw ValueError(kCaller, ": the dataset of input_fn has no ", whole_ ? "full " : "",
                       "batch of ", batch_size_, " rows; return at least one batch");
    }
    return *out;
  }

 private:
  const data::Dataset dataset_;
  const int64_t batch_size_;
  const bool whole_;
  std::unique_ptr<data::Iterator> iterator_;
};

void warn_of_initial_values(const EstimatorRun& run, const RunConfig& config) {
  if (run.restored()) return;
  std::cerr << absl::StrCat(
      kCaller, ": ", config.model_dir,
      " has no checkpoint, so the model has its initial weights; train it first\n");
}

// Extends a short batch to `rows` rows by repeating its last row.
Tensors padded(const Tensors& batch, int64_t rows) {
  std::vector<int64_t> taken(rows, row_count(batch) - 1);
  std::iota(taken.begin(), taken.begin() + row_count(batch), 0);
  return take_rows(batch, taken);
}

// Returns true if a multiple of `every` is in (before, now].
bool passed(int64_t every, int64_t before, int64_t now) {
  return every > 0 && now / every > before / every;
}

}  // namespace

TPUEstimator::TPUEstimator(TPUEstimatorOptions options) : options_(std::move(options)) {
  if (!options_.model_fn) throw ValueError(kCaller, ": model_fn is not set; pass a function");
  check_config(options_.config);
  const auto& spec = options_.embedding_config_spec;
  const bool all_on_tpu = options_.use_tpu && options_.eval_on_tpu && options_.predict_on_tpu;
  if (spec && (*spec)->partition_strategy == "mod" && !all_on_tpu) {
    throw ValueError(kCaller,
                     ": partition_strategy 'mod' requires that training, evaluation and "
                     "prediction run on the accelerator");
  }
  if (options_.use_tpu && spec) spec->configs();
  for (const ModeKeys mode : {ModeKeys::kTrain, ModeKeys::kEval, ModeKeys::kPredict}) {
    const int64_t cores =
        on_tpu(mode) ? options_.config.cluster.num_hosts * options_.config.cluster.num_cores : 1;
    if (batch_size(mode) < 1 || batch_size(mode) % cores != 0) {
      throw ValueError(kCaller, ": batch sizes must be positive multiples of ", cores,
                       " cores, received ", batch_size(mode));
    }
  }
}

int64_t TPUEstimator::batch_size(ModeKeys mode) const {
  if (mode == ModeKeys::kEval) return options_.eval_batch_size.value_or(options_.train_batch_size);
  if (mode == ModeKeys::kTrain) return options_.train_batch_size;
  return options_.predict_batch_size.value_or(options_.train_batch_size);
}

bool TPUEstimator::on_tpu(ModeKeys mode) const {
  if (mode == ModeKeys::kEval) return options_.use_tpu && options_.eval_on_tpu;
  return options_.use_tpu && (mode == ModeKeys::kTrain || options_.predict_on_tpu);
}

TrainResult TPUEstimator::train(const InputFn& input_fn, const TrainOptions& options) {
  if (options.steps && options.max_steps) {
    throw ValueError(kCaller, ".train: received both steps and max_steps; pass one of them");
  }
  if (options.steps) check_positive("steps", *options.steps);
  if (options.max_steps) check_positive("max_steps", *options.max_steps);
  Batches batches(input_fn, batch_size(ModeKeys::kTrain), true);
  std::optional<Tensors> batch = batches.first();
  EstimatorRun run(options_, ModeKeys::kTrain, on_tpu(ModeKeys::kTrain),
                   batch_size(ModeKeys::kTrain), *batch);
  TrainResult result = {.global_step = run.global_step()};
  std::optional<int64_t> end = options.max_steps;
  if (options.steps) end = result.global_step + *options.steps;
  if (end && result.global_step >= *end) return result;

  const RunConfig& config = options_.config;
  while (batch && (!end || result.global_step < *end)) {
    const int64_t before = result.global_step;
    for (int64_t i = 0; i < config.tpu_config.iterations_per_loop; ++i) {
      result.loss = run.train_step(*batch);
      result.global_step = run.global_step();
      if (end && result.global_step == *end) break;
      batch = batches.next();
      if (!batch && end) {
        batches.start();
        batch = batches.next();
      }
      if (!batch) break;
    }
    if (passed(config.log_step_count_steps, before, result.global_step)) {
      std::cerr << absl::StrCat(kCaller, ": step ", result.global_step, ", loss ", result.loss,
                                "\n");
    }
    if (passed(config.save_checkpoints_steps, before, result.global_step)) run.save();
  }
  run.save();
  run.save_profiles();
  return result;
}

std::map<std::string, double> TPUEstimator::evaluate(const InputFn& input_fn,
                                                     std::optional<int64_t> steps) {
  if (steps) check_positive("steps", *steps);
  Batches batches(input_fn, batch_size(ModeKeys::kEval), true);
  std::optional<Tensors> batch = batches.first();
  EstimatorRun run(options_, ModeKeys::kEval, on_tpu(ModeKeys::kEval), batch_size(ModeKeys::kEval),
                   *batch);
  warn_of_initial_values(run, options_.config);
  double loss = 0;
  int64_t done = 0;
  for (; batch && (!steps || done < *steps); ++done) {
    loss += run.eval_step(*batch);
    batch = batches.next();
  }
  std::map<std::string, double> out = run.metrics();
  out["loss"] = loss / static_cast<double>(done);
  out["global_step"] = static_cast<double>(run.global_step());
  return out;
}

Tensors TPUEstimator::predict(const InputFn& input_fn) {
  const int64_t rows = batch_size(ModeKeys::kPredict);
  Batches batches(input_fn, rows, false);
  std::optional<Tensors> batch = batches.first();
  const bool pads = on_tpu(ModeKeys::kPredict);
  EstimatorRun run(options_, ModeKeys::kPredict, pads, rows, *batch);
  warn_of_initial_values(run, options_.config);
  std::vector<Tensors> out;
  for (; batch; batch = batches.next()) {
    const int64_t taken = row_count(*batch);
    const bool short_batch = pads && taken < rows;
    const Tensors found = run.predict_step(short_batch ? padded(*batch, rows) : *batch);
    out.push_back(short_batch ? slice_rows(found, 0, taken) : found);
  }
  return concat_rows(out);
}

std::string TPUEstimator::export_saved_model(const std::string& export_dir,
                                             const Tensors& features) {
  const std::optional<std::string> checkpoint = latest_checkpoint();
  if (!checkpoint) {
    throw RuntimeError(kCaller, ".export_saved_model: ", options_.config.model_dir,
                       " has no checkpoint; train first");
  }
  distribute::CPUStrategy strategy;
  const auto scope = strategy.scope();
  const auto& spec = options_.embedding_config_spec;
  const tpu::v1::Configs configs = configs_of(spec, true);
  const auto host = make_host_tables(spec, configs);
  const Tensors looked_up = host ? (*host)(features) : features;
  const EstimatorGraph graph =
      make_graph(options_.model_fn, features, looked_up, Tensors(), ModeKeys::kPredict);
  const auto model = make_estimator_model(graph, spec, std::nullopt, host);
  const RestoreStatus status = Checkpoint({.model = model}).restore(*checkpoint, {.partial = true});

  const Functional served({.inputs = features, .outputs = graph.spec.predictions});
  const std::filesystem::path folder =
      std::filesystem::path(export_dir) / std::to_string(status.step);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw IoError(folder.string(), ": the folder cannot be created: ", failed.message());
  std::string path = (folder / "model.h5").string();
  save_model(served, path);
  return path;
}

std::optional<std::string> TPUEstimator::latest_checkpoint() const {
  if (!std::filesystem::exists(options_.config.model_dir)) return {};
  return keel::latest_checkpoint(options_.config.model_dir);
}

}  // namespace keel::estimator

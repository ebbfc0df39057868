// Trains a click model with TPUEmbedding tables, evaluates it, checkpoints it and exports it.
#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <unistd.h>

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "distribute/tpu_strategy.h"
#include "examples/ctr/ctr_model.h"
#include "examples/ctr/predictions_csv.h"
#include "examples/ctr/synthetic.h"
#include "examples/flags.h"
#include "framework/parallel.h"
#include "layers/losses/crossentropy.h"
#include "layers/metrics/accuracy.h"
#include "layers/metrics/auc.h"
#include "layers/metrics/crossentropy.h"
#include "layers/training/terminal_progress.h"
#include "optimizers/adam.h"
#include "optimizers/registry.h"
#include "savedmodel/checkpoint_manager.h"
#include "savedmodel/saved_model.h"

ABSL_FLAG(std::string, data, "synthetic",
          "folder with train.csv, test.csv and schema.json, or 'synthetic'");
ABSL_FLAG(std::string, model, "dlrm", "wide_deep, dlrm or dcn");
ABSL_FLAG(std::string, strategy, "tpu", "cpu or tpu");
ABSL_FLAG(int, hosts, 1, "of the tpu strategy; mpirun deals them to its processes");
ABSL_FLAG(int, cores, 4, "of each host, each a replica");
ABSL_FLAG(int, workers, 0,
          "threads that carry the replicas of a process; 0: one for each of its processors");
ABSL_FLAG(int64_t, epochs, 3, "passes over the training rows");
ABSL_FLAG(int64_t, batch_size, 256, "rows of the global batch");
ABSL_FLAG(std::string, embedding_optimizer, "adagrad", "of the tables: sgd, adagrad, adam or ftrl");
ABSL_FLAG(double, embedding_learning_rate, 0.05, "of the tables");
ABSL_FLAG(double, learning_rate, 0.001, "of the dense layers' Adam");
ABSL_FLAG(int64_t, embedding_dim, 8, "columns of each table");
ABSL_FLAG(double, dropout, 0.1, "after each hidden layer");
ABSL_FLAG(uint64_t, seed, 1, "of weights, shuffling and dropout");
ABSL_FLAG(std::string, checkpoint_dir, "", "where checkpoints go; none are written if empty");
ABSL_FLAG(int64_t, checkpoint_steps, 0, "steps between checkpoints; 0: one after each epoch");
ABSL_FLAG(bool, resume, false, "go on from the latest checkpoint in --checkpoint_dir");
ABSL_FLAG(int64_t, stop_after_steps, 0, "stop, with a checkpoint, when so many steps are done");
ABSL_FLAG(std::string, export, "",
          "file (.h5 or .keras) for the trained model, which takes raw columns, and tf.Example by "
          "the signature 'serve_examples'");
ABSL_FLAG(std::string, export_table_dtype, "float32",
          "of the tables in the --export; int8: a quarter of the bytes, in layers of Keras");
ABSL_FLAG(std::string, write_predictions, "", "CSV file for the predictions of the test rows");
ABSL_FLAG(std::string, write_test_csv, "", "copy of the test rows, for serving them");

namespace keel::examples {
namespace {

constexpr char kUsage[] =
    "train_ctr: trains a click model on a folder of CSV files or on synthetic clicks,\n"
    "prints its test AUC, log loss and accuracy, and exports it for serving.\n"
    "The same program under mpirun, with a host for each process, gives the same files.";

constexpr int64_t kPredictBatch = 4096;

// A folder that goes when it goes.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / (name + "." + std::to_string(getpid()))) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

// Of the processes of a job the first one speaks and writes files.
bool is_first() { return distribute::processes().rank() == 0; }

std::ostream& out() {
  static std::ostream nowhere(nullptr);
  return is_first() ? std::cout : nowhere;
}

struct Data {
  std::unique_ptr<TemporaryFolder> synthetic;
  CtrSchema schema;
  CtrRows train, test;
  std::filesystem::path test_csv;
  std::optional<double> best_auc = {};  // of synthetic clicks
};

void check_flags() {
  const auto at_least = [](const char* flag, double value, double least) {
    if (!(value >= least))
      throw ValueError("--", flag, " must be at least ", least, ", received ", value);
  };
  at_least("batch_size", static_cast<double>(absl::GetFlag(FLAGS_batch_size)), 1);
  at_least("epochs", static_cast<double>(absl::GetFlag(FLAGS_epochs)), 1);
  at_least("workers", absl::GetFlag(FLAGS_workers), 0);
  at_least("checkpoint_steps", static_cast<double>(absl::GetFlag(FLAGS_checkpoint_steps)), 0);
  at_least("stop_after_steps", static_cast<double>(absl::GetFlag(FLAGS_stop_after_steps)), 0);
  at_least("embedding_dim", static_cast<double>(absl::GetFlag(FLAGS_embedding_dim)), 1);
}

Data load_data() {
  std::filesystem::path folder = absl::GetFlag(FLAGS_data);
  Data data;
  if (folder == "synthetic") {
    data.synthetic = std::make_unique<TemporaryFolder>("keel_synthetic_ctr");
    folder = data.synthetic->path();
    data.best_auc = write_synthetic_ctr(folder, {.seed = 1});
  }
  data.schema = read_schema(folder);
  data.train = read_ctr_csv(folder / "train.csv", data.schema);
  data.test = read_ctr_csv(folder / "test.csv", data.schema);
  data.test_csv = folder / "test.csv";
  return data;
}

OptimizerHandle make_embedding_optimizer() {
  OptimizerHandle optimizer = optimizers::get(absl::GetFlag(FLAGS_embedding_optimizer));
  optimizer->set_learning_rate(absl::GetFlag(FLAGS_embedding_learning_rate));
  return optimizer;
}

// Model, optimizers and the step that trains them; the same code under both strategies.
class Training {
 public:
  Training(distribute::Strategy& strategy, const CtrPreprocessing& preprocessing)
      : strategy_(strategy),
        model_(make_ctr_model(preprocessing, {.model = absl::GetFlag(FLAGS_model),
                                              .embedding_dim = absl::GetFlag(FLAGS_embedding_dim),
                                              .dropout = absl::GetFlag(FLAGS_dropout),
                                              .table_optimizer = embedding_optimizer_})) {}

  // Mean loss of one global batch of (x, y).
  double step(const distribute::PerReplica<Tensors>& batch) {
    const double rows = rows_of(batch);
    const auto losses = strategy_.run(
        [&](const Tensors& part) {
          GradientTape tape;
          const Tensor y = model_.model(part[0], {.training = true}).tensor();
          Tensor loss = ops::sum(losses::binary_crossentropy(part[1].tensor(), y)) / rows;
          apply(tape, loss);
          return loss;
        },
        batch);
    return strategy_.reduce(distribute::ReduceOp::kSum, losses).item<float>();
  }

  const CtrModel& model() const { return model_; }
  const OptimizerHandle& embedding_optimizer() const { return embedding_optimizer_; }
  const OptimizerHandle& dense_optimizer() const { return dense_optimizer_; }

 private:
  // Over the replicas of all processes.
  double rows_of(const distribute::PerReplica<Tensors>& batch) const {
    std::vector<Tensor> rows;
    for (const Tensors& part : batch.values()) {
      rows.push_back(Tensor::scalar(static_cast<double>(row_count(part))));
    }
    return strategy_.reduce(distribute::ReduceOp::kSum, distribute::PerReplica(std::move(rows)))
        .item<double>();
  }

  // Variables of the embedding layer (its tables, or the virtual one that stands for them) go to
  // its optimizer, the rest to the other.
  void apply(GradientTape& tape, const Tensor& loss) {
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

  distribute::Strategy& strategy_;
  const OptimizerHandle embedding_optimizer_ = make_embedding_optimizer();
  const OptimizerHandle dense_optimizer_ =
      optimizers::Adam({.learning_rate = absl::GetFlag(FLAGS_learning_rate)});
  const CtrModel model_;
};

// Batches of one epoch from a given step on; their order depends on the seed and the epoch alone,
// so that a resumed run sees what the first one would have.
data::Dataset epoch_batches(const Tensors& rows, int64_t epoch, int64_t first_step) {
  const auto seed = static_cast<int64_t>(absl::GetFlag(FLAGS_seed)) * 1'000'003 + epoch;
  return data::Dataset::from_tensor_slices(rows)
      .shuffle(row_count(rows), {.seed = seed, .reshuffle_each_iteration = false})
      .batch(absl::GetFlag(FLAGS_batch_size))
      .skip(first_step);
}

void train(Training& training, distribute::Strategy& strategy, const Tensors& rows) {
  const int64_t batch_size = absl::GetFlag(FLAGS_batch_size);
  const int64_t steps_per_epoch = (row_count(rows) + batch_size - 1) / batch_size;
  const int64_t total = steps_per_epoch * absl::GetFlag(FLAGS_epochs);
  const int64_t stop = absl::GetFlag(FLAGS_stop_after_steps);
  const int64_t every = absl::GetFlag(FLAGS_checkpoint_steps);
  std::optional<CheckpointManager> checkpoints;
  if (const std::string folder = absl::GetFlag(FLAGS_checkpoint_dir); !folder.empty()) {
    checkpoints.emplace(Checkpoint({.model = LayerHandle<Layer>(training.model().model),
                                    .optimizers = {{"embedding", training.embedding_optimizer()},
                                                   {"dense", training.dense_optimizer()}}}),
                        folder, CheckpointManagerOptions{.max_to_keep = 3});
  }
  if (absl::GetFlag(FLAGS_resume)) {
    if (!checkpoints) throw ValueError("--resume needs --checkpoint_dir");
    const auto latest = checkpoints->restore_or_initialize();
    out() << (latest ? "resumed from " + latest->path : "no checkpoint, starting anew") << '\n';
  }
  const auto style =
      isatty(STDOUT_FILENO) != 0 ? TerminalProgress::Style::kBar : TerminalProgress::Style::kLine;
  int64_t step = training.dense_optimizer()->iterations();
  while (step < total && (stop == 0 || step < stop)) {
    const int64_t epoch = step / steps_per_epoch;
    const std::string head = str("Epoch ", epoch + 1, "/", absl::GetFlag(FLAGS_epochs));
    if (style == TerminalProgress::Style::kBar) out() << head << '\n';
    TerminalProgress progress(out(), style, head, steps_per_epoch);
    Logs logs;
    double loss_sum = 0;
    int64_t done = 0;
    for (const auto& batch : strategy.experimental_distribute_dataset(
             epoch_batches(rows, epoch, step % steps_per_epoch),
             {.experimental_per_replica_buffer_size = 2})) {
      loss_sum += training.step(batch);
      ++step;
      ++done;
      logs = {{"loss", loss_sum / static_cast<double>(done)}};
      progress.update(step - epoch * steps_per_epoch, logs);
      const bool due = every > 0 ? step % every == 0 : step % steps_per_epoch == 0;
      if (checkpoints && (due || step == stop)) checkpoints->save(step);
      if (step == stop) break;
    }
    progress.finish(step - epoch * steps_per_epoch, logs);
  }
}

void report(const Data& data, const Tensor& predictions) {
  const metrics::AUC auc({});
  const metrics::BinaryCrossentropy log_loss({});
  const metrics::BinaryAccuracy accuracy({});
  auc->update_state(data.test.labels, predictions);
  log_loss->update_state(data.test.labels, predictions);
  accuracy->update_state(data.test.labels, predictions);
  out() << std::fixed << std::setprecision(4);
  if (data.best_auc) {
    out() << "best auc the generator allows " << *data.best_auc << '\n';
  }
  out() << "test auc " << auc->result() << " log_loss " << log_loss->result() << " accuracy "
        << accuracy->result() << '\n';
}

int run() {
  check_flags();
  if (absl::GetFlag(FLAGS_workers) > 0) set_num_workers(absl::GetFlag(FLAGS_workers));
  set_random_seed(absl::GetFlag(FLAGS_seed));
  const Data data = load_data();
  const CtrPreprocessing preprocessing(data.schema, data.train.columns);
  const auto strategy = distribute::make_strategy(
      absl::GetFlag(FLAGS_strategy),
      {.num_hosts = absl::GetFlag(FLAGS_hosts), .num_cores = absl::GetFlag(FLAGS_cores)});
  const auto scope = strategy->scope();
  Training training(*strategy, preprocessing);
  const ModelHandle serving = make_serving_model(preprocessing, training.model().model);
  out() << absl::GetFlag(FLAGS_model) << " on " << row_count(data.train.columns) << " rows, "
        << strategy->name() << " of " << strategy->num_replicas_in_sync() << " replicas\n";
  train(training, *strategy,
        Tensors::tuple({preprocessing(data.train.columns), data.train.labels}));
  const Tensor predictions =
      serving
          ->predict(data.test.columns, {.batch_size = kPredictBatch, .verbose = Verbose::kSilent})
          .tensor();
  if (const std::string file = absl::GetFlag(FLAGS_write_predictions);
      is_first() && !file.empty()) {
    write_predictions(file, predictions);
  }
  if (const std::string file = absl::GetFlag(FLAGS_write_test_csv); is_first() && !file.empty()) {
    std::filesystem::copy_file(data.test_csv, file,
                               std::filesystem::copy_options::overwrite_existing);
  }
  if (const std::string file = absl::GetFlag(FLAGS_export); !file.empty()) {
    const std::string table_dtype = absl::GetFlag(FLAGS_export_table_dtype);
    save_model(serving, file,
               {.for_keras = table_dtype == "int8",
                .table_dtype = table_dtype,
                .signatures = {{"serve_examples", preprocessing.example_features()}}});
    out() << "exported to " << file << '\n';
  }
  report(data, predictions);
  return 0;
}

}  // namespace
}  // namespace keel::examples

int main(int argc, char** argv) {
  keel::examples::parse_flags(argc, argv, keel::examples::kUsage);
  return keel::examples::run_program("train_ctr", keel::examples::run);
}

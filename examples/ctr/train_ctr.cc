// Trains, evaluates, checkpoints and exports a click model with TPUEmbedding tables.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string_view>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/temporary_file.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/termination.h>
#include <keel/layers/metrics/accuracy.h>
#include <keel/savedmodel/saved_model.h>

#include "examples/ctr/ctr_training.h"
#include "examples/ctr/predictions_csv.h"
#include "examples/ctr/synthetic.h"
#include "examples/flags.h"

ABSL_FLAG(std::string, data, "synthetic",
          "folder with schema.json, train.csv and test.csv, or 'synthetic'; schema.json may name "
          "other files, a delimiter, and the columns of files without a header line");
ABSL_FLAG(std::string, model, "dlrm", "wide_deep, dlrm or dcn");
ABSL_FLAG(std::string, strategy, "tpu", "cpu or tpu");
ABSL_FLAG(int, hosts, 1, "hosts of the tpu strategy; mpirun distributes them over its processes");
ABSL_FLAG(int, cores, 4, "replicas per host");
ABSL_FLAG(int, workers, 0, "worker threads per process; 0: one per processor of the process");
ABSL_FLAG(double, validation_split, 0.1,
          "fraction of the training rows held out to choose the best epoch; 0: no validation, run "
          "all epochs and keep the last weights");
ABSL_FLAG(std::string, validation_csv, "",
          "file with validation rows; replaces --validation_split");
ABSL_FLAG(int64_t, epochs, 50, "maximum number of passes over the training rows");
ABSL_FLAG(int64_t, patience, 6,
          "epochs without a lower validation loss before training stops and restores the best "
          "weights");
ABSL_FLAG(int64_t, batch_size, 0,
          "rows of the global batch; 0: 256, or more with at least 500,000 rows");
ABSL_FLAG(std::string, embedding_optimizer, "adagrad",
          "optimizer of the tables: sgd, adagrad, adam or ftrl");
ABSL_FLAG(double, embedding_learning_rate, 0.05, "learning rate of the tables");
ABSL_FLAG(double, learning_rate, 0.001, "learning rate of Adam for the dense layers");
ABSL_FLAG(int64_t, embedding_dim, 8, "columns of each table");
ABSL_FLAG(std::string, hidden, "128,64", "units of the hidden layers");
ABSL_FLAG(double, dropout, 0.2, "dropout rate after each hidden layer");
ABSL_FLAG(double, embedding_dropout, 0.3, "dropout rate of embedding elements");
ABSL_FLAG(int64_t, min_count, 5,
          "training rows that a category needs to get its own table row; rarer categories share "
          "the row of unknown categories");
ABSL_FLAG(int64_t, max_buckets, 20, "maximum number of bins of a numeric column");
ABSL_FLAG(uint64_t, seed, 1, "seed of weights, shuffling, dropout and the validation split");
ABSL_FLAG(std::string, checkpoint_dir, "",
          "folder for checkpoints, including one when SIGINT or SIGTERM ends the training; empty: "
          "no checkpoints");
ABSL_FLAG(int64_t, checkpoint_steps, 0, "steps between checkpoints; 0: one checkpoint per epoch");
ABSL_FLAG(bool, resume, false,
          "continue from the latest checkpoint in --checkpoint_dir, with the same options");
ABSL_FLAG(int64_t, stop_after_steps, 0,
          "stop with a checkpoint after this number of steps; 0: no limit");
ABSL_FLAG(std::string, export, "",
          "file (.h5 or .keras) for the trained model, which takes raw columns, or tf.Example with "
          "the signature 'serve_examples'");
ABSL_FLAG(bool, for_keras, false,
          "write the --export with Keras layers only, so that Keras can load it");
ABSL_FLAG(std::string, export_table_dtype, "float32",
          "dtype of the tables in the --export; int8 needs a quarter of the bytes and uses Keras "
          "layers");
ABSL_FLAG(std::string, write_predictions, "", "CSV file for the predictions of the test rows");
ABSL_FLAG(std::string, write_test_csv, "", "CSV file for a copy of the test rows, to serve them");

namespace keel::examples {
namespace {

constexpr char kUsage[] =
    "train_ctr: trains a click model on a folder of CSV files or on synthetic clicks,\n"
    "prints its test AUC, log loss and accuracy, and exports it for serving.\n"
    "Under mpirun, with at least one host per process, it writes the same files.\n"
    "SIGINT and SIGTERM end the training in an orderly way with status 130 and 143; a second\n"
    "signal ends the program at once.";

constexpr int64_t kPredictBatch = 4096;

// A folder that is removed with the object. The next folder of the same name removes folders of
// killed processes, whose lock files no longer exist.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : lock_((std::filesystem::temp_directory_path() / name).string(), TemporaryFile::kPrivate),
        path_(lock_.path() + std::string(kSuffix)) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path(), ignored)) {
      std::string lock = entry.path().string();
      const bool is_folder =
          entry.path().filename().string().starts_with(name + ".tmp-") && lock.ends_with(kSuffix);
      if (!is_folder) continue;
      lock.resize(lock.size() - kSuffix.size());
      if (!std::filesystem::exists(lock, ignored)) {
        std::filesystem::remove_all(entry.path(), ignored);
      }
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr std::string_view kSuffix = ".d";
  const TemporaryFile lock_;
  const std::filesystem::path path_;
};

// Only the first process of a job prints and writes files.
bool is_first() { return distribute::processes().rank() == 0; }

std::ostream& out() {
  static std::ostream nowhere(nullptr);
  return is_first() ? std::cout : nowhere;
}

struct Data {
  std::unique_ptr<TemporaryFolder> synthetic;
  CtrSchema schema;
  CtrRows train, test;
  std::optional<CtrRows> validation = {};
  std::optional<double> best_auc = {};  // synthetic clicks only
};

std::vector<int64_t> hidden_units() {
  const std::string text = absl::GetFlag(FLAGS_hidden);
  std::vector<int64_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at <= end) {
    int64_t units = 0;
    const auto [next, error] = std::from_chars(at, end, units);
    if (error != std::errc() || units < 1 || (next != end && *next != ',')) {
      throw ValueError("--hidden must be positive integers separated by commas, received '", text,
                       "'");
    }
    out.push_back(units);
    at = next + 1;
  }
  return out;
}

void check_flags() {
  const auto at_least = [](const char* flag, double value, double least) {
    if (!(value >= least && std::isfinite(value)))
      throw ValueError("--", flag, " must be at least ", least, ", received ", value);
  };
  const auto positive = [](const char* flag, double value) {
    if (!(value > 0 && std::isfinite(value)))
      throw ValueError("--", flag, " must be positive and finite, received ", value);
  };
  const auto share = [](const char* flag, double value) {
    if (!(value >= 0 && value < 1))
      throw ValueError("--", flag, " must be at least 0 and below 1, received ", value);
  };
  at_least("batch_size", static_cast<double>(absl::GetFlag(FLAGS_batch_size)), 0);
  at_least("epochs", static_cast<double>(absl::GetFlag(FLAGS_epochs)), 1);
  at_least("patience", static_cast<double>(absl::GetFlag(FLAGS_patience)), 0);
  at_least("workers", absl::GetFlag(FLAGS_workers), 0);
  at_least("checkpoint_steps", static_cast<double>(absl::GetFlag(FLAGS_checkpoint_steps)), 0);
  at_least("stop_after_steps", static_cast<double>(absl::GetFlag(FLAGS_stop_after_steps)), 0);
  at_least("embedding_dim", static_cast<double>(absl::GetFlag(FLAGS_embedding_dim)), 1);
  at_least("min_count", static_cast<double>(absl::GetFlag(FLAGS_min_count)), 1);
  at_least("max_buckets", static_cast<double>(absl::GetFlag(FLAGS_max_buckets)), 2);
  positive("learning_rate", absl::GetFlag(FLAGS_learning_rate));
  positive("embedding_learning_rate", absl::GetFlag(FLAGS_embedding_learning_rate));
  share("dropout", absl::GetFlag(FLAGS_dropout));
  share("embedding_dropout", absl::GetFlag(FLAGS_embedding_dropout));
  share("validation_split", absl::GetFlag(FLAGS_validation_split));
  if (absl::GetFlag(FLAGS_resume) && absl::GetFlag(FLAGS_checkpoint_dir).empty()) {
    throw ValueError("--resume needs --checkpoint_dir");
  }
  hidden_units();
}

SaveOptions export_options() {
  const std::string table_dtype = absl::GetFlag(FLAGS_export_table_dtype);
  return {.for_keras = absl::GetFlag(FLAGS_for_keras) || table_dtype == "int8",
          .table_dtype = table_dtype};
}

// Throws IoError if a file cannot be created there. Devices and pipes are opened only later.
void check_output_file(const std::string& file) {
  const auto type = std::filesystem::status(file).type();
  using Type = std::filesystem::file_type;
  if (type == Type::not_found || type == Type::regular || type == Type::directory) {
    const AtomicFile probe(file);
  }
}

// Reports outputs that cannot be written before the training instead of after it.
void check_outputs() {
  if (const std::string file = absl::GetFlag(FLAGS_export); !file.empty()) {
    check_save_model(file, export_options());
  }
  distribute::run_collectively(distribute::processes(), "train_ctr", [] {
    if (!is_first()) return;
    for (const std::string& file :
         {absl::GetFlag(FLAGS_write_predictions), absl::GetFlag(FLAGS_write_test_csv)}) {
      if (!file.empty()) check_output_file(file);
    }
    const std::string folder = absl::GetFlag(FLAGS_checkpoint_dir);
    if (folder.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw IoError(folder, ": the folder cannot be created: ", error.message());
    check_output_file(std::filesystem::path(folder) / "checkpoint");
  });
}

Data load_data() {
  std::filesystem::path folder = absl::GetFlag(FLAGS_data);
  Data data;
  if (folder == "synthetic") {
    data.synthetic = std::make_unique<TemporaryFolder>("keel_synthetic_ctr");
    folder = data.synthetic->path();
    data.best_auc = write_synthetic_ctr(folder, {.seed = 1});
  }
  const std::string validation = absl::GetFlag(FLAGS_validation_csv);
  std::vector<std::filesystem::path> more_files;
  if (!validation.empty()) more_files.emplace_back(validation);
  data.schema = read_ctr_schema(folder, more_files);
  data.train = read_ctr_csv(data.schema.train_file, data.schema);
  data.test = read_ctr_csv(data.schema.test_file, data.schema);
  if (!validation.empty()) {
    data.validation = read_ctr_csv(validation, data.schema);
  } else if (const double share = absl::GetFlag(FLAGS_validation_split); share > 0) {
    auto parts = split_ctr_rows(data.train, share, absl::GetFlag(FLAGS_seed));
    data.train = std::move(parts.first);
    data.validation = std::move(parts.second);
  }
  return data;
}

// Larger batches need less time per row. With enough data they do not reduce the accuracy because
// an epoch still has thousands of steps.
int64_t default_batch_size(int64_t rows) {
  constexpr int64_t kLeast = 256, kMost = 4096, kSteps = 1000;
  int64_t out = kLeast;
  while (out < kMost && rows / (2 * out) >= kSteps) out *= 2;
  return out;
}

CtrTrainingOptions training_options(int64_t rows) {
  const int64_t batch_size = absl::GetFlag(FLAGS_batch_size);
  CtrTrainingOptions options = {
      .model = {.model = absl::GetFlag(FLAGS_model),
                .embedding_dim = absl::GetFlag(FLAGS_embedding_dim),
                .hidden = hidden_units(),
                .dropout = absl::GetFlag(FLAGS_dropout),
                .embedding_dropout = absl::GetFlag(FLAGS_embedding_dropout)},
      .embedding_optimizer = absl::GetFlag(FLAGS_embedding_optimizer),
      .embedding_learning_rate = absl::GetFlag(FLAGS_embedding_learning_rate),
      .learning_rate = absl::GetFlag(FLAGS_learning_rate),
      .batch_size = batch_size > 0 ? batch_size : default_batch_size(rows),
      .epochs = absl::GetFlag(FLAGS_epochs),
      .patience = absl::GetFlag(FLAGS_patience),
      .seed = absl::GetFlag(FLAGS_seed),
      .checkpoint_dir = absl::GetFlag(FLAGS_checkpoint_dir),
      .checkpoint_steps = absl::GetFlag(FLAGS_checkpoint_steps),
      .resume = absl::GetFlag(FLAGS_resume),
      .stop_after_steps = absl::GetFlag(FLAGS_stop_after_steps)};
  options.fixed = Config::dict({{"model", options.model.model},
                                {"embedding_optimizer", options.embedding_optimizer},
                                {"embedding_learning_rate", options.embedding_learning_rate},
                                {"learning_rate", options.learning_rate},
                                {"embedding_dim", options.model.embedding_dim},
                                {"hidden", absl::GetFlag(FLAGS_hidden)},
                                {"dropout", options.model.dropout},
                                {"embedding_dropout", options.model.embedding_dropout},
                                {"min_count", absl::GetFlag(FLAGS_min_count)},
                                {"max_buckets", absl::GetFlag(FLAGS_max_buckets)},
                                {"batch_size", options.batch_size},
                                {"patience", options.patience},
                                {"validation_split", absl::GetFlag(FLAGS_validation_split)},
                                {"validation_csv", absl::GetFlag(FLAGS_validation_csv)},
                                {"seed", static_cast<int64_t>(options.seed)}});
  return options;
}

CtrExamples examples_of(const CtrFeatures& features, const CtrRows& rows) {
  return {.features = features(rows.columns), .labels = rows.labels};
}

SignatureSpecs signatures_of(const CtrFeatures& features) {
  ExampleFeatures out;
  for (const auto& [name, spec] : features.example_features()) out[name].feature = spec;
  return {{"serve_examples", std::move(out)}};
}

void report(const Data& data, const Tensor& predictions) {
  const Logs logs = ctr_metrics(data.test.labels, predictions);
  const metrics::BinaryAccuracy accuracy({});
  accuracy->update_state(data.test.labels, predictions);
  out() << std::fixed << std::setprecision(4);
  if (data.best_auc) {
    out() << "best possible auc " << *data.best_auc << '\n';
  }
  out() << "test auc " << logs.at("auc") << " log_loss " << logs.at("loss") << " accuracy "
        << accuracy->result() << '\n';
}

// Returns the exit status of a program that was ended by a signal.
int end_by_signal(const std::optional<std::string>& checkpoint, int64_t steps) {
  // The signal may have been received by another process of the job.
  const int signal = TerminationSignals::received().value_or(SIGTERM);
  out() << signal_name(signal) << ": ended after " << steps << " training steps; ";
  if (checkpoint) {
    out() << *checkpoint << " written; continue with --resume\n";
  } else {
    out() << "no checkpoint written; pass --checkpoint_dir to get one\n";
  }
  return exit_status(signal);
}

int run() {
  const TerminationSignals signals;
  check_flags();
  check_outputs();
  if (absl::GetFlag(FLAGS_workers) > 0) set_num_workers(absl::GetFlag(FLAGS_workers));
  set_random_seed(absl::GetFlag(FLAGS_seed));
  const Data data = load_data();
  const CtrFeatures features(data.schema, data.train.columns,
                             {.min_count = absl::GetFlag(FLAGS_min_count),
                              .max_buckets = absl::GetFlag(FLAGS_max_buckets)});
  const auto strategy = distribute::make_strategy(
      absl::GetFlag(FLAGS_strategy),
      {.num_hosts = absl::GetFlag(FLAGS_hosts), .num_cores = absl::GetFlag(FLAGS_cores)});
  const auto scope = strategy->scope();
  CtrTraining training(*strategy, features, training_options(data.train.labels.dim(0)));
  const ModelHandle serving = make_serving_model(features, training.model());
  out() << absl::GetFlag(FLAGS_model) << " on " << data.train.labels.dim(0) << " rows";
  if (data.validation) out() << ", validated on " << data.validation->labels.dim(0);
  out() << ", " << strategy->name() << " of " << strategy->num_replicas_in_sync() << " replicas\n";
  std::optional<CtrExamples> validation;
  if (data.validation) validation = examples_of(features, *data.validation);
  if (training.run(examples_of(features, data.train), validation, out()) ==
      CtrTraining::End::kSignal) {
    return end_by_signal(training.last_checkpoint(), training.steps());
  }

  const Tensor predictions =
      serving
          ->predict(data.test.columns, {.batch_size = kPredictBatch, .verbose = Verbose::kSilent})
          .tensor();
  report(data, predictions);
  if (const std::string file = absl::GetFlag(FLAGS_export); !file.empty()) {
    SaveOptions options = export_options();
    options.signatures = signatures_of(features);
    save_model(serving, file, options);
    out() << "exported to " << file << '\n';
  }
  // Write predictions after the export because their failure must not prevent it.
  if (const std::string file = absl::GetFlag(FLAGS_write_test_csv); is_first() && !file.empty()) {
    std::filesystem::copy_file(data.schema.test_file, file,
                               std::filesystem::copy_options::overwrite_existing);
  }
  if (const std::string file = absl::GetFlag(FLAGS_write_predictions);
      is_first() && !file.empty()) {
    write_predictions(file, predictions);
  }
  return 0;
}

}  // namespace
}  // namespace keel::examples

int main(int argc, char** argv) {
  keel::examples::parse_flags(argc, argv, keel::examples::kUsage);
  return keel::examples::run_program("train_ctr", keel::examples::run);
}

// Trains, evaluates, checkpoints and exports a click model with TPUEmbedding tables.
#include <absl/strings/str_format.h>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string_view>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/temporary_file.h>
#include <keel/framework/base/internal/text.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/termination.h>
#include <keel/layers/metrics/accuracy.h>
#include <keel/savedmodel/saved_model.h>

#include "examples/ctr/ctr_training.h"
#include "examples/ctr/predictions_csv.h"
#include "examples/ctr/synthetic.h"
#include "examples/program.h"

namespace keel::examples {
namespace {

struct Flags {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of the help
  std::string data = "synthetic";
  std::string model = "dlrm";
  std::string strategy = "tpu";
  int hosts = 1;
  int cores = 4;
  int workers = 0;
  double validation_split = 0.1;
  std::string validation_csv;
  bool no_quoting = false;
  int64_t epochs = 50;
  int64_t patience = 6;
  int64_t batch_size = 0;
  std::string embedding_optimizer = "adagrad";
  double embedding_learning_rate = 0.05;
  double learning_rate = 0.001;
  int64_t embedding_dim = 8;
  std::string hidden = "128,64";
  double dropout = 0.2;
  double embedding_dropout = 0.3;
  int64_t min_count = 5;
  bool dynamic = false;
  std::string dynamic_columns;
  int64_t capacity = 0;
  std::string admission = "always";
  std::string eviction = "none";
  std::string not_admitted = "zero";
  bool in_order = false;
  bool progressive = false;
  int64_t max_buckets = 20;
  uint64_t seed = 1;
  std::string checkpoint_dir;
  int64_t checkpoint_steps = 0;
  bool resume = false;
  int64_t stop_after_steps = 0;
  std::string export_file;
  bool for_keras = false;
  std::string export_table_dtype = "float32";
  std::string write_predictions;
  std::string write_test_csv;
};

Flags flags;

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
  const std::string text = flags.hidden;
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

// A flag value such as "count:3": a kind, and a number or nothing.
struct Choice {
  std::string kind;
  std::optional<double> number = {};
};

// Throws ValueError unless `text` is one of the kinds; a kind that ends in ':' needs a number, and
// one that ends in '?' may have one.
Choice choice_of(const std::string& flag, const std::string& text,
                 const std::vector<std::string>& kinds) {
  const size_t colon = text.find(':');
  Choice out = {.kind = text.substr(0, colon)};
  if (colon != std::string::npos) out.number = parse_number<double>(text.substr(colon + 1));
  const bool bad_number = colon != std::string::npos && !out.number;
  for (std::string kind : kinds) {
    const char last = kind.back();
    if (last == ':' || last == '?') kind.pop_back();
    if (kind != out.kind || bad_number) continue;
    if (out.number ? last == ':' || last == '?' : last != ':') return out;
  }
  std::string all;
  for (std::string kind : kinds) {
    if (kind.back() == ':') kind += 'N';
    if (kind.back() == '?') kind = kind.substr(0, kind.size() - 1) + "[:N]";
    all += (all.empty() ? "" : ", ") + kind;
  }
  throw ValueError(flag, " must be one of ", all, ", received '", text, "'");
}

std::vector<std::string> column_names(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// Returns the options of tables for unbounded ids; unset without --dynamic.
std::optional<DynamicVocabulary> dynamic_options() {
  if (!flags.dynamic) return {};
  DynamicVocabulary out = {.capacity = flags.capacity};
  const Choice admission = choice_of("--admission", flags.admission,
                                     {"always", "count:", "sketch:", "probability:", "never"});
  const auto times = static_cast<int64_t>(admission.number.value_or(0));
  if (admission.kind == "count") out.admission = Admission::count(times);
  if (admission.kind == "sketch") out.admission = Admission::sketch(times);
  if (admission.kind == "probability") out.admission = Admission::probability(*admission.number);
  // More occurrences than any id has.
  if (admission.kind == "never") {
    out.admission = Admission::count(int64_t{1} << 40, {.max_pending = 1});
  }
  const Choice eviction = choice_of("--eviction", flags.eviction, {"none", "lru", "lfu?", "ttl:"});
  const auto steps = static_cast<int64_t>(eviction.number.value_or(0));
  if (eviction.kind == "lru") out.eviction = Eviction::lru();
  if (eviction.kind == "lfu") out.eviction = Eviction::lfu({.halve_every = steps});
  if (eviction.kind == "ttl") out.eviction = Eviction::none({.ttl = steps});
  const Choice other =
      choice_of("--not_admitted", flags.not_admitted, {"zero", "ignore", "default_row", "hashed:"});
  if (other.kind == "ignore") out.not_admitted = NotAdmitted::ignore();
  if (other.kind == "default_row") out.not_admitted = NotAdmitted::default_row();
  if (other.kind == "hashed") {
    out.not_admitted = NotAdmitted::hashed(static_cast<int64_t>(*other.number));
  }
  check(out, "of --dynamic");
  return out;
}

void check_flags() {
  if (flags.resume && flags.checkpoint_dir.empty()) {
    throw ValueError("--resume requires --checkpoint_dir");
  }
  hidden_units();
  const bool needs_dynamic = flags.capacity > 0 || flags.admission != "always" ||
                             flags.eviction != "none" || flags.not_admitted != "zero" ||
                             !flags.dynamic_columns.empty();
  if (needs_dynamic && !flags.dynamic) {
    throw ValueError(
        "--capacity, --admission, --eviction, --not_admitted and --dynamic_columns require "
        "--dynamic");
  }
  dynamic_options();
}

SaveOptions export_options() {
  const std::string table_dtype = flags.export_table_dtype;
  return {.for_keras = flags.for_keras || table_dtype == "int8", .table_dtype = table_dtype};
}

// Throws IoError if a file cannot be created there. Devices and pipes are opened only later.
void check_output_file(const std::string& file) {
  std::error_code ignored;  // the probe reports it
  const auto type = std::filesystem::status(file, ignored).type();
  using Type = std::filesystem::file_type;
  if (type == Type::not_found || type == Type::regular || type == Type::directory) {
    const AtomicFile probe(file);
  }
}

// Reports outputs that cannot be written before the training instead of after it.
void check_outputs() {
  if (const std::string file = flags.export_file; !file.empty()) {
    check_save_model(file, export_options());
  }
  distribute::run_collectively(distribute::processes(), "train_ctr", [] {
    if (!is_first()) return;
    for (const std::string& file : {flags.write_predictions, flags.write_test_csv}) {
      if (!file.empty()) check_output_file(file);
    }
    const std::string folder = flags.checkpoint_dir;
    if (folder.empty()) return;
    create_folder(folder);
    check_output_file(std::filesystem::path(folder) / "checkpoint");
  });
}

std::optional<bool> quoting() { return flags.no_quoting ? std::optional(false) : std::nullopt; }

Data load_data() {
  std::filesystem::path folder = flags.data;
  Data data;
  if (folder == "synthetic") {
    data.synthetic = std::make_unique<TemporaryFolder>("keel_synthetic_ctr");
    folder = data.synthetic->path();
    data.best_auc = write_synthetic_ctr(folder, {.seed = 1});
  }
  const std::string validation = flags.validation_csv;
  std::vector<std::filesystem::path> more_files;
  if (!validation.empty()) more_files.emplace_back(validation);
  data.schema = read_ctr_schema(folder, more_files, quoting());
  data.train = read_ctr_csv(data.schema.train_file, data.schema);
  data.test = read_ctr_csv(data.schema.test_file, data.schema);
  if (!validation.empty()) {
    data.validation = read_ctr_csv(validation, data.schema);
  } else if (const double share = flags.validation_split; share > 0) {
    auto parts = split_ctr_rows(data.train, share, flags.seed);
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
  const int64_t batch_size = flags.batch_size;
  CtrTrainingOptions options = {
      .model = {.model = flags.model,
                .embedding_dim = flags.embedding_dim,
                .hidden = hidden_units(),
                .dropout = flags.dropout,
                .embedding_dropout = flags.embedding_dropout},
      .embedding_optimizer = flags.embedding_optimizer,
      .embedding_learning_rate = flags.embedding_learning_rate,
      .learning_rate = flags.learning_rate,
      .batch_size = batch_size > 0 ? batch_size : default_batch_size(rows),
      .epochs = flags.epochs,
      .patience = flags.patience,
      .seed = flags.seed,
      .checkpoint_dir = flags.checkpoint_dir,
      .checkpoint_steps = flags.checkpoint_steps,
      .resume = flags.resume,
      .stop_after_steps = flags.stop_after_steps,
      .in_order = flags.in_order};
  options.fixed = Config::dict({{"model", options.model.model},
                                {"embedding_optimizer", options.embedding_optimizer},
                                {"embedding_learning_rate", options.embedding_learning_rate},
                                {"learning_rate", options.learning_rate},
                                {"embedding_dim", options.model.embedding_dim},
                                {"hidden", flags.hidden},
                                {"dropout", options.model.dropout},
                                {"embedding_dropout", options.model.embedding_dropout},
                                {"min_count", flags.min_count},
                                {"max_buckets", flags.max_buckets},
                                {"dynamic", flags.dynamic},
                                {"dynamic_columns", flags.dynamic_columns},
                                {"capacity", flags.capacity},
                                {"admission", flags.admission},
                                {"eviction", flags.eviction},
                                {"not_admitted", flags.not_admitted},
                                {"in_order", flags.in_order},
                                {"batch_size", options.batch_size},
                                {"patience", options.patience},
                                {"validation_split", flags.validation_split},
                                {"validation_csv", flags.validation_csv},
                                {"no_quoting", flags.no_quoting},
                                {"seed", static_cast<int64_t>(options.seed)}});
  return options;
}

CtrExamples examples_of(const CtrFeatures& features, const CtrRows& rows) {
  return {.features = features(rows.columns), .labels = rows.labels};
}

SignatureSpecs signatures_of(const CtrFeatures& features) {
  ExampleFeatures out;
  for (const auto& [name, spec] : features.example_features()) {
    const std::string& input = features.input_name(name);
    out[name] = {.feature = spec, .input = input == name ? "" : input};
  }
  return {{"serve_examples", std::move(out)}};
}

SaveOptions export_options(const CtrFeatures& features) {
  SaveOptions options = export_options();
  options.signatures = signatures_of(features);
  return options;
}

std::string auc_text(const Logs& logs) {
  const auto auc = logs.find("auc");
  return auc == logs.end() ? "undefined" : absl::StrFormat("%.4f", auc->second);
}

// Warns of rows whose AUC is undefined.
void check_classes(const char* rows, const Tensor& labels) {
  if (!is_first() || has_both_classes(labels)) return;
  std::cerr
      << "warning: the labels of the " << rows
      << " rows are all the same, so that their AUC is undefined; pass rows with both 0 and 1\n";
}

void report(const Data& data, const Tensor& predictions) {
  const Logs logs = ctr_metrics(data.test.labels, predictions);
  const metrics::BinaryAccuracy accuracy({});
  accuracy->update_state(data.test.labels, predictions);
  out() << std::fixed << std::setprecision(4);
  if (data.best_auc) {
    out() << "best possible auc " << *data.best_auc << '\n';
  }
  out() << "test auc " << auc_text(logs) << " log_loss " << logs.at("loss") << " accuracy "
        << accuracy->result() << '\n';
}

// Prints a line for each table for unbounded ids.
void report_tables(const CtrTraining& training) {
  for (const auto& [name, table] : training.embedding()->dynamic_tables()) {
    const DynamicTableStatistics s = table.statistics();
    const int64_t evicted = s.evicted_ttl + s.evicted_norm + s.evicted_capacity;
    out() << "table " << name << ": " << s.size << " rows, " << s.admitted << " ids admitted, "
          << evicted << " evicted, " << s.refused << " refused\n";
  }
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
  if (flags.workers > 0) set_num_workers(flags.workers);
  set_random_seed(flags.seed);
  const Data data = load_data();
  const CtrFeatures features(data.schema, data.train.columns,
                             {.min_count = flags.min_count,
                              .max_buckets = flags.max_buckets,
                              .dynamic = dynamic_options(),
                              .dynamic_columns = column_names(flags.dynamic_columns)});
  const auto strategy = distribute::make_strategy(
      flags.strategy, {.num_hosts = flags.hosts, .num_cores = flags.cores});
  const auto scope = strategy->scope();
  CtrTraining training(*strategy, features, training_options(data.train.labels.dim(0)));
  const ModelHandle serving = make_serving_model(features, training.model());
  if (const std::string file = flags.export_file; !file.empty()) {
    check_save_model(*serving, file, export_options(features));
  }
  check_classes("test", data.test.labels);
  if (data.validation) check_classes("validation", data.validation->labels);
  out() << flags.model << " on " << data.train.labels.dim(0) << " rows";
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
  report_tables(training);
  if (const std::string file = flags.export_file; !file.empty()) {
    save_model(serving, file, export_options(features));
    out() << "exported to " << file << '\n';
  }
  // Write predictions after the export because their failure must not prevent it.
  if (const std::string file = flags.write_test_csv; is_first() && !file.empty()) {
    std::error_code error;
    std::filesystem::copy_file(data.schema.test_file, file,
                               std::filesystem::copy_options::overwrite_existing, error);
    if (error) throw IoError(file, ": cannot be written: ", error.message());
  }
  if (const std::string file = flags.write_predictions; is_first() && !file.empty()) {
    write_predictions(file, predictions);
  }
  if (flags.progressive) {
    const Tensor later = training.predict_and_train(examples_of(features, data.test));
    out() << "progressive auc " << auc_text(ctr_metrics(data.test.labels, later)) << '\n';
  }
  return 0;
}

void add_model_options(tool::CommandLine& line) {
  line.option("--data", &flags.data,
              "folder with schema.json, train.csv and test.csv, or 'synthetic'; schema.json may "
              "name other files, a delimiter, and the columns of files without a header line",
              {.placeholder = "FOLDER=synthetic"});
  line.option("--no_quoting", &flags.no_quoting,
              "quotes in the files are data, whatever schema.json contains");
  line.option("--model", &flags.model, "wide_deep, dlrm or dcn");
  line.option("--strategy", &flags.strategy, "cpu or tpu");
  line.option("--hosts", &flags.hosts,
              "hosts of the tpu strategy; mpirun distributes them over its processes");
  line.option("--cores", &flags.cores, "replicas per host");
  line.option("--workers", &flags.workers,
              "worker threads per process; 0: one per processor of the process",
              {.limits = {.least = 0}});
}

void add_training_options(tool::CommandLine& line) {
  line.option("--validation_split", &flags.validation_split,
              "fraction of the training rows held out to choose the best epoch; 0: no validation, "
              "run all epochs and keep the last weights",
              {.limits = {.least = 0, .below = 1}});
  line.option("--validation_csv", &flags.validation_csv,
              "file with validation rows; replaces --validation_split", {.placeholder = "FILE"});
  line.option("--epochs", &flags.epochs, "maximum number of passes over the training rows",
              {.limits = {.least = 1}});
  line.option(
      "--patience", &flags.patience,
      "epochs without a lower validation loss before training stops and restores the best weights",
      {.limits = {.least = 0}});
  line.option("--batch_size", &flags.batch_size,
              "rows of the global batch; 0: 256, or more with at least 500,000 rows",
              {.limits = {.least = 0}});
  line.option("--embedding_optimizer", &flags.embedding_optimizer,
              "optimizer of the tables: sgd, adagrad, adam or ftrl");
  line.option("--embedding_learning_rate", &flags.embedding_learning_rate,
              "learning rate of the tables", {.limits = {.above = 0}});
  line.option("--learning_rate", &flags.learning_rate, "learning rate of Adam for the dense layers",
              {.limits = {.above = 0}});
  line.option("--embedding_dim", &flags.embedding_dim, "columns of each table",
              {.limits = {.least = 1}});
  line.option("--hidden", &flags.hidden, "units of the hidden layers");
  line.option("--dropout", &flags.dropout, "dropout rate after each hidden layer",
              {.limits = {.least = 0, .below = 1}});
  line.option("--embedding_dropout", &flags.embedding_dropout, "dropout rate of embedding elements",
              {.limits = {.least = 0, .below = 1}});
  line.option("--min_count", &flags.min_count,
              "training rows that a category needs to get its own table row; rarer categories "
              "share the row of unknown categories",
              {.limits = {.least = 1}});
  line.option("--dynamic", &flags.dynamic,
              "tables for unbounded ids: categories need no vocabulary, get rows while the model "
              "trains and may be evicted");
  line.option("--dynamic_columns", &flags.dynamic_columns,
              "the columns with such tables, separated by commas; empty: all categorical columns",
              {.placeholder = "NAMES"});
  line.option("--capacity", &flags.capacity, "maximum number of rows of such a table; 0: unbounded",
              {.limits = {.least = 0}});
  line.option("--admission", &flags.admission,
              "which categories get a row: always; count:N or sketch:N, at the N-th occurrence; "
              "probability:P in each step; never");
  line.option("--eviction", &flags.eviction,
              "which rows a full table evicts: none, which stops the training; lru; lfu:N, whose "
              "counts are halved every N steps; ttl:N, rows without an occurrence for N steps");
  line.option("--not_admitted", &flags.not_admitted,
              "what categories without a row read: zero, ignore, default_row, or hashed:K, one of "
              "K rows");
  line.option("--in_order", &flags.in_order,
              "train on the rows in their order in the file, for logs in order of time");
  line.option("--progressive", &flags.progressive,
              "at the end predict each batch of the test rows, then train on it, and print the "
              "AUC of these predictions");
  line.option("--max_buckets", &flags.max_buckets, "maximum number of bins of a numeric column",
              {.limits = {.least = 2}});
  line.option("--seed", &flags.seed,
              "seed of weights, shuffling, dropout and the validation split");
}

void add_file_options(tool::CommandLine& line) {
  line.option("--checkpoint_dir", &flags.checkpoint_dir,
              "folder for checkpoints, including one when SIGINT or SIGTERM ends the training; "
              "empty: no checkpoints",
              {.placeholder = "FOLDER"});
  line.option("--checkpoint_steps", &flags.checkpoint_steps,
              "steps between checkpoints; 0: one checkpoint per epoch", {.limits = {.least = 0}});
  line.option("--resume", &flags.resume,
              "continue from the latest checkpoint in --checkpoint_dir, with the same options");
  line.option("--stop_after_steps", &flags.stop_after_steps,
              "stop with a checkpoint after this number of steps; 0: no limit",
              {.limits = {.least = 0}});
  line.option("--export", &flags.export_file,
              "file (.h5 or .keras) for the trained model, which takes raw columns, or tf.Example "
              "with the signature 'serve_examples'",
              {.placeholder = "FILE"});
  line.option("--for_keras", &flags.for_keras,
              "write the --export with Keras layers only, so that Keras can load it");
  line.option("--export_table_dtype", &flags.export_table_dtype,
              "dtype of the tables in the --export; int8 needs a quarter of the bytes and uses "
              "Keras layers");
  line.option("--write_predictions", &flags.write_predictions,
              "CSV file for the predictions of the test rows", {.placeholder = "FILE"});
  line.option("--write_test_csv", &flags.write_test_csv,
              "CSV file for a copy of the test rows, to serve them", {.placeholder = "FILE"});
}

}  // namespace
}  // namespace keel::examples

int main(int argc, char** argv) {
  keel::tool::CommandLine line(
      "train_ctr",
      "train_ctr: trains a click model on a folder of CSV files or on synthetic clicks,\n"
      "prints its test AUC, log loss and accuracy, and exports it for serving.",
      "Under mpirun, with at least one host per process, it writes the same files.\n"
      "SIGINT and SIGTERM end the training in an orderly way with status 130 and 143; a second\n"
      "signal ends the program at once.");
  keel::examples::add_model_options(line);
  keel::examples::add_training_options(line);
  keel::examples::add_file_options(line);
  return keel::examples::run_program(line, argc, argv, keel::examples::run);
}

// Measures the loss of accuracy and the gain of lower precision for a click model on real data: the
// test AUC of DLRM trained in float32, with 16-bit tables, and with bfloat16 products, and of the
// float32 model served from 8-bit tables that are created by the plan or read from a file for
// Keras.
//
// Each variant is trained with the same seeds on the data sets of $KEEL_DATA_DIR. Missing data sets
// are skipped. "loss" is the float32 AUC minus the AUC of the variant, as the mean over the seeds.
// "error" is the standard error of this mean; a loss below two standard errors may be due to
// chance. "spread" is the effect of the seed alone: the standard deviation of the float32 AUC. The
// program also measures the speed of 16-bit tables (precision/table_speed.h).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <unistd.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/config/dtype_policy.h>
#include <keel/layers/ctr/ctr_model.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/saved_model.h>

#include "benchmarks/precision/table_speed.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int kReplicas = 4;
constexpr int64_t kDim = 8;

// Use the exact AUC because a histogram would hide such small differences.
double area_under_curve(const Tensor& labels, const Tensor& scores) {
  const metrics::ExactAUC area({});
  area->update_state(labels, scores);
  return area->result();
}

struct DataSet {
  std::string name;
  Tensors train, test;  // inputs in the form that the model takes
  Tensor train_labels, test_labels;
  std::unique_ptr<CtrFeatures> features;
};

DataSet read_data_set(const std::filesystem::path& folder) {
  const CtrSchema schema = read_ctr_schema(folder);
  const CtrRows train = read_ctr_csv(schema.train_file, schema);
  const CtrRows test = read_ctr_csv(schema.test_file, schema);
  auto features = std::make_unique<CtrFeatures>(schema, train.columns);
  return {.name = folder.filename(),
          .train = (*features)(train.columns),
          .test = (*features)(test.columns),
          .train_labels = train.labels,
          .test_labels = test.labels,
          .features = std::move(features)};
}

struct Kind {
  std::string name;
  std::string storage_dtype = "float32";
  std::string dtype_policy = "float32";
  // Serving variants use the last model that was trained in float32 instead of training a model.
  enum class Int8 { kNone, kPlan, kFile } int8 = Int8::kNone;
};

std::vector<Kind> kinds() {
  return {{.name = "float32"},
          {.name = "int8 tables served", .int8 = Kind::Int8::kPlan},
          {.name = "int8 tables in a file", .int8 = Kind::Int8::kFile},
          {.name = "bfloat16 tables", .storage_dtype = "bfloat16"},
          {.name = "float16 tables", .storage_dtype = "float16"},
          {.name = "mixed_bfloat16", .dtype_policy = "mixed_bfloat16"},
          {.name = "mixed_bfloat16, bfloat16 tables",
           .storage_dtype = "bfloat16",
           .dtype_policy = "mixed_bfloat16"}};
}

// The scores of the test rows, and the model on the host.
struct Trained {
  Tensor scores;
  ModelHandle model;
};

// Returns the model after writing it to a file and reading it back.
ModelHandle reread(const ModelHandle& model, const SaveOptions& options = {}) {
  const std::string file =
      std::filesystem::temp_directory_path() / str("keel_precision.", getpid(), ".keras");
  save_model(model, file, options);
  ModelHandle out = load_model(file, {.compile = false});
  std::filesystem::remove(file);
  return out;
}

Trained train(const DataSet& data, const Kind& kind, uint64_t seed, int64_t epochs) {
  set_random_seed(seed);
  const DTypePolicy before = dtype_policy();
  set_dtype_policy(kind.dtype_policy);
  std::optional<Functional> trained;
  Tensor scores;
  distribute::TPUStrategy strategy({.num_cores = kReplicas});
  {
    const auto scope = strategy.scope();
    const CtrModel made = make_ctr_model(
        *data.features, {.embedding_dim = kDim,
                         .dropout = 0.1,
                         .embedding_optimizer = optimizers::Adagrad({.learning_rate = 0.05}),
                         .storage_dtype = kind.storage_dtype});
    trained = made.model;
    made.model->compile(
        {.optimizer = optimizers::Adam({.learning_rate = 0.001}), .loss = "binary_crossentropy"});
    made.model->fit(data.train, data.train_labels,
                    {.epochs = epochs, .batch_size = 256, .verbose = Verbose::kSilent});
    scores =
        made.model->predict(data.test, {.batch_size = 4096, .verbose = Verbose::kSilent}).tensor();
  }
  set_dtype_policy(before);
  return {.scores = scores, .model = reread(*trained)};
}

double mean(const std::vector<double>& values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  double squares = 0;
  for (const double x : values) squares += (x - mean(values)) * (x - mean(values));
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Tensor scores_of(const Trained& trained, const Kind& kind, const DataSet& data) {
  switch (kind.int8) {
    case Kind::Int8::kNone:
      break;
    case Kind::Int8::kPlan:
      return ServingPlan(trained.model, {.table_dtype = "int8"})(data.test).tensor();
    case Kind::Int8::kFile: {
      const SaveOptions options = {.for_keras = true, .table_dtype = "int8"};
      return ServingPlan(reread(trained.model, options))(data.test).tensor();
    }
  }
  return trained.scores;
}

void measure(const DataSet& data, const Options& options, Report& report) {
  const int seeds = options.quick ? 3 : 20;
  const int64_t epochs = options.quick ? 2 : 3;
  std::map<std::string, std::vector<double>> aucs;  // by seed
  for (int seed = 1; seed <= seeds; ++seed) {
    std::optional<Trained> last;
    for (const Kind& kind : kinds()) {
      if (kind.int8 == Kind::Int8::kNone) last = train(data, kind, seed, epochs);
      aucs[kind.name].push_back(area_under_curve(data.test_labels, scores_of(*last, kind, data)));
    }
  }
  const std::vector<double>& exact = aucs["float32"];
  for (const Kind& kind : kinds()) {
    const std::vector<double>& of_kind = aucs[kind.name];
    std::vector<double> losses(exact.size());
    std::ranges::transform(exact, of_kind, losses.begin(), std::minus());
    report.add({.op = data.name,
                .dim = kDim,
                .optimizer = "adagrad",
                .threads = options.threads,
                .value = mean(of_kind),
                .unit = "auc",
                .more = {{"loss", mean(losses)},
                         {"error", deviation(losses) / std::sqrt(losses.size())},
                         {"spread", deviation(exact)}},
                .labels = {{"precision", kind.name}}});
  }
}

int run(const Options& options) {
  Report report(options, "bench_precision");
  const char* const given = std::getenv("KEEL_DATA_DIR");
  const std::filesystem::path folder = given != nullptr ? given : "../shared/data";
  for (const char* name : {"adult", "chicago_taxi"}) {
    if (!options.wants(name)) continue;
    if (!std::filesystem::is_directory(folder / name)) {
      report.note(
          str((folder / name).string(), ": no such folder; KEEL_DATA_DIR says where it is"));
      continue;
    }
    measure(read_data_set(folder / name), options, report);
  }
  if (options.wants("tables")) measure_table_speed(options, report);
  report.note(
      "loss: AUC of float32 less this one, mean over seeds; error: of that mean; spread: of "
      "float32 "
      "over seeds");
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_precision",
      "The test AUC of DLRM on real data with tables of 16 bits, products in bfloat16, and tables "
      "of 8 bits in serving, and the speed of the former. Cases: adult, chicago_taxi, tables."));
}

// Loads a model from an HDF5 file and predicts the rows of a CSV file.
#include <iostream>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/data/csv/csv.h>
#include <keel/layers/ctr/ctr_model.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/saved_model.h>

#include "examples/ctr/predictions_csv.h"
#include "examples/program.h"

namespace keel::examples {
namespace {

struct Flags {
  std::string model;
  std::string csv;
  std::string schema;
  std::string output;
  int64_t batch_size = 4096;
  bool no_quoting = false;
};

Flags flags;

// Returns the value of an empty field in a column of integer categories: that of the signature
// 'serve_examples', because models of earlier versions have another one.
double empty_category(const std::string& column, const SignatureSpecs& signatures) {
  const auto examples = signatures.find("serve_examples");
  if (examples != signatures.end()) {
    const auto found = examples->second.find(column);
    const auto* const feature = found == examples->second.end()
                                    ? nullptr
                                    : std::get_if<data::FixedLenFeature>(&found->second.feature);
    if (feature != nullptr && feature->default_value &&
        feature->default_value.dtype() == DType::kInt64) {
      return static_cast<double>(feature->default_value.item<int64_t>());
    }
  }
  return static_cast<double>(kNoCategory);
}

// Returns the columns that the model takes in the form that the reader expects. Empty fields are
// treated as in training.
std::vector<data::CsvColumn> columns_of(const FunctionalModel& model,
                                        const SignatureSpecs& signatures) {
  std::vector<data::CsvColumn> columns;
  for (const auto& [name, input] : model.inputs().entries()) {
    data::CsvColumn column{.name = name, .dtype = input.leaf().spec().dtype};
    if (column.dtype == DType::kInt64) column.default_value = empty_category(name, signatures);
    if (is_floating(column.dtype)) column.default_value = 0;
    columns.push_back(std::move(column));
  }
  return columns;
}

int run() {
  const std::string file = flags.model;
  const std::string csv = flags.csv;
  const ModelHandle model = load_model(file, {.compile = false});
  const auto* functional = dynamic_cast<const FunctionalModel*>(model.shared().get());
  if (functional == nullptr || !functional->inputs().is_dict()) {
    throw ValueError(file, ": the file does not contain a functional model with named inputs");
  }
  data::CsvOptions options;
  if (const std::string schema = flags.schema; !schema.empty()) {
    constexpr int64_t kMostBytes = 64 << 20;
    options = ctr_csv_options(parse_ctr_schema(read_text_file(schema, kMostBytes), schema));
  }
  if (flags.no_quoting) options.quoting = false;
  options.columns = columns_of(*functional, read_signature_specs(file));
  options.batch_size = flags.batch_size;
  const data::Dataset rows = data::csv_dataset(csv, options);
  const Tensor predictions = model->predict(rows, {.verbose = Verbose::kSilent}).tensor();
  if (const std::string output = flags.output; !output.empty()) {
    write_predictions(std::filesystem::path(output), predictions);
    std::cout << predictions.dim(0) << " predictions written to " << output << '\n';
  } else {
    write_predictions(std::cout, predictions);
  }
  return 0;
}

void add_options(tool::CommandLine& line) {
  line.option("--model", &flags.model, "HDF5 file, as train_ctr --export writes it",
              {.placeholder = "FILE", .required = true});
  line.option("--csv", &flags.csv, "CSV file with a column for each input of the model",
              {.placeholder = "FILE", .required = true});
  line.option("--schema", &flags.schema,
              "schema.json of the training, if it has a delimiter, quoting or columns",
              {.placeholder = "FILE"});
  line.option("--no_quoting", &flags.no_quoting,
              "quotes in the CSV file are data, whatever --schema contains");
  line.option("--output", &flags.output, "CSV file for the predictions; standard output if empty",
              {.placeholder = "FILE"});
  line.option("--batch_size", &flags.batch_size, "rows predicted at once");
}

}  // namespace
}  // namespace keel::examples

int main(int argc, char** argv) {
  keel::tool::CommandLine line(
      "serve_hdf5",
      "serve_hdf5: loads a model from an HDF5 file and predicts the rows of a CSV file.",
      "The columns of the CSV file must have the names of the model's inputs.");
  keel::examples::add_options(line);
  return keel::examples::run_program(line, argc, argv, keel::examples::run);
}

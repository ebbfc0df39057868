// keel predict: computes a model's predictions for the inputs in files.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <iostream>
#include <ranges>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/text.h>
#include <keel/framework/data/tfrecord.h>
#include <keel/framework/exact_cast.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/training/internal/output_names.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/csv_tensors.h>
#include <keel/savedmodel/tool/difference.h>
#include <keel/savedmodel/tool/json_tensors.h>
#include <keel/savedmodel/tool/model_file.h>

namespace keel::tool {
namespace {

constexpr const char* kPredict = "keel predict";
constexpr const char* kExamples = "examples";

struct PredictFlags {
  std::string model;
  std::vector<std::string> inputs;
  std::optional<std::string> expected, output, signature, weights;
  std::optional<double> atol, rtol;
  bool by_name = false;
  int64_t batch_size = 1024;
  bool no_quoting = false;
  int64_t max_quoted_lines = 100;
};

bool takes_examples(const Signature& signature) {
  const auto& inputs = signature.inputs();
  return inputs.size() == 1 && inputs.begin()->first == kExamples &&
         inputs.begin()->second.dtype == DType::kString;
}

enum class InputKind { kRecords, kCsv, kJson };

// Determines the kind of a file from its name. Record files are often named
// "clicks.tfrecord-00000-of-00012" or "clicks_tfrecord-00000-of-00012.gz".
InputKind kind_of_inputs(const std::string& path) {
  if (path.ends_with(".json")) return InputKind::kJson;
  if (path.ends_with(".csv")) return InputKind::kCsv;
  if (path.find("tfrecord", path.rfind('/') + 1) != std::string::npos) return InputKind::kRecords;
  throw ValueError(kPredict,
                   ": INPUTS must end in .json or .csv, or be records with 'tfrecord' in ",
                   "their name, received '", path, "'");
}

InputKind kind_of_inputs(const std::vector<std::string>& paths) {
  const InputKind kind = kind_of_inputs(paths.at(0));
  for (const std::string& path : paths) {
    if (kind_of_inputs(path) != kind) {
      throw ValueError(kPredict, ": INPUTS must be files of one kind, received '", paths[0],
                       "' and '", path, "'");
    }
  }
  return kind;
}

// Returns the signature of --signature. By default, this is "serving_default" or, for record files,
// the only signature that takes examples.
std::pair<std::string, Signature> chosen_signature(const PredictFlags& flags,
                                                   const Signatures& all) {
  const bool records = kind_of_inputs(flags.inputs) == InputKind::kRecords;
  const std::optional<std::string> requested = flags.signature;
  const std::string names = absl::StrJoin(std::views::keys(all), ", ");
  std::vector<std::string> fitting;
  for (const auto& [name, signature] : all) {
    const bool fits = requested ? name == *requested
                      : records ? takes_examples(signature)
                                : name == kServingDefault;
    if (fits) fitting.push_back(name);
  }
  if (requested && fitting.empty()) {
    throw ValueError(kPredict, ": the model has no signature '", *requested, "'; it has ", names);
  }
  if (records && fitting.size() != 1) {
    throw ValueError(kPredict, ": ", fitting.empty() ? "no signature" : "more than one signature",
                     " of the model takes examples, as in ", flags.inputs[0], "; it has ", names);
  }
  const Signature& signature = all.at(fitting[0]);
  if (records && !takes_examples(signature)) {
    throw ValueError(kPredict, ": signature '", fitting[0], "' does not take examples, as in ",
                     flags.inputs[0], "; choose another with --signature");
  }
  return {fitting[0], signature};
}

void check_fits(const std::string& path, const std::string& name, const TensorSpec& spec,
                const TensorLike& value) {
  const TensorSpec given = value.spec();
  if (given.dtype != spec.dtype || given.layout != spec.layout) {
    constexpr const char* kLayouts[] = {"", "ragged ", "sparse "};
    throw TypeError(path, ": input '", name, "' must be ",
                    kLayouts[static_cast<size_t>(spec.layout)], spec.dtype, ", received ",
                    kLayouts[static_cast<size_t>(given.layout)], given.dtype);
  }
  if (!compatible(spec.shape, given.shape)) {
    throw ValueError(path, ": input '", name, "' must have shape ", spec.shape, ", received ",
                     given.shape);
  }
}

std::string names_of(const std::map<std::string, TensorSpec>& inputs) {
  std::string out;
  for (const auto& [name, _] : inputs) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

// Returns batches of the rows of a JSON file.
data::Dataset json_inputs(const std::string& path, const std::map<std::string, TensorSpec>& inputs,
                          int64_t batch_size) {
  Tensors::Dict found;
  const std::vector<NamedTensor> given = read_json_tensors(path, "inputs");
  for (const NamedTensor& tensor : given) {
    auto at = inputs.find(tensor.name);
    // A single input may have any name, because Keras 2 numbers inputs differently in each program.
    if (at == inputs.end() && inputs.size() == 1 && given.size() == 1) at = inputs.begin();
    if (at == inputs.end()) {
      throw ValueError(path, ": the model has no input '", tensor.name, "'; it takes ",
                       names_of(inputs));
    }
    TensorLike value = tensor.value;
    const bool other_number = value.values().dtype() != at->second.dtype &&
                              value.values().dtype() != DType::kString &&
                              at->second.dtype != DType::kString;
    if (other_number && value.layout() == Layout::kDense) {
      value = exact_cast(str(path, ": input '", tensor.name, "'"), value, at->second.dtype);
    }
    check_fits(path, tensor.name, at->second, value);
    if (!found.emplace(at->first, value).second) {
      throw ValueError(path, ": input '", tensor.name, "' is given twice; give each input once");
    }
  }
  for (const auto& input : inputs) {
    if (!found.contains(input.first)) {
      throw ValueError(path, ": input '", input.first, "' is missing; the model takes ",
                       names_of(inputs));
    }
  }
  const auto rows = std::make_shared<const Tensors>(std::move(found));
  const int64_t count = row_count(*rows);
  return data::Dataset::from_generator([rows, count, batch_size] {
    return [rows, count, batch_size, begin = int64_t{0}]() mutable -> std::optional<Tensors> {
      if (begin >= count && begin > 0) return {};
      const int64_t first = begin;
      begin = std::max<int64_t>(1, std::min(count, first + batch_size));
      return slice_rows(*rows, first, std::min(count, first + batch_size));
    };
  });
}

// Returns batches of inputs. `features` are those that the signature parses, if it takes examples.
data::Dataset inputs_of(const std::string& path, const Signature& signature,
                        const ExampleFeatures& features, const PredictFlags& flags) {
  const int64_t batch_size = flags.batch_size;
  const CsvQuoting quoting = {.quoting = !flags.no_quoting,
                              .max_quoted_lines = flags.max_quoted_lines};
  switch (kind_of_inputs(path)) {
    case InputKind::kRecords:
      return data::TFRecordDataset(path, {.compression_type = path.ends_with(".gz") ? "GZIP" : ""})
          .batch(batch_size)
          .map([](const Tensors& batch) { return Tensors::dict({{kExamples, batch}}); });
    case InputKind::kCsv:
      if (!features.empty()) return csv_examples(path, features, batch_size, quoting);
      return csv_inputs(path, signature.inputs(), batch_size, quoting);
    case InputKind::kJson:
      break;
  }
  return json_inputs(path, signature.inputs(), batch_size);
}

// Returns the predictions for the rows of all files in order.
Tensors predictions(const PredictFlags& flags, const Signature& signature,
                    const ExampleFeatures& features) {
  const std::vector<std::string>& paths = flags.inputs;
  std::vector<Tensors> batches;
  for (const std::string& path : paths) {
    int64_t row = 1;
    for (const Tensors& batch : inputs_of(path, signature, features, flags)) {
      const int64_t rows = row_count(batch);
      const std::string place = absl::StrCat("rows ", row, " to ", row + rows - 1);
      batches.push_back(naming_file(path, place.c_str(), [&] { return signature(batch); }));
      row += rows;
    }
  }
  if (batches.empty()) throw ValueError(paths[0], ": the file has no rows; pass at least one row");
  return concat_rows(batches);
}

// Returns the outputs in the order of the model, which a dict does not preserve.
std::vector<NamedTensor> ordered(const Model& model, const Tensors& outputs) {
  std::vector<std::string> names;
  if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
    names = output_names(model, functional->outputs());
  } else {
    for (const auto& output : outputs.entries()) names.push_back(output.first);
  }
  std::vector<NamedTensor> out;
  for (const std::string& name : names) out.push_back({name, outputs[name].leaf()});
  return out;
}

void write_outputs(const std::string& path, const std::vector<NamedTensor>& outputs) {
  std::string text;
  if (path.ends_with(".csv")) {
    text = csv_tensors(outputs);
  } else {
    text = json_tensors(outputs, "outputs");
  }
  write_text_file(path, text);
  std::cout << "wrote " << path << '\n';
}

// Prints a line for each output. Returns true if all are within the tolerance.
bool compare(const std::string& path, const std::vector<NamedTensor>& outputs,
             const std::vector<NamedTensor>& expected, double atol, double rtol) {
  if (outputs.size() != expected.size()) {
    throw ValueError(path, ": the model has ", outputs.size(), " outputs, the file has ",
                     expected.size());
  }
  bool close = true;
  double largest = 0;
  for (const NamedTensor& wanted : expected) {
    const auto at = std::ranges::find(outputs, wanted.name, &NamedTensor::name);
    if (at == outputs.end() && expected.size() > 1) {
      throw ValueError(path, ": the model has no output '", wanted.name,
                       "'; remove it from the expected values");
    }
    const NamedTensor& output = at == outputs.end() ? outputs[0] : *at;
    const std::string other = structure_difference(output.value, wanted.value);
    if (!other.empty()) {
      std::cout << output.name << ": " << other << '\n';
      close = false;
      continue;
    }
    const Tensor &a = output.value.values(), &b = wanted.value.values();
    if (a.shape() != b.shape() || (a.dtype() == DType::kString) != (b.dtype() == DType::kString)) {
      std::cout << output.name << ": " << a.dtype() << ' ' << a.shape() << ", expected "
                << b.dtype() << ' ' << b.shape() << '\n';
      close = false;
      continue;
    }
    const Difference found = difference(a, b, atol, rtol);
    largest = std::max(largest, found.largest);
    close = close && found.count == 0;
    std::cout << output.name << ' ' << a.shape() << ": max difference "
              << number_text(found.largest) << (found.at.empty() ? "" : " at " + found.at) << ", "
              << found.count << " of " << a.size() << " too far\n";
  }
  std::cout << "max difference " << number_text(largest) << (close ? ", within " : ", not within ")
            << "atol " << number_text(atol);
  if (rtol > 0) std::cout << " and rtol " << number_text(rtol);
  std::cout << '\n';
  return close;
}

void check_arguments(const PredictFlags& flags) {
  if (!flags.expected && (flags.atol || flags.rtol)) {
    throw ValueError(kPredict, ": --atol and --rtol require --expected");
  }
  if (flags.output && !flags.output->ends_with(".json") && !flags.output->ends_with(".csv")) {
    throw ValueError(kPredict, ": --output must end in .json or .csv, received '", *flags.output,
                     "'");
  }
}

int run(const PredictFlags& flags) {
  check_arguments(flags);
  const double atol = flags.atol.value_or(1e-5), rtol = flags.rtol.value_or(0);
  const std::string& path = flags.model;
  std::vector<NamedTensor> expected;
  if (flags.expected) expected = read_json_tensors(*flags.expected, "outputs");
  const ModelHandle model = load_whole_model(kPredict, path).model;
  if (flags.weights) {
    load_weights_into(kPredict, model, *flags.weights, flags.by_name);
  } else if (flags.by_name) {
    throw ValueError(kPredict, ": --by_name is for weights; pass a weights file with --weights");
  }
  const auto [name, signature] = chosen_signature(flags, signatures(model, path));
  const SignatureSpecs specs = read_signature_specs(path);
  const auto features = specs.find(name);
  const std::vector<NamedTensor> outputs =
      ordered(*model, predictions(flags, signature,
                                  features == specs.end() ? ExampleFeatures() : features->second));
  if (flags.output) {
    write_outputs(*flags.output, outputs);
  } else if (!flags.expected) {
    std::cout << json_tensors(outputs, "outputs");
  }
  if (!flags.expected) return 0;
  return compare(*flags.expected, outputs, expected, atol, rtol) ? 0 : 1;
}

}  // namespace

void add_predict(CommandLine& keel) {
  CommandLine& command = keel.add_command(
      "predict", "Runs a model on the inputs in files and compares the predictions.",
      "INPUTS are files of one kind:\n"
      "  - JSON, {\"inputs\": [{\"name\", \"dtype\", \"shape\", \"data\"}]} with data flat and "
      "row-major;\n"
      "  - CSV with a column for each input. If --signature names a signature that takes "
      "tf.Example,\n"
      "    CSV has a column for each of its features, and an empty field has the feature's "
      "default;\n"
      "  - records of tf.Example for a signature that takes them: files with 'tfrecord' in their\n"
      "    name, gzipped if the name ends in .gz.\n"
      "Predictions are printed as JSON, {\"outputs\": [...]}, unless --output or --expected is "
      "given.\n"
      "The exit status is 1 if predictions differ from the expected ones.");
  const auto flags = std::make_shared<PredictFlags>();
  command.argument("MODEL", &flags->model, "model file");
  command.argument("INPUTS", &flags->inputs, "files with inputs; see below");
  command.option("--expected", &flags->expected, "compare with these outputs (.json)",
                 {.placeholder = "FILE"});
  command.option("--atol", &flags->atol, "absolute tolerance",
                 {.placeholder = "A=1e-5", .limits = {.least = 0}});
  command.option("--rtol", &flags->rtol, "relative tolerance",
                 {.placeholder = "R=0", .limits = {.least = 0}});
  command.option("--output", &flags->output, "write predictions to a .json or .csv file",
                 {.placeholder = "FILE"});
  command.option("--no_quoting", &flags->no_quoting, "quotes in CSV are data");
  command.option("--max_quoted_lines", &flags->max_quoted_lines,
                 "the most lines that a quoted field of CSV may span", {.limits = {.least = 1}});
  command.option("--signature", &flags->signature, "signature to run",
                 {.placeholder = "NAME=serving_default"});
  command.option("--weights", &flags->weights, "load these weights into the model first",
                 {.placeholder = "FILE"});
  command.option("--by_name", &flags->by_name, "match layers of the weights by name (.h5)");
  command.option("--batch_size", &flags->batch_size, "rows per batch", {.limits = {.least = 1}});
  command.set_run([flags] { return run(*flags); });
}

}  // namespace keel::tool

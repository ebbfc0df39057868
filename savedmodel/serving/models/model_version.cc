#include <keel/savedmodel/serving/models/model_version.h>

#include <algorithm>

#include <keel/layers/functional/functional.h>
#include <keel/layers/training/internal/output_names.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/saved_model.h>

namespace keel::serving {
namespace {

constexpr int64_t kMostOutputBytes = int64_t{1} << 30;

std::vector<TensorInfo> outputs_of(const Model& model, const std::vector<TensorSpec>& specs) {
  const auto* functional = dynamic_cast<const FunctionalModel*>(&model);
  const Tensors structure = functional != nullptr
                                ? functional->outputs()
                                : Tensors(TensorLike(Tensor::symbolic(specs.at(0))));
  const std::vector<std::string> names = output_names(model, structure);
  std::vector<TensorInfo> out;
  for (size_t i = 0; i < names.size(); ++i) out.push_back({.name = names[i], .spec = specs[i]});
  return out;
}

bool fills_floats(const TensorSpec& spec) {
  return spec.layout == Layout::kDense && spec.dtype == DType::kFloat32 && spec.shape.rank() > 0 &&
         spec.shape[0] == kUnknown && spec.shape.without(0).fully_defined();
}

// The bytes of a row of a dense output, or 0 if they depend on more than the number of rows.
int64_t bytes_per_row(const TensorSpec& spec) {
  const bool fixed = spec.layout == Layout::kDense && spec.shape.rank() > 0 &&
                     spec.shape[0] == kUnknown && spec.shape.without(0).fully_defined();
  return fixed ? spec.shape.without(0).size() * static_cast<int64_t>(size_of(spec.dtype)) : 0;
}

int64_t bytes_of(const TensorView& view) {
  const int64_t count = view.layout == Layout::kSparse ? view.values : view.shape.size();
  int64_t bytes = count * static_cast<int64_t>(size_of(view.dtype));
  if (view.layout == Layout::kRagged) bytes += (view.rows + 1) * int64_t{sizeof(int64_t)};
  if (view.layout == Layout::kSparse) {
    bytes += view.values * view.shape.rank() * int64_t{sizeof(int64_t)};
  }
  if (view.dtype != DType::kString) return bytes;
  const auto* const strings = static_cast<const std::string*>(view.data);
  for (int64_t i = 0; i < count; ++i) bytes += std::ssize(strings[i]);
  return bytes;
}

[[noreturn]] void fail_output_size(int64_t rows) {
  throw ServeError(Code::kInvalidArgument, "the outputs of ", rows, " rows need more than ",
                   kMostOutputBytes, " bytes; send fewer rows");
}

}  // namespace

ModelVersion::ModelVersion(std::string model, int64_t number, const std::string& path,
                           std::shared_ptr<ModelMetrics> model_metrics,
                           std::shared_ptr<MappedTables> tables)
    : model_(std::move(model)),
      number_(number),
      number_text_(std::to_string(number)),
      tables_(std::move(tables)),
      model_metrics_(std::move(model_metrics)) {
  const ModelHandle loaded = load_model(path, {.compile = false, .mapped_tables = tables_});
  runs_ = planned_signatures(loaded, path);
  specs_ = read_signature_specs(path);
  plan_ = runs_.at(kServingDefault).serving_plan();
  std::vector<TensorInfo> inputs;
  for (size_t i = 0; i < plan_->input_names().size(); ++i) {
    inputs.push_back({.name = plan_->input_names()[i], .spec = plan_->input_specs()[i]});
  }
  const std::vector<TensorInfo> outputs = outputs_of(*loaded, plan_->output_specs());
  for (const auto& [name, signature] : runs_) {
    ServedSignature served = {.name = name, .inputs = inputs, .outputs = outputs};
    if (name != kServingDefault) {
      served.takes_examples = true;
      served.inputs.clear();
      for (const auto& [input, spec] : signature.inputs()) {
        served.inputs.push_back({.name = input, .spec = spec});
      }
    }
    served.input_parts = parts_of(served.inputs);
    served.output_parts = parts_of(served.outputs);
    served_.emplace(name, std::move(served));
  }
  plan_fills_floats_ = std::ranges::all_of(
      outputs, [](const TensorInfo& output) { return fills_floats(output.spec); });
  if (plan_fills_floats_) {
    for (const TensorInfo& output : outputs) {
      floats_per_row_ += output.spec.shape.without(0).size();
    }
  }
  for (const TensorInfo& output : outputs) bytes_per_row_ += bytes_per_row(output.spec);
  joins_requests_ = plan_fills_floats_ && plan_->called_layers().empty();
}

const ServedSignature& ModelVersion::signature(std::string_view name) const {
  const auto at = served_.find(name.empty() ? kServingDefault : name);
  if (at == served_.end()) {
    throw ServeError(Code::kInvalidArgument, "Serving signature name: \"", name,
                     "\" not found in signature def");
  }
  return at->second;
}

const ServedSignature& ModelVersion::default_examples_signature() const {
  const ServedSignature* found = nullptr;
  for (const auto& [_, signature] : served_) {
    if (!signature.takes_examples) continue;
    if (found != nullptr) return signature_default();
    found = &signature;
  }
  return found == nullptr ? signature_default() : *found;
}

const ExampleFeatures* ModelVersion::features(std::string_view signature) const {
  const auto at = specs_.find(std::string(signature));
  return at == specs_.end() ? nullptr : &at->second;
}

void ModelVersion::run_plan(std::span<const InputValues> inputs, RunOutputs& out) const {
  thread_local std::vector<TensorView> views;
  thread_local std::vector<std::span<float>> buffers;
  views.clear();
  for (const InputValues& input : inputs) views.push_back(input.view());
  const int64_t rows = views.empty() ? 0 : views[0].rows;
  out.floats.resize(static_cast<size_t>(rows * floats_per_row_));
  buffers.clear();
  out.outputs.clear();
  float* at = out.floats.data();
  for (const TensorInfo& output : served_.at(kServingDefault).outputs) {
    const Shape shape = output.spec.shape.with(0, rows);
    const int64_t size = shape.size();
    buffers.emplace_back(at, static_cast<size_t>(size));
    out.outputs.push_back(
        {.info = &output, .view = {.shape = shape, .data = at, .values = size, .rows = rows}});
    at += size;
  }
  plan_->run(views, buffers);
}

void ModelVersion::check_output_size(int64_t rows) const {
  if (rows * bytes_per_row_ > kMostOutputBytes) fail_output_size(rows);
}

void ModelVersion::run(const ServedSignature& signature, std::span<const InputValues> inputs,
                       RunOutputs& out) const {
  const bool same_rows = std::ranges::all_of(
      inputs, [&](const InputValues& input) { return input.rows() == inputs[0].rows(); });
  if (same_rows && !inputs.empty()) check_output_size(inputs[0].rows());
  if (!signature.takes_examples && plan_fills_floats_ && same_rows) return run_plan(inputs, out);
  Tensors::Dict values;
  int64_t copied = 0;
  for (const InputValues& input : inputs) copied += bytes_of(input.view());
  MemoryBudget::take(static_cast<size_t>(copied));
  MemoryBudget::give(static_cast<size_t>(copied));
  for (const InputValues& input : inputs) values.emplace(input.info().name, copy_of(input.view()));
  const Tensors results = runs_.at(signature.name)(Tensors(std::move(values)));
  out.outputs.clear();
  out.tensors.clear();
  for (const TensorInfo& output : signature.outputs) {
    out.tensors.push_back(results.at(output.name).leaf());
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    out.outputs.push_back({.info = &signature.outputs[i], .view = view_of(out.tensors[i])});
    bytes += bytes_of(out.outputs.back().view);
  }
  if (bytes > kMostOutputBytes) fail_output_size(inputs.empty() ? 0 : inputs[0].rows());
}

}  // namespace keel::serving

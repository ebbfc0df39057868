#include <keel/savedmodel/serving/models/warm_up.h>

#include <filesystem>
#include <fstream>

#include <keel/savedmodel/serving/base/log.h>

namespace keel::serving {
namespace {

constexpr const char* kFile = "assets.extra/keel_warmup_requests.jsonl";
constexpr const char* kRecords = "assets.extra/tf_serving_warmup_requests";
constexpr int kMostLines = 1000;
constexpr int64_t kMostValues = 1 << 20;

// Fills in one row of zeros, or of empty strings.
void add_zeros(InputValues& values, int64_t count) {
  if (count > kMostValues) throw ValueFault("the row is too large");
  const std::string zeros(static_cast<size_t>(count) * 8, '\0');
  if (values.dtype() == DType::kString) {
    for (int64_t i = 0; i < count; ++i) values.add_string().clear();
  } else {
    values.numbers.append(zeros.data(), static_cast<size_t>(count) * size_of(values.dtype()));
  }
}

void make_row(const TensorInfo& info, InputValues& values) {
  values.reset(info);
  for (int64_t dim : info.spec.shape.dims()) values.dims.push_back(dim == kUnknown ? 1 : dim);
  if (info.spec.layout == Layout::kDense) {
    add_zeros(values, checked_size(values.dims));
  } else if (info.spec.layout == Layout::kRagged) {
    values.dims.erase(values.dims.begin());
    values.dims.at(0) = 1;
    values.splits = {0, 1};
    add_zeros(values, checked_size(values.dims));
  } else {
    values.sparse_shape.assign(values.dims.begin(), values.dims.end());
    values.indices.assign(values.dims.size(), 0);
    add_zeros(values, 1);
  }
  values.finish();
}

void run_synthetic(const ModelVersion& version, const ServedSignature& signature) {
  std::vector<InputValues> inputs(signature.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) make_row(signature.inputs[i], inputs[i]);
  RunOutputs outputs;
  version.run(signature, inputs, outputs);
}

}  // namespace

void warm_up(const ModelVersion& version, const std::string& folder,
             const std::function<void(const ModelVersion&, const std::string&)>& run,
             const std::function<void(const ModelVersion&, const std::string&)>& replay) {
  for (const auto& [name, signature] : version.signatures()) {
    try {
      run_synthetic(version, signature);
    } catch (const std::exception& error) {
      log_debug("model ", version.model(), " version ", version.number(), ", signature ", name,
                ": a synthetic row was refused: ", error.what());
    }
  }
  std::ifstream file((std::filesystem::path(folder) / kFile).string());
  std::string line;
  for (int number = 1; run && number <= kMostLines && std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      run(version, line);
    } catch (const std::exception& error) {
      throw ValueError(kFile, ", line ", number, ": ", error.what());
    }
  }
  const std::filesystem::path records = std::filesystem::path(folder) / kRecords;
  std::error_code ignored;
  if (replay && std::filesystem::exists(records, ignored)) replay(version, records.string());
}

}  // namespace keel::serving

#include <keel/savedmodel/serving/protocol/model_pages.h>

#include <absl/strings/str_cat.h>

#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/version.h>

namespace keel::serving {
namespace {

std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string tfs_versions(const std::vector<VersionStatus>& versions) {
  std::string out = "[";
  for (const VersionStatus& version : versions) {
    if (out.size() > 1) out += ", ";
    out += str("{\"version\": \"", version.number, "\", \"state\": \"", name_of(version.state),
               "\", \"status\": {\"error_code\": \"", name_of(version.code),
               "\", \"error_message\": ", json_quoted(version.message), "}}");
  }
  return out + "]";
}

std::string tfs_shape(std::span<const int64_t> dims) {
  std::string out = "{\"dim\": [";
  for (size_t i = 0; i < dims.size(); ++i) {
    absl::StrAppend(&out, i > 0 ? ", " : "", "{\"size\": \"", dims[i], "\", \"name\": \"\"}");
  }
  return out + "], \"unknown_rank\": false}";
}

std::string tfs_plain_info(const std::string& name, DType dtype, std::span<const int64_t> dims) {
  return absl::StrCat("{\"dtype\": \"", tensorflow_name(dtype),
                      "\", \"tensor_shape\": ", tfs_shape(dims), ", \"name\": ", json_quoted(name),
                      "}");
}

std::string tfs_info(const TensorInfo& info) {
  const TensorSpec& spec = info.spec;
  const std::span<const int64_t> dims = spec.shape.dims();
  const std::string head = absl::StrCat("{\"dtype\": \"", tensorflow_name(spec.dtype),
                                        "\", \"tensor_shape\": ", tfs_shape(dims), ", ");
  switch (spec.layout) {
    case Layout::kDense:
      break;
    case Layout::kSparse:
      return absl::StrCat(
          head, "\"coo_sparse\": {\"values_tensor_name\": ", json_quoted(info.name + ".values"),
          ", \"indices_tensor_name\": ", json_quoted(info.name + ".indices"),
          ", \"dense_shape_tensor_name\": ", json_quoted(info.name + ".dense_shape"), "}}");
    case Layout::kRagged: {
      std::vector<int64_t> values(dims.begin() + 1, dims.end());
      values[0] = -1;
      const int64_t splits = -1;
      return absl::StrCat(head, "\"composite_tensor\": {\"type_spec\": {\"type_spec_class\": ",
                          "\"RAGGED_TENSOR_SPEC\"}, \"components\": [",
                          tfs_plain_info(info.name + ".values", spec.dtype, values), ", ",
                          tfs_plain_info(info.name + ".row_splits", DType::kInt64, {&splits, 1}),
                          "]}}");
    }
  }
  return absl::StrCat(head, "\"name\": ", json_quoted(info.name), "}");
}

std::string tfs_infos(const std::vector<TensorInfo>& tensors) {
  std::string out = "{";
  for (const TensorInfo& tensor : tensors) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", json_quoted(tensor.name), ": ",
                    tfs_info(tensor));
  }
  return out + "}";
}

std::string kserve_tensors(const std::vector<PartInfo>& parts) {
  std::string out = "[";
  for (const PartInfo& part : parts) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", "{\"name\": ", json_quoted(part.name),
                    ", \"datatype\": \"", v2_name(part.dtype), "\", \"shape\": [");
    for (size_t i = 0; i < part.shape.size(); ++i)
      absl::StrAppend(&out, i > 0 ? ", " : "", part.shape[i]);
    out += "]}";
  }
  return out + "]";
}

std::string duration(int64_t count, int64_t ns) {
  return absl::StrCat("{\"count\": ", count, ", \"ns\": ", ns, "}");
}

}  // namespace

std::string tfs_status_json(const std::vector<VersionStatus>& versions) {
  return absl::StrCat("{\"model_version_status\": ", tfs_versions(versions), "}");
}

std::string tfs_models_json(const std::vector<ModelStatus>& models) {
  std::string out = "{\"models\": [";
  bool first = true;
  for (const ModelStatus& model : models) {
    absl::StrAppend(&out, first ? "" : ", ", "{\"name\": ", json_quoted(model.name),
                    ", \"model_version_status\": ", tfs_versions(model.versions), "}");
    first = false;
  }
  return out + "]}";
}

std::string tfs_metadata_json(const ModelVersion& version) {
  std::string signatures;
  for (const auto& [name, signature] : version.signatures()) {
    absl::StrAppend(&signatures, signatures.empty() ? "" : ", ", json_quoted(name),
                    ": {\"inputs\": ", tfs_infos(signature.inputs),
                    ", \"outputs\": ", tfs_infos(signature.outputs),
                    ", \"method_name\": \"tensorflow/serving/predict\", \"defaults\": {}}");
  }
  return absl::StrCat("{\"model_spec\": {\"name\": ", json_quoted(version.model()),
                      ", \"signature_name\": \"\", \"version\": \"", version.number(),
                      "\"}, \"metadata\": {\"signature_def\": {\"signature_def\": {", signatures,
                      "}}}}");
}

std::string kserve_metadata_json(const ModelVersion& version,
                                 const std::vector<int64_t>& versions) {
  const ServedSignature& signature = version.signature({});
  std::string numbers;
  for (int64_t number : versions) numbers += str(numbers.empty() ? "" : ", ", '"', number, '"');
  return absl::StrCat(
      "{\"name\": ", json_quoted(version.model()), ", \"versions\": [", numbers,
      "], \"platform\": \"keel_keras\", \"inputs\": ", kserve_tensors(signature.input_parts),
      ", \"outputs\": ", kserve_tensors(signature.output_parts), "}");
}

std::string kserve_server_json() {
  return absl::StrCat("{\"name\": \"keel\", \"version\": \"", KEEL_VERSION,
                      "\", \"extensions\": [\"binary_tensor_data\", \"model_repository\", "
                      "\"statistics\"]}");
}

const char* kserve_state(VersionState state) {
  switch (state) {
    case VersionState::kAvailable:
      return "READY";
    case VersionState::kStart:
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kUnloading:
      return "UNLOADING";
    case VersionState::kEnd:
      break;
  }
  return "UNAVAILABLE";
}

std::string kserve_reason(const VersionStatus& version) {
  if (!version.message.empty() || version.state != VersionState::kEnd) return version.message;
  return "unloaded";
}

std::string kserve_index_json(const std::vector<ModelStatus>& models, bool only_ready) {
  std::string out = "[";
  for (const ModelStatus& model : models) {
    for (const VersionStatus& version : model.versions) {
      const std::string state = kserve_state(version.state);
      if (only_ready && state != "READY") continue;
      absl::StrAppend(&out, out.size() > 1 ? ", " : "", "{\"name\": ", json_quoted(model.name),
                      ", \"version\": \"", version.number, "\", \"state\": \"", state,
                      "\", \"reason\": ", json_quoted(kserve_reason(version)), "}");
    }
  }
  return out + "]";
}

std::string kserve_stats_json(const std::vector<VersionHandle>& versions) {
  std::string out = "{\"model_stats\": [";
  bool first = true;
  for (const VersionHandle& version : versions) {
    const VersionMetrics& m = version->metrics();
    const int64_t success = m.success.value(), executions = m.executions.value();
    absl::StrAppend(
        &out, first ? "" : ", ", "{\"name\": ", json_quoted(version->model()), ", \"version\": \"",
        version->number(), "\", \"inference_count\": ", m.rows.value(),
        ", \"execution_count\": ", executions,
        ", \"inference_stats\": {\"success\": ", duration(success, m.success_ns.value()),
        ", \"fail\": ", duration(m.failure.value(), m.failure_ns.value()),
        ", \"queue\": ", duration(success, m.queue_ns.value()),
        ", \"compute_input\": ", duration(success, m.input_ns.value()),
        ", \"compute_infer\": ", duration(success, m.infer_ns.value()),
        ", \"compute_output\": ", duration(success, m.output_ns.value()), "}}");
    first = false;
  }
  return out + "]}";
}

}  // namespace keel::serving

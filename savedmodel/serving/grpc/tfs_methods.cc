#include <keel/savedmodel/serving/grpc/tfs_methods.h>

#include <absl/strings/str_join.h>
#include <algorithm>
#include <vector>

#include <keel/savedmodel/serving/grpc/rpc_method.h>
#include <keel/savedmodel/serving/grpc/tensor_messages.h>
#include <keel/savedmodel/serving/grpc/unary.h>
#include <keel/savedmodel/serving/protocol/example_values.h>
#include <keel/savedmodel/serving/protocol/model_lookup.h>
#include <keel/savedmodel/serving/protocol/output_parts.h>

namespace keel::serving {
namespace {

constexpr const char* kMetadataField = "signature_def";
constexpr const char* kMetadataType = "type.googleapis.com/tensorflow.serving.SignatureDefMap";

template <class... Args>
[[noreturn]] void fail_call(const Args&... args) {
  throw ServeError(Code::kInvalidArgument, args...);
}

// ---- model specs

// Reads the spec of a request, which has the other requests' members too.
template <class Request>
ModelTarget read_target(RpcRequest& call, const Request& request) {
  if (!request.has_model_spec()) fail_call("Missing ModelSpec");
  const rpc::ModelSpec& spec = request.model_spec();
  if (spec.name().empty()) fail_call("ModelSpec has no model name specified.");
  call.model = spec.name();
  ModelTarget out = {.name = spec.name()};
  if (spec.has_version()) out.version = spec.version().value();
  if (spec.version_choice_case() == rpc::ModelSpec::kVersionLabel) out.label = spec.version_label();
  return out;
}

template <class Request>
const ModelVersion& find_model(RpcRequest& call, const Request& request) {
  const ModelTarget target = read_target(call, request);
  call.trace.version = find_version(call.backend.repository, target, Code::kInvalidArgument);
  return *call.trace.version;
}

void write_spec(const ModelVersion& version, const std::string& signature, rpc::ModelSpec& to) {
  to.set_name(version.model());
  to.mutable_version()->set_value(version.number());
  to.set_signature_name(signature);
}

// Unlike REST, TensorFlow Serving reports an unknown signature of gRPC as a failed precondition.
const ServedSignature& find_signature(const ModelVersion& version, const std::string& name) {
  try {
    return version.signature(name);
  } catch (const ServeError& error) {
    throw ServeError(Code::kFailedPrecondition, error.what());
  }
}

// ---- predict

std::string listed(std::vector<std::string> names) {
  std::ranges::sort(names);
  return "{" + absl::StrJoin(names, ", ") + "}";
}

void read_inputs(const rpc::PredictRequest& request, const ServedSignature& signature,
                 std::span<InputValues> inputs, const PredictOptions& options) {
  TensorCollector collector(signature, inputs, options.limits);
  int64_t spare_bytes = options.spare_bytes;
  std::vector<RequestTensor> tensors;
  std::vector<std::string> extra;
  tensors.reserve(request.inputs().size());
  for (const auto& [name, _] : request.inputs()) {
    RequestTensor& tensor = tensors.emplace_back(RequestTensor{.name = name});
    if (!collector.try_find(tensor)) extra.push_back(name);
  }
  if (const std::vector<std::string> missing = collector.missing();
      !extra.empty() || !missing.empty()) {
    fail_call("the inputs do not match the signature. Sent extra: ", listed(extra),
              ". Missing but required: ", listed(missing), ".");
  }
  auto tensor = tensors.begin();
  for (const auto& [_, message] : request.inputs()) {
    read_tensor(message, *tensor++, collector, spare_bytes);
  }
  collector.finish();
}

// Returns the positions of the output parts that a request asks for. A ragged or sparse output may
// be named as a whole.
std::vector<size_t> read_filter(const rpc::PredictRequest& request,
                                const ServedSignature& signature) {
  const std::vector<PartInfo>& parts = signature.output_parts;
  std::vector<size_t> out;
  if (request.output_filter().empty()) {
    for (size_t i = 0; i < parts.size(); ++i) out.push_back(i);
  }
  for (const std::string& name : request.output_filter()) {
    const size_t before = out.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].name != name && signature.outputs[parts[i].tensor].name != name) continue;
      if (std::ranges::find(out, i) != out.end()) {
        fail_call("output_filter: output '", name, "' stands twice");
      }
      out.push_back(i);
    }
    if (out.size() == before) fail_call("output_filter: unknown output '", name, "'");
  }
  return out;
}

void predict(RpcRequest& call, const rpc::PredictRequest& request, rpc::PredictResponse& response) {
  find_model(call, request);
  predict_message(call.trace, request,
                  {.limits = call.options.limits,
                   .spare_bytes = call.options.message_bytes,
                   .tensor_content = call.options.tensor_content},
                  response);
}

// ---- classify and regress

ExampleValues read_example(const rpc::Example& example) {
  ExampleValues out;
  for (const auto& [name, feature] : example.features().feature()) {
    FeatureValues& to = out[name];
    switch (feature.kind_case()) {
      case rpc::Feature::kBytesList:
        to = FeatureStrings(feature.bytes_list().value().begin(),
                            feature.bytes_list().value().end());
        break;
      case rpc::Feature::kFloatList:
        to =
            FeatureFloats(feature.float_list().value().begin(), feature.float_list().value().end());
        break;
      case rpc::Feature::kInt64List:
        to = FeatureIntegers(feature.int64_list().value().begin(),
                             feature.int64_list().value().end());
        break;
      case rpc::Feature::KIND_NOT_SET:
        break;
    }
  }
  return out;
}

std::vector<ExampleValues> read_examples(const rpc::Input& input, const RequestLimits& limits) {
  const bool with_context = input.has_example_list_with_context();
  const auto& messages =
      with_context ? input.example_list_with_context().examples() : input.example_list().examples();
  if (messages.empty()) fail_call("Input is empty");
  check_rows(messages.size(), limits);
  std::vector<ExampleValues> out;
  out.reserve(static_cast<size_t>(messages.size()));
  for (const rpc::Example& message : messages) out.push_back(read_example(message));
  if (with_context) add_context(read_example(input.example_list_with_context().context()), out);
  return out;
}

template <class Request, class Response>
ExampleScores score(RpcRequest& call, const Request& request, Response& response) {
  const ModelVersion& version = find_model(call, request);
  const std::string& name = request.model_spec().signature_name();
  const ServedSignature& signature =
      name.empty() ? version.default_examples_signature() : find_signature(version, name);
  const ExampleScores scores =
      run_examples(call.trace, signature, read_examples(request.input(), call.options.limits));
  write_spec(version, signature.name, *response.mutable_model_spec());
  return scores;
}

void classify(RpcRequest& call, const rpc::ClassificationRequest& request,
              rpc::ClassificationResponse& response) {
  const ExampleScores scores = score(call, request, response);
  for (int64_t row = 0; row < scores.rows; ++row) {
    rpc::Classifications& to = *response.mutable_result()->add_classifications();
    for (int64_t column = 0; column < scores.columns; ++column) {
      to.add_classes()->set_score(scores.values[row * scores.columns + column]);
    }
  }
}

void regress(RpcRequest& call, const rpc::RegressionRequest& request,
             rpc::RegressionResponse& response) {
  const ExampleScores scores = score(call, request, response);
  for (int64_t row = 0; row < scores.rows; ++row) {
    response.mutable_result()->add_regressions()->set_value(scores.values[row]);
  }
}

// ---- metadata and status

void get_metadata(RpcRequest& call, const rpc::GetModelMetadataRequest& request,
                  rpc::GetModelMetadataResponse& response) {
  const ModelVersion& version = find_model(call, request);
  if (request.metadata_field().empty()) {
    fail_call("GetModelMetadataRequest must have at least one metadata_field; use ",
              kMetadataField);
  }
  for (const std::string& field : request.metadata_field()) {
    if (field != kMetadataField) fail_call("Metadata field ", field, " is not supported");
  }
  rpc::SignatureDefMap all;
  for (const auto& [name, signature] : version.signatures()) {
    rpc::SignatureDef& to = (*all.mutable_signature_def())[name];
    to.set_method_name("tensorflow/serving/predict");
    for (const TensorInfo& input : signature.inputs) {
      write_tensor_info(input, (*to.mutable_inputs())[input.name]);
    }
    for (const TensorInfo& output : signature.outputs) {
      write_tensor_info(output, (*to.mutable_outputs())[output.name]);
    }
  }
  rpc::Any& packed = (*response.mutable_metadata())[kMetadataField];
  packed.set_type_url(kMetadataType);
  packed.set_value(all.SerializeAsString());
  write_spec(version, "", *response.mutable_model_spec());
}

void get_status(RpcRequest& call, const rpc::GetModelStatusRequest& request,
                rpc::GetModelStatusResponse& response) {
  const ModelTarget target = read_target(call, request);
  for (const VersionStatus& status : find_statuses(call.backend.repository, target)) {
    rpc::ModelVersionStatus& to = *response.add_model_version_status();
    to.set_version(status.number);
    to.set_state(static_cast<int>(status.state));
    to.mutable_status()->set_error_code(static_cast<int>(status.code));
    to.mutable_status()->set_error_message(status.message);
  }
}

}  // namespace

void predict_message(RequestTrace& trace, const rpc::PredictRequest& request,
                     const PredictOptions& options, rpc::PredictResponse& response) {
  const ModelVersion& version = *trace.version;
  RequestMemory& memory = request_memory();
  const ServedSignature& signature = find_signature(version, request.model_spec().signature_name());
  const std::vector<size_t> wanted = read_filter(request, signature);
  const std::span<InputValues> inputs = reset_inputs(memory, signature);
  read_inputs(request, signature, inputs, options);
  run_signature(trace, signature, inputs, memory.outputs);
  for (size_t i : wanted) {
    const PartInfo& part = signature.output_parts[i];
    const TensorView view = view_of_part(memory.outputs.outputs[part.tensor].view, part);
    write_tensor(view, options.tensor_content, (*response.mutable_outputs())[part.name]);
  }
  write_spec(version, signature.name, *response.mutable_model_spec());
}

std::vector<RpcService> tfs_services() {
  using namespace rpc;
  return {
      {.name = "tensorflow.serving.PredictionService",
       .methods =
           {{.path = "/tensorflow.serving.PredictionService/Predict",
             .api = Api::kRpcPredict,
             .answer = answer_unary<PredictRequest, PredictResponse, predict>},
            {.path = "/tensorflow.serving.PredictionService/Classify",
             .api = Api::kRpcClassify,
             .answer = answer_unary<ClassificationRequest, ClassificationResponse, classify>},
            {.path = "/tensorflow.serving.PredictionService/Regress",
             .api = Api::kRpcRegress,
             .answer = answer_unary<RegressionRequest, RegressionResponse, regress>},
            {.path = "/tensorflow.serving.PredictionService/GetModelMetadata",
             .answer =
                 answer_unary<GetModelMetadataRequest, GetModelMetadataResponse, get_metadata>}}},
      {.name = "tensorflow.serving.ModelService",
       .methods = {
           {.path = "/tensorflow.serving.ModelService/GetModelStatus",
            .answer = answer_unary<GetModelStatusRequest, GetModelStatusResponse, get_status>}}}};
}

}  // namespace keel::serving

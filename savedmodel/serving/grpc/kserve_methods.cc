#include <algorithm>
#include <optional>
#include <vector>

#include <keel/framework/base/dtype.h>
#include <keel/savedmodel/serving/grpc/rpc_method.h>
#include <keel/savedmodel/serving/grpc/unary.h>
#include <keel/savedmodel/serving/protocol/model_lookup.h>
#include <keel/savedmodel/serving/protocol/model_pages.h>
#include <keel/savedmodel/serving/protocol/output_parts.h>
#include <keel/savedmodel/serving/protocol/tensor_collector.h>
#include <keel/version.h>

#include "savedmodel/serving/grpc/kserve_messages.pb.h"

namespace keel::serving {
namespace {

using google::protobuf::RepeatedField;
using InputTensor = rpc::ModelInferRequest::InferInputTensor;
using OutputTensor = rpc::ModelInferResponse::InferOutputTensor;
using InferParameters = google::protobuf::Map<std::string, rpc::InferParameter>;

template <class... Args>
[[noreturn]] void fail_infer_call(const Args&... args) {
  throw ServeError(Code::kInvalidArgument, args...);
}

// A version of digits is a number, other text is a label.
ModelTarget named_version(RpcRequest& call, const std::string& name, const std::string& version) {
  call.model = name;
  ModelTarget out = {.name = name};
  if (version.empty()) return out;
  out.version = version_number(version);
  const bool digits = version.find_first_not_of("0123456789") == std::string::npos;
  if (digits && !out.version) {
    throw ServeError(Code::kNotFound, "Servable not found for request: Specific(", name, ", ",
                     version, ")");
  }
  if (!digits) out.label = version;
  return out;
}

// ---- parameters

bool is_none(const rpc::InferParameter& sequence) {
  switch (sequence.parameter_choice_case()) {
    case rpc::InferParameter::kInt64Param:
      return sequence.int64_param() == 0;
    case rpc::InferParameter::kUint64Param:
      return sequence.uint64_param() == 0;
    case rpc::InferParameter::kStringParam:
      return sequence.string_param().empty();
    default:
      return false;
  }
}

// Refuses parameters that would change results.
void check_parameters(const InferParameters& parameters) {
  for (const char* name : {"classification", "shared_memory_region"}) {
    if (parameters.contains(name)) fail_infer_call("parameter '", name, "' is not supported");
  }
  const auto sequence = parameters.find("sequence_id");
  if (sequence != parameters.end() && !is_none(sequence->second)) {
    fail_infer_call("parameter 'sequence_id' is not supported: models have no state");
  }
}

// Returns the parameter timeout in nanoseconds, or 0 if there is none.
int64_t timeout_of(const InferParameters& parameters) {
  constexpr int64_t kMostMicros = INT64_MAX / 1000;
  const auto at = parameters.find("timeout");
  if (at == parameters.end()) return 0;
  const rpc::InferParameter& value = at->second;
  if (value.has_uint64_param()) {
    return static_cast<int64_t>(std::min<uint64_t>(value.uint64_param(), kMostMicros)) * 1000;
  }
  if (!value.has_int64_param() || value.int64_param() < 0) {
    fail_infer_call("parameter 'timeout' must be an integer that is not negative");
  }
  return std::min(value.int64_param(), kMostMicros) * 1000;
}

// ---- inputs

template <class T, class Wide>
void read_list(const RepeatedField<Wide>& list, const RequestTensor& tensor, TensorCollector& to) {
  if (IntegerList* const integers = to.begin_integers(tensor)) {
    integers->insert(integers->end(), list.begin(), list.end());
    return;
  }
  for (Wide value : list) {
    if constexpr (!std::is_same_v<T, Wide>) {
      if (!std::in_range<T>(value)) {
        fail_infer_call("input '", tensor.name, "' has the value ", value, ", which ",
                        v2_name(tensor.part->dtype), " cannot hold");
      }
    }
    to.values_of(tensor).numbers.push(static_cast<T>(value));
  }
}

void read_contents(const rpc::InferTensorContents& contents, const RequestTensor& tensor,
                   TensorCollector& to) {
  switch (tensor.part->dtype) {
    case DType::kFloat32:
      return read_list<float>(contents.fp32_contents(), tensor, to);
    case DType::kFloat64:
      return read_list<double>(contents.fp64_contents(), tensor, to);
    case DType::kInt32:
      return read_list<int32_t>(contents.int_contents(), tensor, to);
    case DType::kInt64:
      return read_list<int64_t>(contents.int64_contents(), tensor, to);
    case DType::kBool:
      return read_list<bool>(contents.bool_contents(), tensor, to);
    case DType::kUint8:
      return read_list<uint8_t>(contents.uint_contents(), tensor, to);
    case DType::kInt8:
      return read_list<int8_t>(contents.int_contents(), tensor, to);
    case DType::kString:
      for (const std::string& text : contents.bytes_contents()) {
        to.values_of(tensor).add_string() = text;
      }
      return;
  }
}

void read_infer_inputs(const rpc::ModelInferRequest& request, TensorCollector& to) {
  const bool raw = !request.raw_input_contents().empty();
  if (raw && request.raw_input_contents_size() != request.inputs_size()) {
    fail_infer_call("raw_input_contents has ", request.raw_input_contents_size(), " entries for ",
                    request.inputs_size(), " inputs");
  }
  for (int i = 0; i < request.inputs_size(); ++i) {
    const InputTensor& input = request.inputs(i);
    RequestTensor tensor = {.name = input.name(),
                            .shape = {input.shape().begin(), input.shape().end()}};
    check_parameters(input.parameters());
    to.find(tensor);
    to.check_datatype(tensor, input.datatype());
    to.check_shape(tensor);
    if (raw && input.has_contents()) {
      fail_infer_call("input '", tensor.name, "' has contents beside raw_input_contents");
    }
    if (raw) {
      to.add_binary(tensor, request.raw_input_contents(i));
    } else {
      read_contents(input.contents(), tensor, to);
    }
    to.close(tensor);
  }
  to.finish();
}

// Returns the positions of the output parts that a request asks for, in its order.
std::vector<size_t> read_infer_outputs(const rpc::ModelInferRequest& request,
                                       const std::vector<PartInfo>& parts) {
  std::vector<size_t> out;
  for (const auto& output : request.outputs()) {
    check_parameters(output.parameters());
    const auto at = std::ranges::find(parts, output.name(), &PartInfo::name);
    if (at == parts.end()) fail_infer_call("unknown output '", output.name(), "'");
    const auto position = static_cast<size_t>(at - parts.begin());
    if (std::ranges::find(out, position) != out.end()) {
      fail_infer_call("output '", output.name(), "' is requested twice");
    }
    out.push_back(position);
  }
  if (!out.empty()) return out;
  for (size_t i = 0; i < parts.size(); ++i) out.push_back(i);
  return out;
}

// ---- outputs

template <class T, class Wide>
void write_list(const TensorView& view, RepeatedField<Wide>& to) {
  const auto* const values = static_cast<const T*>(view.data);
  to.Add(values, values + view.values);
}

void write_contents(const TensorView& view, rpc::InferTensorContents& to) {
  switch (view.dtype) {
    case DType::kFloat32:
      return write_list<float>(view, *to.mutable_fp32_contents());
    case DType::kFloat64:
      return write_list<double>(view, *to.mutable_fp64_contents());
    case DType::kInt32:
      return write_list<int32_t>(view, *to.mutable_int_contents());
    case DType::kInt64:
      return write_list<int64_t>(view, *to.mutable_int64_contents());
    case DType::kBool:
      return write_list<bool>(view, *to.mutable_bool_contents());
    case DType::kUint8:
      return write_list<uint8_t>(view, *to.mutable_uint_contents());
    case DType::kInt8:
      return write_list<int8_t>(view, *to.mutable_int_contents());
    case DType::kString: {
      const auto* const strings = static_cast<const std::string*>(view.data);
      for (int64_t i = 0; i < view.values; ++i) to.add_bytes_contents(strings[i]);
      return;
    }
  }
}

void infer(RpcRequest& call, const rpc::ModelInferRequest& request,
           rpc::ModelInferResponse& response) {
  const ModelTarget target = named_version(call, request.model_name(), request.model_version());
  RequestTrace& trace = call.trace;
  trace.version = find_version(call.backend.repository, target, Code::kNotFound);
  check_parameters(request.parameters());
  trace.set_timeout(timeout_of(request.parameters()));
  RequestMemory& memory = request_memory();
  const ServedSignature& signature = trace.version->signature_default();
  const std::span<InputValues> inputs = reset_inputs(memory, signature);
  const std::vector<size_t> wanted = read_infer_outputs(request, signature.output_parts);
  TensorCollector collector(signature, inputs, call.options.limits);
  read_infer_inputs(request, collector);
  trace.check_timeout();
  run_signature(trace, signature, inputs, memory.outputs);
  trace.check_timeout();
  response.set_model_name(trace.version->model());
  response.set_model_version(trace.version->number_text());
  response.set_id(request.id());
  const bool raw = !request.raw_input_contents().empty();
  for (size_t i : wanted) {
    const PartInfo& part = signature.output_parts[i];
    const TensorView view = view_of_part(memory.outputs.outputs[part.tensor].view, part);
    OutputTensor& to = *response.add_outputs();
    to.set_name(part.name);
    to.set_datatype(v2_name(view.dtype));
    to.mutable_shape()->Add(view.shape.dims().begin(), view.shape.dims().end());
    if (raw) {
      append_binary(*response.add_raw_output_contents(), view);
    } else if (view.values > 0) {
      write_contents(view, *to.mutable_contents());
    }
  }
}

// ---- server and models

void server_live(RpcRequest&, const rpc::Empty&, rpc::ServerLiveResponse& response) {
  response.set_live(true);
}

void server_ready(RpcRequest& call, const rpc::Empty&, rpc::ReadyResponse& response) {
  response.set_ready(call.backend.ready());
}

void model_ready(RpcRequest& call, const rpc::ModelRequest& request, rpc::ReadyResponse& response) {
  const ModelTarget target = named_version(call, request.name(), request.version());
  response.set_ready(is_available(call.backend.repository, target));
}

void server_metadata(RpcRequest&, const rpc::Empty&, rpc::ServerMetadataResponse& response) {
  response.set_name("keel");
  response.set_version(KEEL_VERSION);
  for (const char* extension : {"model_repository", "statistics"}) {
    response.add_extensions(extension);
  }
}

void write_parts(
    const std::vector<PartInfo>& parts,
    google::protobuf::RepeatedPtrField<rpc::ModelMetadataResponse::TensorMetadata>& to) {
  for (const PartInfo& part : parts) {
    rpc::ModelMetadataResponse::TensorMetadata& one = *to.Add();
    one.set_name(part.name);
    one.set_datatype(v2_name(part.dtype));
    one.mutable_shape()->Add(part.shape.begin(), part.shape.end());
  }
}

void model_metadata(RpcRequest& call, const rpc::ModelRequest& request,
                    rpc::ModelMetadataResponse& response) {
  const ModelTarget target = named_version(call, request.name(), request.version());
  const VersionHandle version = find_version(call.backend.repository, target, Code::kNotFound);
  const std::shared_ptr<const Catalog> catalog = call.backend.repository.catalog();
  response.set_name(version->model());
  response.set_platform("keel_keras");
  if (const ServedModel* const model = catalog->find(target.name)) {
    for (const auto& [number, _] : model->versions) response.add_versions(std::to_string(number));
  }
  write_parts(version->signature_default().input_parts, *response.mutable_inputs());
  write_parts(version->signature_default().output_parts, *response.mutable_outputs());
}

void repository_index(RpcRequest& call, const rpc::RepositoryIndexRequest& request,
                      rpc::RepositoryIndexResponse& response) {
  for (const ModelStatus& model : call.backend.repository.statuses()) {
    for (const VersionStatus& version : model.versions) {
      if (request.ready() && version.state != VersionState::kAvailable) continue;
      rpc::RepositoryIndexResponse::ModelIndex& to = *response.add_models();
      to.set_name(model.name);
      to.set_version(std::to_string(version.number));
      to.set_state(kserve_state(version.state));
      to.set_reason(kserve_reason(version));
    }
  }
}

void write_statistics(const ModelVersion& version, rpc::ModelStatistics& to) {
  const VersionMetrics& m = version.metrics();
  const auto set = [](rpc::StatisticDuration& duration, const Counter& count, const Counter& ns) {
    duration.set_count(static_cast<uint64_t>(count.value()));
    duration.set_ns(static_cast<uint64_t>(ns.value()));
  };
  to.set_name(version.model());
  to.set_version(version.number_text());
  to.set_inference_count(static_cast<uint64_t>(m.rows.value()));
  to.set_execution_count(static_cast<uint64_t>(m.executions.value()));
  rpc::InferStatistics& figures = *to.mutable_inference_stats();
  set(*figures.mutable_success(), m.success, m.success_ns);
  set(*figures.mutable_fail(), m.failure, m.failure_ns);
  set(*figures.mutable_queue(), m.success, m.queue_ns);
  set(*figures.mutable_compute_input(), m.success, m.input_ns);
  set(*figures.mutable_compute_infer(), m.success, m.infer_ns);
  set(*figures.mutable_compute_output(), m.success, m.output_ns);
}

// Without a name, the statistics of all models.
void model_statistics(RpcRequest& call, const rpc::ModelRequest& request,
                      rpc::ModelStatisticsResponse& response) {
  const ModelTarget target = named_version(call, request.name(), request.version());
  const bool one = !request.version().empty();
  if (one || !request.name().empty()) {
    const VersionHandle found = find_version(call.backend.repository, target, Code::kNotFound);
    if (one) return write_statistics(*found, *response.add_model_stats());
  }
  const std::shared_ptr<const Catalog> catalog = call.backend.repository.catalog();
  for (const auto& [name, model] : catalog->models) {
    if (!request.name().empty() && request.name() != name) continue;
    for (const auto& [_, version] : model.versions) {
      write_statistics(*version, *response.add_model_stats());
    }
  }
}

}  // namespace

RpcService kserve_service() {
  using namespace rpc;
  return {.name = "inference.GRPCInferenceService",
          .methods = {
              {.path = "/inference.GRPCInferenceService/ModelInfer",
               .api = Api::kRpcInfer,
               .answer = answer_unary<ModelInferRequest, ModelInferResponse, infer>},
              {.path = "/inference.GRPCInferenceService/ServerLive",
               .answer = answer_unary<Empty, ServerLiveResponse, server_live>},
              {.path = "/inference.GRPCInferenceService/ServerReady",
               .answer = answer_unary<Empty, ReadyResponse, server_ready>},
              {.path = "/inference.GRPCInferenceService/ModelReady",
               .answer = answer_unary<ModelRequest, ReadyResponse, model_ready>},
              {.path = "/inference.GRPCInferenceService/ServerMetadata",
               .answer = answer_unary<Empty, ServerMetadataResponse, server_metadata>},
              {.path = "/inference.GRPCInferenceService/ModelMetadata",
               .answer = answer_unary<ModelRequest, ModelMetadataResponse, model_metadata>},
              {.path = "/inference.GRPCInferenceService/RepositoryIndex",
               .answer =
                   answer_unary<RepositoryIndexRequest, RepositoryIndexResponse, repository_index>},
              {.path = "/inference.GRPCInferenceService/ModelStatistics",
               .answer = answer_unary<ModelRequest, ModelStatisticsResponse, model_statistics>}}};
}

}  // namespace keel::serving

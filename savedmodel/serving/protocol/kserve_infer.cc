#include <keel/savedmodel/serving/protocol/kserve_infer.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <optional>

#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/savedmodel/serving/protocol/output_parts.h>
#include <keel/savedmodel/serving/protocol/tensor_collector.h>
#include <keel/savedmodel/serving/protocol/value_reader.h>
#include <keel/savedmodel/serving/protocol/value_writer.h>

namespace keel::serving {
namespace {

constexpr size_t kNone = std::string_view::npos;

template <class... Args>
[[noreturn]] void fail_infer(const Args&... args) {
  throw ServeError(Code::kInvalidArgument, args...);
}

// ---- requests

// The parameters of a request, an input or an output that mean something here.
struct Parameters {
  std::optional<bool> binary_data_output, binary_data;
  std::optional<int64_t> binary_data_size;
  std::optional<int64_t> timeout_micros;
};

bool read_bool_parameter(JsonReader& json, const std::string& name) {
  if (json.kind() == JsonKind::kBool) return json.read_bool();
  fail_infer("parameter '", name, "' must be a boolean, received ", name_of(json.kind()));
}

int64_t read_integer_parameter(JsonReader& json, const std::string& name) {
  try {
    const auto value = json.read_integer<int64_t>();
    if (value >= 0) return value;
  } catch (const ValueFault& fault) {
    fail_infer("parameter '", name, "' ", fault.what());
  }
  fail_infer("parameter '", name, "' must not be negative");
}

Parameters read_parameters(JsonReader& json) {
  Parameters out;
  std::string name, text;
  if (json.kind() != JsonKind::kObject) {
    fail_infer("'parameters' must be an object, received ", name_of(json.kind()));
  }
  json.enter_object();
  while (json.next_member(name)) {
    const JsonKind kind = json.kind();
    if (kind == JsonKind::kObject || kind == JsonKind::kArray) {
      fail_infer("parameter '", name, "' must be a string, number or boolean, received ",
                 name_of(kind));
    }
    if (name == "binary_data_output") {
      out.binary_data_output = read_bool_parameter(json, name);
    } else if (name == "binary_data") {
      out.binary_data = read_bool_parameter(json, name);
    } else if (name == "binary_data_size") {
      out.binary_data_size = read_integer_parameter(json, name);
    } else if (name == "timeout") {
      out.timeout_micros = read_integer_parameter(json, name);
    } else if (name == "classification" || name == "shared_memory_region") {
      fail_infer("parameter '", name, "' is not supported");
    } else if (name == "sequence_id") {
      bool none = false;
      if (kind == JsonKind::kString) {
        json.read_string(text);
        none = text.empty();
      } else if (kind == JsonKind::kNumber) {
        none = json.read_number_text() == "0";
      }
      if (!none) fail_infer("parameter 'sequence_id' is not supported: models have no state");
    } else {
      json.skip_value();
    }
  }
  return out;
}

void read_name(JsonReader& json, const char* what, std::string& to) {
  if (json.kind() != JsonKind::kString) {
    fail_infer("'", what, "' must be a string, received ", name_of(json.kind()));
  }
  json.read_string(to);
}

// One tensor of a request in JSON.
struct JsonTensor : RequestTensor {
  std::string datatype;
  bool has_name = false, has_datatype = false, has_shape = false, has_data = false;
  Parameters parameters;
  size_t data_offset = 0;  // of data that could not be read yet
};

// Reads inputs into the values of the model's inputs.
class InferReader {
 public:
  InferReader(const ServedSignature& signature, std::span<InputValues> inputs,
              std::string_view json, std::string_view binary, bool allows_binary,
              const RequestLimits& limits)
      : collector_(signature, inputs, limits),
        json_text_(json),
        binary_(binary),
        allows_binary_(allows_binary) {}

  void read_inputs(JsonReader& json);
  void finish();

 private:
  void read_input(JsonReader& json, int64_t position);
  void read_json_data(JsonReader& json, JsonTensor& tensor);
  void read_binary_data(JsonTensor& tensor);
  void check_tensor(JsonTensor& tensor);

  TensorCollector collector_;
  std::string_view json_text_, binary_;
  bool allows_binary_;
  std::string key_;
};

// Called when the name is known.
void InferReader::read_json_data(JsonReader& json, JsonTensor& tensor) {
  if (tensor.part == nullptr) collector_.find(tensor);
  try {
    if (IntegerList* const integers = collector_.begin_integers(tensor)) {
      read_integers(json, *integers, true);
    } else {
      read_flat(json, collector_.values_of(tensor));
    }
  } catch (const ValueFault& fault) {
    fail_infer("input '", tensor.name, "', data: ", fault.what());
  }
}

void InferReader::read_binary_data(JsonTensor& tensor) {
  const auto size = static_cast<uint64_t>(*tensor.parameters.binary_data_size);
  if (!allows_binary_) {
    fail_infer("input '", tensor.name, "' has binary_data_size, but the request has no header ",
               "Inference-Header-Content-Length");
  }
  if (size > binary_.size()) {
    fail_infer("input '", tensor.name, "' has ", size, " bytes of binary data, but only ",
               binary_.size(), " are left");
  }
  collector_.add_binary(tensor, binary_.substr(0, static_cast<size_t>(size)));
  binary_.remove_prefix(static_cast<size_t>(size));
}

void InferReader::check_tensor(JsonTensor& tensor) {
  if (!tensor.has_name) fail_infer("an input has no 'name'");
  if (tensor.part == nullptr) collector_.find(tensor);
  if (!tensor.has_datatype) fail_infer("input '", tensor.name, "' has no 'datatype'");
  if (!tensor.has_shape) fail_infer("input '", tensor.name, "' has no 'shape'");
  collector_.check_datatype(tensor, tensor.datatype);
  collector_.check_shape(tensor);
}

void InferReader::read_input(JsonReader& json, int64_t position) {
  if (json.kind() != JsonKind::kObject) {
    fail_infer("inputs[", position, "] must be an object, received ", name_of(json.kind()));
  }
  JsonTensor tensor;
  const auto once = [&](bool& seen) {
    if (seen) fail_infer("inputs[", position, "]: '", key_, "' stands twice");
    seen = true;
  };
  json.enter_object();
  while (json.next_member(key_)) {
    if (key_ == "name") {
      once(tensor.has_name);
      read_name(json, "name", tensor.name);
    } else if (key_ == "datatype") {
      once(tensor.has_datatype);
      read_name(json, "datatype", tensor.datatype);
    } else if (key_ == "shape") {
      once(tensor.has_shape);
      try {
        read_integers(json, tensor.shape);
      } catch (const ValueFault& fault) {
        fail_infer("input '", tensor.name, "', shape: ", fault.what());
      }
    } else if (key_ == "parameters") {
      tensor.parameters = read_parameters(json);
    } else if (key_ == "data") {
      once(tensor.has_data);
      if (tensor.has_name) {
        read_json_data(json, tensor);
      } else {
        tensor.data_offset = json.offset();
        json.skip_value();
      }
    } else {
      json.skip_value();
    }
  }
  check_tensor(tensor);
  const auto place = [&] { return absl::StrCat("input '", tensor.name, "'"); };
  if (tensor.has_data && tensor.parameters.binary_data_size) {
    fail_infer(place(), " has both 'data' and binary_data_size");
  }
  if (tensor.data_offset > 0) {
    JsonReader data(json_text_.substr(tensor.data_offset));
    read_json_data(data, tensor);
  } else if (tensor.parameters.binary_data_size) {
    read_binary_data(tensor);
  } else if (!tensor.has_data) {
    fail_infer(place(), " has no 'data'");
  }
  collector_.close(tensor);
}

void InferReader::read_inputs(JsonReader& json) {
  if (json.kind() != JsonKind::kArray) {
    fail_infer("'inputs' must be a list, received ", name_of(json.kind()));
  }
  int64_t position = 0;
  json.enter_array();
  while (json.next_element()) read_input(json, position++);
}

void InferReader::finish() {
  collector_.finish();
  if (!binary_.empty()) {
    fail_infer(binary_.size(), " bytes of binary data belong to no input");
  }
}

// An output that the request asks for.
struct RequestedOutput {
  size_t part = 0;
  std::optional<bool> binary = {};
};

std::vector<RequestedOutput> read_outputs(JsonReader& json, const std::vector<PartInfo>& parts) {
  std::vector<RequestedOutput> out;
  if (json.kind() != JsonKind::kArray) {
    fail_infer("'outputs' must be a list, received ", name_of(json.kind()));
  }
  std::string key, name;
  json.enter_array();
  while (json.next_element()) {
    if (json.kind() != JsonKind::kObject) {
      fail_infer("an element of 'outputs' must be an object, received ", name_of(json.kind()));
    }
    Parameters parameters;
    bool has_name = false;
    json.enter_object();
    while (json.next_member(key)) {
      if (key == "name") {
        read_name(json, "name", name);
        has_name = true;
      } else if (key == "parameters") {
        parameters = read_parameters(json);
      } else {
        json.skip_value();
      }
    }
    if (!has_name) fail_infer("an element of 'outputs' has no 'name'");
    const auto at = std::ranges::find(parts, name, &PartInfo::name);
    if (at == parts.end()) fail_infer("unknown output '", name, "'");
    const auto position = static_cast<size_t>(at - parts.begin());
    const bool twice = std::ranges::any_of(
        out, [&](const RequestedOutput& other) { return other.part == position; });
    if (twice) fail_infer("output '", name, "' is requested twice");
    out.push_back({.part = position, .binary = parameters.binary_data});
  }
  return out;
}

// ---- answers

// The members of a request besides its inputs.
struct InferRequest {
  std::string id;
  Parameters parameters;
  std::vector<RequestedOutput> outputs;
};

InferRequest read_request(JsonReader& json, InferReader& inputs,
                          const std::vector<PartInfo>& output_parts) {
  InferRequest out;
  bool has_id = false, has_inputs = false, has_outputs = false, has_parameters = false;
  std::string key;
  const auto once = [&](bool& seen) {
    if (seen) fail_infer("'", key, "' stands twice");
    seen = true;
  };
  if (json.kind() != JsonKind::kObject) {
    fail_infer("the body must be a JSON object, received ", name_of(json.kind()));
  }
  json.enter_object();
  while (json.next_member(key)) {
    if (key == "id") {
      once(has_id);
      read_name(json, "id", out.id);
    } else if (key == "parameters") {
      once(has_parameters);
      out.parameters = read_parameters(json);
    } else if (key == "inputs") {
      once(has_inputs);
      inputs.read_inputs(json);
    } else if (key == "outputs") {
      once(has_outputs);
      out.outputs = read_outputs(json, output_parts);
    } else {
      json.skip_value();
    }
  }
  json.expect_end();
  if (!has_inputs) fail_infer("'inputs' is missing");
  inputs.finish();
  if (out.outputs.empty()) {
    for (size_t i = 0; i < output_parts.size(); ++i) out.outputs.push_back({.part = i});
  }
  return out;
}

size_t write_answer(const RequestTrace& trace, const InferRequest& request,
                    const std::vector<PartInfo>& parts, const RunOutputs& outputs,
                    std::string& out) {
  const size_t begin = out.size();
  bool any_binary = false;
  std::string binary;
  out += "{\"model_name\": ";
  append_json_string(out, trace.version->model());
  out += ", \"model_version\": \"" + trace.version->number_text() + "\"";
  if (!request.id.empty()) {
    out += ", \"id\": ";
    append_json_string(out, request.id);
  }
  out += ", \"outputs\": [";
  bool first = true;
  for (const RequestedOutput& requested : request.outputs) {
    const PartInfo& part = parts[requested.part];
    const TensorView view = view_of_part(outputs.outputs[part.tensor].view, part);
    const bool is_binary =
        requested.binary.value_or(request.parameters.binary_data_output.value_or(false));
    out += first ? "{\"name\": " : ", {\"name\": ";
    first = false;
    append_json_string(out, part.name);
    out += ", \"datatype\": \"";
    out += v2_name(view.dtype);
    out += "\", \"shape\": [";
    for (size_t i = 0; i < view.shape.dims().size(); ++i) {
      if (i > 0) out += ", ";
      append_json_number(out, view.shape.dims()[i]);
    }
    if (is_binary) {
      any_binary = true;
      const size_t before = binary.size();
      append_binary(binary, view);
      out += "], \"parameters\": {\"binary_data_size\": ";
      append_json_number(out, static_cast<int64_t>(binary.size() - before));
      out += "}}";
    } else {
      out += "], \"data\": [";
      try {
        append_elements(out, view, 0, view.values, false, false);
      } catch (const ValueFault& fault) {
        fail_infer("output '", part.name, "' ", fault.what());
      }
      out += "]}";
    }
  }
  out += "]}";
  if (!any_binary) return kNone;
  const size_t json_size = out.size() - begin;
  out += binary;
  return json_size;
}

}  // namespace

size_t kserve_infer(RequestTrace& trace, std::string_view body, size_t json_size,
                    const RequestLimits& limits, std::string& out) {
  RequestMemory& memory = request_memory();
  const ServedSignature& signature = trace.version->signature({});
  const bool has_binary = json_size != kNone;
  const std::string_view json_text = body.substr(0, has_binary ? json_size : body.size());
  const std::string_view binary = has_binary ? body.substr(json_size) : std::string_view();
  const std::span<InputValues> inputs = reset_inputs(memory, signature);
  const std::vector<PartInfo>& output_parts = signature.output_parts;
  JsonReader json(json_text);
  InferReader reader(signature, inputs, json_text, binary, has_binary, limits);
  const InferRequest request = read_request(json, reader, output_parts);
  if (request.parameters.timeout_micros) {
    constexpr int64_t kMostMicros = INT64_MAX / 1000;
    trace.set_timeout(std::min(*request.parameters.timeout_micros, kMostMicros) * 1000);
  }
  trace.check_timeout();
  run_signature(trace, signature, inputs, memory.outputs);
  trace.check_timeout();
  return write_answer(trace, request, output_parts, memory.outputs, out);
}

}  // namespace keel::serving

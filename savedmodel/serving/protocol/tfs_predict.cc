#include <keel/savedmodel/serving/protocol/tfs_predict.h>

#include <algorithm>
#include <optional>

#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/savedmodel/serving/protocol/value_reader.h>
#include <keel/savedmodel/serving/protocol/value_writer.h>

namespace keel::serving {
namespace {

constexpr int64_t kMostAnswerRows = int64_t{1} << 40;

template <class... Args>
[[noreturn]] void fail_predict(const Args&... args) {
  throw ServeError(Code::kInvalidArgument, args...);
}

std::string names_of(std::span<const InputValues> inputs) {
  std::string out;
  for (const InputValues& input : inputs) {
    out += (out.empty() ? "'" : ", '") + input.info().name + "'";
  }
  return out;
}

// Reads the values of a predict request.
class PredictReader {
 public:
  PredictReader(std::span<InputValues> inputs, const RequestLimits& limits)
      : inputs_(inputs), limits_(limits) {}

  // Read the value of "instances" or "inputs". Return the number of rows.
  int64_t read_rows(JsonReader& json);
  int64_t read_columns(JsonReader& json);

 private:
  bool is_named_row(JsonReader& json);
  void read_named_row(JsonReader& json, int64_t row);
  void read_value(JsonReader& json, InputValues& to, int64_t row);
  InputValues* find(const std::string& name, size_t guess);

  std::span<InputValues> inputs_;
  const RequestLimits& limits_;
  std::string key_;
};

InputValues* PredictReader::find(const std::string& name, size_t guess) {
  // Objects mostly have the same order as the model or as the object before.
  if (guess < inputs_.size() && inputs_[guess].info().name == name) return &inputs_[guess];
  for (InputValues& input : inputs_) {
    if (input.info().name == name) return &input;
  }
  return nullptr;
}

void PredictReader::read_value(JsonReader& json, InputValues& to, int64_t row) {
  try {
    read_row(json, to, row);
  } catch (const ValueFault& fault) {
    fail_predict("instances[", row, "]: input '", to.info().name, "' ", fault.what());
  }
}

void PredictReader::read_named_row(JsonReader& json, int64_t row) {
  for (InputValues& input : inputs_) input.given = false;
  json.enter_object();
  size_t count = 0;
  while (json.next_key(key_)) {
    InputValues* const input = find(key_, count);
    if (input == nullptr) {
      fail_predict("instances[", row, "]: unknown input '", key_, "'; the inputs are ",
                   names_of(inputs_));
    }
    if (input->given) fail_predict("instances[", row, "]: input '", key_, "' stands twice");
    input->given = true;
    ++count;
    read_value(json, *input, row);
  }
  if (count == inputs_.size()) return;
  for (const InputValues& input : inputs_) {
    if (!input.given)
      fail_predict("instances[", row, "]: input '", input.info().name, "' is missing");
  }
}

// With one input, an object may be its value: {"b64": ...} or a sparse row.
bool PredictReader::is_named_row(JsonReader& json) {
  if (json.kind() != JsonKind::kObject) return false;
  if (inputs_.size() != 1) return true;
  const TensorInfo& info = inputs_[0].info();
  JsonReader ahead = json;
  ahead.enter_object();
  if (!ahead.next_key(key_) || key_ == info.name) return true;
  if (info.spec.layout == Layout::kSparse && (key_ == "indices" || key_ == "values")) return false;
  if (key_ != "b64" || ahead.kind() != JsonKind::kString) return true;
  ahead.skip_value();
  return ahead.next_key(key_);
}

int64_t PredictReader::read_rows(JsonReader& json) {
  if (json.kind() != JsonKind::kArray) {
    const JsonKind kind = json.kind();
    json.skip_value();
    fail_predict("'instances' must be a list, received ", name_of(kind));
  }
  int64_t row = 0;
  std::optional<bool> named;
  json.enter_array();
  while (json.next_element()) {
    if (row >= limits_.rows) {
      do {
        json.skip_value();
        ++row;
      } while (json.next_element());
      check_rows(row, limits_);
    }
    const bool is_named = is_named_row(json);
    if (named.value_or(is_named) != is_named) {
      fail_predict("instances[", row, "]: objects and plain values cannot be mixed");
    }
    named = is_named;
    if (is_named) {
      read_named_row(json, row);
    } else if (inputs_.size() == 1) {
      read_value(json, inputs_[0], row);
    } else {
      fail_predict("instances[", row, "] must be an object with the inputs ", names_of(inputs_));
    }
    ++row;
  }
  if (row == 0) fail_predict("'instances' must not be empty");
  for (InputValues& input : inputs_) {
    try {
      finish_rows(input, row);
    } catch (const ValueFault& fault) {
      fail_predict("input '", input.info().name, "' ", fault.what());
    }
  }
  return row;
}

int64_t PredictReader::read_columns(JsonReader& json) {
  const auto read = [&](InputValues& input) {
    try {
      read_column(json, input);
    } catch (const ValueFault& fault) {
      fail_predict("inputs: input '", input.info().name, "' ", fault.what());
    }
    input.given = true;
    check_rows(input.rows(), limits_);
  };
  const JsonKind kind = json.kind();
  bool bare = kind != JsonKind::kObject;
  if (!bare && inputs_.size() == 1) {
    // An object may be the value of the only input: {"b64": ...} or a ragged or sparse tensor.
    JsonReader ahead = json;
    bool names_input = false, first = true;
    ahead.enter_object();
    while (ahead.next_key(key_)) {
      if (first && inputs_[0].info().spec.layout != Layout::kDense) {
        bare =
            key_ == "values" || key_ == "row_splits" || key_ == "indices" || key_ == "dense_shape";
      }
      first = false;
      names_input = names_input || key_ == inputs_[0].info().name;
      ahead.skip_value();
    }
    bare = bare && !names_input;
  }
  if (bare) {
    if (inputs_.size() != 1) {
      json.skip_value();
      fail_predict("'inputs' must be an object with the inputs ", names_of(inputs_), ", received ",
                   name_of(kind));
    }
    read(inputs_[0]);
    return inputs_[0].rows();
  }
  json.enter_object();
  size_t count = 0;
  while (json.next_key(key_)) {
    InputValues* const input = find(key_, count++);
    if (input == nullptr) {
      json.skip_value();
      continue;
    }
    if (input->given) fail_predict("inputs: input '", key_, "' stands twice");
    read(*input);
  }
  for (const InputValues& input : inputs_) {
    if (!input.given) fail_predict("inputs: input '", input.info().name, "' is missing");
  }
  return rows_of(inputs_);
}

// The members of a request.
struct PredictBody {
  const ServedSignature* signature = nullptr;
  bool by_rows = false;
  int64_t rows = 0;
};

void read_signature_name(JsonReader& json, std::string& to) {
  if (json.kind() != JsonKind::kString) {
    json.skip_value();
    fail_predict("'signature_name' key must be a string value.");
  }
  json.read_string(to);
}

// Returns the signature of a body that names one. It may stand after the values.
const ServedSignature& signature_of(const ModelVersion& version, std::string_view body) {
  // Almost all bodies name no signature, which the text shows without reading it as JSON. A name
  // can be written with escapes.
  if (body.find("signature_name") == std::string_view::npos &&
      body.find('\\') == std::string_view::npos) {
    return version.signature({});
  }
  JsonReader json(body);
  std::string key, name;
  bool found = false;
  if (json.kind() != JsonKind::kObject) return version.signature({});
  json.enter_object();
  while (json.next_member(key)) {
    if (key == "signature_name") {
      if (found) fail_predict("'signature_name' stands twice");
      found = true;
      read_signature_name(json, name);
    } else {
      json.skip_value();
    }
  }
  return version.signature(name);
}

PredictBody read_body(const ModelVersion& version, std::string_view body, RequestMemory& memory,
                      const RequestLimits& limits) {
  PredictBody out = {.signature = &signature_of(version, body)};
  JsonReader json(body);
  if (const JsonKind kind = json.kind(); kind != JsonKind::kObject) {
    json.skip_value();
    fail_predict("the body must be a JSON object, received ", name_of(kind));
  }
  std::string& key = memory.text;
  PredictReader reader(reset_inputs(memory, *out.signature), limits);
  bool found = false;
  json.enter_object();
  while (json.next_member(key)) {
    if (key == "instances" || key == "inputs") {
      if (found) {
        fail_predict(
            "a request must have 'instances' or 'inputs', once, and not both 'inputs' and "
            "'instances'");
      }
      found = true;
      out.by_rows = key == "instances";
      out.rows = out.by_rows ? reader.read_rows(json) : reader.read_columns(json);
    } else {
      json.skip_value();
    }
  }
  if (!found) fail_predict("Missing 'inputs' or 'instances' key");
  return out;
}

void write_rows(const RunOutputs& outputs, int64_t rows, std::string& out) {
  for (const RunOutputs::Output& output : outputs.outputs) {
    const int64_t made = output.view.shape.rank() == 0 ? 0 : output.view.rows;
    if (made != rows || made > kMostAnswerRows) {
      fail_predict("output '", output.info->name, "' has ", made, " rows for ", rows,
                   " instances; request columns with 'inputs'");
    }
  }
  out += "{\"predictions\": [";
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) out += ", ";
    if (outputs.outputs.size() == 1) {
      append_row(out, outputs.outputs[0], row);
      continue;
    }
    char separator = '{';
    for (const RunOutputs::Output& output : outputs.outputs) {
      out.push_back(separator);
      separator = ',';
      append_json_string(out, output.info->name);
      out += ": ";
      append_row(out, output, row);
    }
    out.push_back('}');
  }
  out += "]}";
}

void write_columns(const RunOutputs& outputs, std::string& out) {
  out += "{\"outputs\": ";
  if (outputs.outputs.size() == 1) {
    append_column(out, outputs.outputs[0]);
  } else {
    char separator = '{';
    for (const RunOutputs::Output& output : outputs.outputs) {
      out.push_back(separator);
      separator = ',';
      append_json_string(out, output.info->name);
      out += ": ";
      append_column(out, output);
    }
    out.push_back('}');
  }
  out.push_back('}');
}

}  // namespace

void tfs_predict(RequestTrace& trace, std::string_view body, const RequestLimits& limits,
                 std::string& out) {
  RequestMemory& memory = request_memory();
  const PredictBody read = read_body(*trace.version, body, memory, limits);
  const std::span<const InputValues> inputs(memory.inputs.data(), read.signature->inputs.size());
  run_signature(trace, *read.signature, inputs, memory.outputs);
  if (read.by_rows) {
    write_rows(memory.outputs, read.rows, out);
  } else {
    write_columns(memory.outputs, out);
  }
}

}  // namespace keel::serving

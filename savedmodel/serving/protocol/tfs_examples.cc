#include <keel/savedmodel/serving/protocol/tfs_examples.h>

#include <absl/strings/str_cat.h>
#include <optional>

#include <keel/savedmodel/serving/base/base64.h>
#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/savedmodel/serving/protocol/example_values.h>
#include <keel/savedmodel/serving/protocol/value_reader.h>

namespace keel::serving {
namespace {

template <class... Args>
[[noreturn]] void fail_examples(const Args&... args) {
  throw ServeError(Code::kInvalidArgument, args...);
}

template <class List>
List& list_in(FeatureValues& values) {
  if (std::holds_alternative<std::monostate>(values)) values = List();
  if (List* const list = std::get_if<List>(&values)) return *list;
  throw ValueFault("mixes values of different kinds");
}

void read_feature_value(JsonReader& json, FeatureValues& to) {
  switch (json.kind()) {
    case JsonKind::kNumber: {
      JsonReader ahead = json;
      const std::string_view text = ahead.read_number_text();
      const bool whole = text.find_first_not_of("-0123456789") == std::string_view::npos;
      if (whole) {
        list_in<FeatureIntegers>(to).push_back(json.read_integer<int64_t>());
      } else {
        list_in<FeatureFloats>(to).push_back(json.read_float<float>());
      }
      return;
    }
    case JsonKind::kBool:
      return list_in<FeatureIntegers>(to).push_back(json.read_bool() ? 1 : 0);
    case JsonKind::kString:
      return json.read_string(list_in<FeatureStrings>(to).emplace_back());
    case JsonKind::kObject: {
      static const TensorInfo info = {.name = "", .spec = {.shape = {}, .dtype = DType::kString}};
      InputValues value;
      value.reset(info);
      read_element(json, value, true);
      value.finish();
      list_in<FeatureStrings>(to).push_back(*static_cast<const std::string*>(value.view().data));
      return;
    }
    case JsonKind::kArray:
    case JsonKind::kNull:
      break;
  }
  throw ValueFault("must be a value or a list of values, received ", name_of(json.kind()));
}

ExampleValues read_example(JsonReader& json, const std::string& place) {
  ExampleValues out;
  std::string name;
  if (json.kind() != JsonKind::kObject) {
    const JsonKind kind = json.kind();
    json.skip_value();
    fail_examples(place, " must be an object of features, received ", name_of(kind));
  }
  json.enter_object();
  while (json.next_key(name)) {
    const auto [at, added] = out.try_emplace(name);
    if (!added) fail_examples(place, ": feature '", name, "' stands twice");
    try {
      if (json.kind() == JsonKind::kArray) {
        json.enter_array();
        while (json.next_element()) read_feature_value(json, at->second);
      } else {
        read_feature_value(json, at->second);
      }
    } catch (const ValueFault& fault) {
      fail_examples(place, ": feature '", name, "' ", fault.what());
    }
  }
  return out;
}

struct ExamplesBody {
  std::optional<std::string> signature_name;
  std::vector<ExampleValues> examples;
};

ExamplesBody read_examples_body(std::string_view body, const RequestLimits& limits) {
  ExamplesBody out;
  JsonReader json(body);
  if (json.kind() != JsonKind::kObject) {
    json.skip_value();
    fail_examples("the body must be a JSON object");
  }
  ExampleValues context;
  bool has_context = false, has_examples = false;
  std::string key;
  const auto once = [&](bool& seen) {
    if (seen) fail_examples("'", key, "' stands twice");
    seen = true;
  };
  json.enter_object();
  while (json.next_member(key)) {
    if (key == "signature_name") {
      if (out.signature_name) fail_examples("'signature_name' stands twice");
      if (json.kind() != JsonKind::kString) {
        fail_examples("'signature_name' key must be a string value.");
      }
      json.read_string(out.signature_name.emplace());
    } else if (key == "context") {
      once(has_context);
      context = read_example(json, "context");
    } else if (key == "examples") {
      once(has_examples);
      if (json.kind() != JsonKind::kArray) fail_examples("'examples' must be a list of objects");
      json.enter_array();
      while (json.next_element()) {
        out.examples.push_back(
            read_example(json, absl::StrCat("examples[", out.examples.size(), "]")));
        check_rows(std::ssize(out.examples), limits);
      }
    } else {
      json.skip_value();
    }
  }
  if (!has_examples) fail_examples("Missing 'examples' key");
  if (out.examples.empty()) fail_examples("'examples' must not be empty");
  add_context(context, out.examples);
  return out;
}

}  // namespace

void tfs_examples(RequestTrace& trace, std::string_view body, const RequestLimits& limits,
                  std::string& out) {
  const ExamplesBody read = read_examples_body(body, limits);
  const ServedSignature& signature = read.signature_name && !read.signature_name->empty()
                                         ? trace.version->signature(*read.signature_name)
                                         : trace.version->default_examples_signature();
  const ExampleScores scores = run_examples(trace, signature, read.examples);
  out += "{\"results\": [";
  for (int64_t row = 0; row < scores.rows; ++row) {
    if (row > 0) out += ", ";
    if (trace.api == Api::kRegress) {
      append_json_number(out, scores.values[row]);
      continue;
    }
    for (int64_t column = 0; column < scores.columns; ++column) {
      out += column == 0 ? "[[\"\", " : "], [\"\", ";
      append_json_number(out, scores.values[row * scores.columns + column]);
    }
    out += scores.columns == 0 ? "[]" : "]]";
  }
  out += "]}";
}

}  // namespace keel::serving

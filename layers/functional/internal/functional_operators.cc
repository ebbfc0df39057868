#include <keel/layers/functional/internal/functional_operators.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include <keel/layers/functional/internal/operator_functions.h>
#include <keel/layers/functional/internal/tensorflow_nodes.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

Config layer(const char* class_name, const Config& operator_config, Config config) {
  if (const Config* const name = operator_config.find("name")) config.set("name", *name);
  return Config::dict({{"class_name", class_name}, {"config", std::move(config)}});
}

// Activation name by operator class.
const std::map<std::string, std::string>& activation_names() {
  static const std::map<std::string, std::string> kNames = {
      {"Celu", "celu"},
      {"Elu", "elu"},
      {"Exp", "exponential"},
      {"Gelu", "gelu"},
      {"HardSigmoid", "hard_sigmoid"},
      {"HardSilu", "hard_silu"},
      {"HardTanh", "hard_tanh"},
      {"Identity", "linear"},
      {"LeakyRelu", "leaky_relu"},
      {"LogSigmoid", "log_sigmoid"},
      {"LogSoftmax", "log_softmax"},
      {"Relu", "relu"},
      {"Relu6", "relu6"},
      {"Selu", "selu"},
      {"Sigmoid", "sigmoid"},
      {"Silu", "silu"},
      {"Softmax", "softmax"},
      {"Softplus", "softplus"},
      {"Softsign", "softsign"},
      {"Tanh", "tanh"},
  };
  return kNames;
}

bool is_binary(const std::string& class_name) {
  constexpr std::array<std::string_view, 7> kBinary = {
      "Add", "Divide", "Maximum", "Minimum", "Multiply", "Subtract", "TrueDivide"};
  return std::ranges::find(kBinary, class_name) != kBinary.end();
}

// Returns a constant as the scale or offset of Rescaling: one value, or one value for each position
// of the last axis. Returns nothing for other constants.
std::optional<std::vector<double>> numbers_of(const TensorLike& t) {
  if (t.is_symbolic() || t.layout() != Layout::kDense) return std::nullopt;
  const Shape& shape = t.tensor().shape();
  const bool of_last_axis = shape.rank() == 0 || shape[-1] == shape.size();
  if (!of_last_axis) return std::nullopt;
  return t.tensor().cast(DType::kFloat64).to_vector<double>();
}

Config encoded(const std::vector<double>& numbers) {
  return numbers.size() == 1 ? Config(numbers[0]) : encode(numbers);
}

std::vector<double> negative(std::vector<double> numbers) {
  for (double& x : numbers) x = -x;
  return numbers;
}

// Returns the Rescaling options for an operator on a tensor and a constant, or nothing if it is not
// an affine function of the tensor.
std::optional<Config> rescaling(const std::string& class_name, const std::vector<double>& constant,
                                bool constant_first) {
  const auto make = [](const std::vector<double>& scale, const std::vector<double>& offset) {
    return Config::dict({{"scale", encoded(scale)}, {"offset", encoded(offset)}});
  };
  if (class_name == "Add") return make({1}, constant);
  if (class_name == "Multiply") return make(constant, {0});
  if (class_name == "Subtract") {
    return constant_first ? make({-1}, constant) : make({1}, negative(constant));
  }
  const bool divides = class_name == "Divide" || class_name == "TrueDivide";
  if (!divides || constant_first) return std::nullopt;
  std::vector<double> inverse = constant;
  for (double& x : inverse) x = 1 / x;
  return make(inverse, {0});
}

std::optional<OperatorCall> binary(const std::string& class_name, const Config& config,
                                   const Tensors& inputs) {
  if (!inputs.is_sequence() || inputs.items().size() != 2) return std::nullopt;
  if (!inputs[0].is_leaf() || !inputs[1].is_leaf()) return std::nullopt;
  for (const bool constant_first : {false, true}) {
    const TensorLike& x = inputs[constant_first ? 1 : 0].leaf();
    const std::optional<std::vector<double>> constant =
        numbers_of(inputs[constant_first ? 0 : 1].leaf());
    if (!constant || !x.is_symbolic()) continue;
    if (!is_floating(x.spec().dtype)) return std::nullopt;  // Rescaling returns floats
    const std::optional<Config> options = rescaling(class_name, *constant, constant_first);
    if (!options) return std::nullopt;
    return OperatorCall{layer("Rescaling", config, *options), Tensors(x)};
  }
  const bool same_rank =
      inputs[0].leaf().spec().shape.rank() == inputs[1].leaf().spec().shape.rank();
  if (!same_rank || class_name == "Divide" || class_name == "TrueDivide") return std::nullopt;
  return OperatorCall{layer(class_name.c_str(), config, Config::dict()),
                      Tensors::list(inputs.items())};
}

// Reshape keeps the batch dimension, so the first dimension must be unknown.
std::optional<Config> target_shape(const Config& config) {
  const Config* const shape = config.find("newshape");
  if (shape == nullptr || !shape->is_list() || shape->items().empty()) return std::nullopt;
  const Config& batch = shape->items()[0];
  if (!batch.is_null() && batch != Config(-1)) return std::nullopt;
  return Config::dict(
      {{"target_shape", Config::List(shape->items().begin() + 1, shape->items().end())}});
}

std::optional<OperatorCall> translated(const std::string& class_name, const Config& config,
                                       const Tensors& inputs) {
  if (is_binary(class_name)) return binary(class_name, config, inputs);
  if (class_name == "Concatenate") {
    const Config* const axis = config.find("axis");
    return OperatorCall{
        layer("Concatenate", config, Config::dict({{"axis", axis == nullptr ? Config(0) : *axis}})),
        inputs};
  }
  if (!inputs.is_leaf()) return std::nullopt;
  if (class_name == "Negative") {
    return OperatorCall{layer("Rescaling", config, Config::dict({{"scale", -1.0}})), inputs};
  }
  if (class_name == "Reshape") {
    const std::optional<Config> shape = target_shape(config);
    if (shape) return OperatorCall{layer("Reshape", config, *shape), inputs};
  }
  const auto it = activation_names().find(class_name);
  if (it == activation_names().end()) return std::nullopt;
  return OperatorCall{layer("Activation", config, Config::dict({{"activation", it->second}})),
                      inputs};
}

bool is_tensorflow_operator(const std::string& class_name) {
  return class_name == "TFOpLambda" || class_name == "SlicingOpLambda" ||
         class_name == "TensorFlowOpLayer";
}

// Returns true if calls pass tensors as separate arguments; merging layers take them in one list.
bool has_separate_arguments(const Config& entry) {
  const Config* const nodes = entry.find("inbound_nodes");
  if (nodes == nullptr || !nodes->is_list() || nodes->items().empty()) return false;
  const Config& node = nodes->items()[0];
  const Config* const arguments = node.is_dict() ? node.find("args") : nullptr;
  return arguments != nullptr && arguments->is_list() && arguments->items().size() > 1;
}

// Returns true for calls in the form of Keras 3, whose nodes have the key "args".
bool has_keras_3_nodes(const Config& entry) {
  const Config* const nodes = entry.find("inbound_nodes");
  return nodes != nullptr && nodes->is_list() && !nodes->items().empty() &&
         nodes->items()[0].is_dict() && nodes->items()[0].find("args") != nullptr;
}

bool is_catalog_operator(const Config& entry) {
  if (is_tensorflow_operator(entry["class_name"].string())) return true;
  const Config* const module = entry.find("module");
  if (module != nullptr && module->is_string())
    return module->string().starts_with("keras.src.ops");
  const std::string& class_name = entry["class_name"].string();
  if (is_binary(class_name)) return has_separate_arguments(entry);
  if (!activation_names().contains(class_name) &&
      operator_function(to_snake_case(class_name)) == nullptr) {
    return false;
  }
  const std::vector<std::string> known = layer_registry().class_names();
  if (std::ranges::find(known, class_name) == known.end()) return true;
  if (layer_registry().traits(class_name).package != "keras") return false;
  // Layers and operators of Keras share names such as Softmax; only layers have this key.
  const Config* const config = entry.find("config");
  return config != nullptr && config->is_dict() && config->find("name") != nullptr &&
         config->find("trainable") == nullptr && has_keras_3_nodes(entry);
}

// Returns the call of an operator of Keras 3, whose class is the function in camel case, or of
// TensorFlow.
FunctionCall function_call(const std::string& class_name, const Config& config,
                           const Config& arguments, int64_t tensors) {
  if (class_name == "TensorFlowOpLayer") return from_tensorflow_node(config, tensors);
  if (is_tensorflow_operator(class_name)) {
    const Config* const function = config.find("function");
    const bool named = function != nullptr && function->is_string();
    return from_tensorflow(named ? function->string() : "", arguments);
  }
  FunctionCall out{.function = to_snake_case(class_name), .arguments = Config::dict()};
  const OperatorFunction* const function = operator_function(out.function);
  if (function == nullptr) return out;
  for (const auto& [key, value] : config.entries()) {
    const bool of_all = key == "name" || key == "trainable" || key == "dtype";
    const bool is_parameter =
        std::ranges::find(function->parameters, key) != function->parameters.end();
    if (is_parameter || !of_all) out.arguments.set(key, value);
  }
  const bool takes_list = function->parameters[0].starts_with('*');
  Config::List all;
  for (const auto& [key, value] : arguments.entries()) {
    size_t i = function->parameters.size();
    if (takes_list && !key.empty() && key.find_first_not_of("0123456789") == std::string::npos) {
      all.push_back(value);
      continue;
    }
    std::from_chars(key.data(), key.data() + key.size(), i);
    out.arguments.set(i < function->parameters.size() ? function->parameters[i] : key, value);
  }
  if (takes_list) out.arguments.set(function->parameters[0].substr(1), std::move(all));
  return out;
}

// Returns the name of a function of TensorFlow for an error message.
std::string unknown_function(const FunctionCall& call) {
  const Config* const op = call.arguments.find("op");
  const std::string name = op != nullptr && op->is_string() ? op->string() : call.function;
  return name.empty() ? "" : ", " + name;
}

// Returns "LogSoftmax" for "log_softmax".
std::string camel_case(const std::string& function) {
  std::string out;
  for (size_t i = 0; i < function.size(); ++i) {
    const bool starts = i == 0 || function[i - 1] == '_';
    const char c = function[i];
    if (c != '_') out += starts && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return out;
}

// Returns true if all arguments except x have the values that an Activation uses. A null axis means
// all of them.
bool has_defaults(const Config& arguments) {
  return std::ranges::all_of(arguments.entries(), [](const auto& entry) {
    const auto& [key, value] = entry;
    return key == "x" || (value.is_null() && key != "axis") ||
           (key == "axis" && value == Config(-1)) ||
           (key == "alpha" && value.is_number() && value.number() == 1) ||
           (key == "negative_slope" && value.is_number() && value.number() == 0.2) ||
           (key == "approximate" && value == Config(false));
  });
}

// Returns the call as that of a layer of Keras, if there is one.
std::optional<OperatorCall> call_of_keras_layer(const FunctionCall& call, const Config& config,
                                                const std::vector<Tensor>& tensors) {
  const OperatorArguments arguments(call.arguments, tensors);
  Config options = call.arguments;
  if (const Config* const name = config.find("name")) options.set("name", *name);
  const std::string class_name = camel_case(call.function);
  const auto is_tensor = [&](const char* name) {
    const Config* const value = call.arguments.find(name);
    return value != nullptr && placeholder_number(*value) >= 0;
  };
  if (class_name == "Concatenate" && arguments.has("xs")) {
    Tensors::Items all;
    for (const Tensor& t : arguments.tensors("xs")) all.emplace_back(t);
    return translated(class_name, options, Tensors::list(std::move(all)));
  }
  if (is_binary(class_name) && arguments.has("x1") && arguments.has("x2")) {
    return translated(class_name, options,
                      Tensors::list({arguments.tensor("x1"), arguments.tensor("x2")}));
  }
  if (!is_tensor("x")) return std::nullopt;
  if (class_name != "Reshape" && !has_defaults(call.arguments)) return std::nullopt;
  return translated(class_name, options, Tensors(arguments.tensor("x")));
}

OperatorCall catalog_layer(const std::string& caller, const std::string& class_name,
                           const Config& config, const Config& arguments,
                           const std::vector<Tensor>& tensors) {
  const Config* const name = config.find("name");
  const std::string text = name != nullptr && name->is_string() ? name->string() : "";
  const FunctionCall call = function_call(class_name, config, arguments, std::ssize(tensors));
  const OperatorFunction* const function = operator_function(call.function);
  const std::string unknown =
      function == nullptr ? std::string() : unknown_argument(*function, call.arguments);
  if (!unknown.empty()) {
    throw NotImplementedError(caller, ": the operator ", class_name, " (", text, ", ",
                              call.function, ") is called with ", unknown, "=",
                              to_json(call.arguments[unknown]),
                              ", which is not supported; wrap it in a layer");
  }
  try {
    if (std::optional<OperatorCall> of_keras = call_of_keras_layer(call, config, tensors)) {
      return *of_keras;
    }
  } catch (const TypeError& error) {
    throw TypeError(caller, ": the operator ", class_name, " (", text, "): ", error.what());
  }
  if (function == nullptr) {
    throw NotImplementedError(caller, ": the operator ", class_name, " (", text,
                              unknown_function(call),
                              ") of the graph has no equivalent layer; wrap it in a layer");
  }
  const Config options = Config::dict({{"function", call.function}, {"arguments", call.arguments}});
  Tensors::Items inputs(tensors.begin(), tensors.end());
  return {layer("Operator", config, options),
          inputs.size() == 1 ? inputs[0] : Tensors::list(std::move(inputs))};
}

}  // namespace

const GraphOperators kCatalogOperators = {.recognizes = is_catalog_operator,
                                          .convert = catalog_layer};

}  // namespace keel

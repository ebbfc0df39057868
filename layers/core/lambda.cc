#include <keel/layers/core/lambda.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>
#include <mutex>

#include <keel/layers/activations.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// The registered functions.
struct LambdaFunctions {
  std::mutex mutex;  // guards all
  std::map<std::string, LambdaFunction> all;
};

LambdaFunctions& lambda_functions() {
  static LambdaFunctions functions;
  return functions;
}

LambdaFunction registered_function(const std::string& name) {
  LambdaFunctions& functions = lambda_functions();
  const std::lock_guard lock(functions.mutex);
  const auto it = functions.all.find(name);
  return it == functions.all.end() ? LambdaFunction() : it->second;
}

// Returns the function of a name, which may have a package ("Package>name"), or an empty one.
LambdaFunction function_named(const std::string& name) {
  if (LambdaFunction found = registered_function(name)) return found;
  const size_t package = name.rfind('>');
  if (package != std::string::npos) return function_named(name.substr(package + 1));
  const std::vector<std::string> names = activations::names();
  if (std::ranges::find(names, name) == names.end()) return {};
  return [activation = Activation(name)](const Tensors& inputs, const LambdaCall&) -> Tensors {
    return activation(inputs.tensor());
  };
}

bool is_class(const Config& config, const char* class_name) {
  const Config* const found = config.is_dict() ? config.find("class_name") : nullptr;
  return found != nullptr && *found == Config(class_name);
}

// Removes an output_shape that is a function or has several shapes. It is not needed, because the
// function also computes shapes.
void drop_other_shapes(Config& config) {
  const Config* found = config.find("output_shape");
  if (found == nullptr) return;
  if (is_class(*found, "__tuple__")) {
    config.set("output_shape", Config((*found)["items"]));
    found = config.find("output_shape");
  }
  const auto is_dimension = [](const Config& c) { return c.is_null() || c.is_integer(); };
  const bool is_shape = is_dimension(*found) ||
                        (found->is_list() && std::ranges::all_of(found->items(), is_dimension));
  if (!is_shape) config.erase("output_shape");
}

// The options as configs hold them. A reference that is null stands for no function.
struct StoredOptions {
  FunctionReference function = {}, mask = {};
  std::optional<PartialShape> output_shape = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("function", self.function);
    field("output_shape", self.output_shape);
    field("mask", self.mask);
  }
};

Tensors without_masks(const Tensors& tensors) {
  return map_structure(tensors, [](const TensorLike& t) -> TensorLike {
    return t.layout() == Layout::kDense ? TensorLike(t.tensor().with_mask(Tensor())) : t;
  });
}

}  // namespace

Config encode(const FunctionReference& function) {
  if (!function.config.is_null()) return function.config;
  return Config::dict({{"module", "builtins"},
                       {"class_name", "function"},
                       {"config", function.name},
                       {"registered_name", "function"}});
}

void decode(const Config& config, FunctionReference& function) {
  function.name.clear();
  function.config = config;
  if (config.is_string()) {  // Keras 1 and 2
    function.name = config.string();
  } else if (is_class(config, "function") && config["config"].is_string()) {
    function.name = config["config"].string();
  } else if (!is_class(config, "__lambda__") && !config.is_list()) {  // a list: code of Keras 2
    throw TypeError("expected the name of a function, received ", to_json(config));
  }
}

void layers::register_lambda_function(const std::string& name, LambdaFunction function) {
  LambdaFunctions& functions = lambda_functions();
  const std::lock_guard lock(functions.mutex);
  functions.all[name] = std::move(function);
}

LambdaLayer::LambdaLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)), function_(find(options_.function)) {
  if (options_.mask) mask_ = find(*options_.mask);
}

LambdaFunction LambdaLayer::find(const FunctionReference& reference) const {
  const bool is_code = reference.name.empty();
  if (is_code && reference.config.is_null()) {
    throw ValueError("Lambda ", name(),
                     ": function is not set; pass the name of a function registered with ",
                     "layers::register_lambda_function");
  }
  const std::string wanted = is_code ? name() : reference.name;
  if (LambdaFunction found = function_named(wanted)) return found;
  throw NotImplementedError(
      "Lambda ", name(), ": ",
      is_code ? std::string("the config contains Python code, which cannot be run")
              : absl::StrCat("no function '", reference.name, "' is registered"),
      "; register a C++ function with layers::register_lambda_function(\"", wanted, "\", ...)");
}

Tensors LambdaLayer::call(const Tensors& inputs, const CallContext& context) {
  if (options_.output_shape && any_symbolic(inputs)) {
    const Shape batch = flatten(inputs).at(0).spec().shape.slice(0, 1);
    return Tensor::symbolic({.shape = batch + options_.output_shape->shape, .dtype = dtype()});
  }
  return without_masks(
      function_(inputs, {.arguments = options_.arguments, .training = context.training}));
}

std::vector<Tensor> LambdaLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  if (!mask_) return {};
  std::vector<Tensor> out;
  for (const TensorLike& mask : flatten(mask_(inputs, {.arguments = options_.arguments}))) {
    out.push_back(mask.tensor());
  }
  return out;
}

Config LambdaLayer::get_config() const {
  Config out = Config::dict({{"name", name()},
                             {"trainable", trainable()},
                             {"dtype", encode(dtype_policy())},
                             {"function", encode(options_.function)}});
  if (options_.output_shape) out.set("output_shape", encode(*options_.output_shape));
  if (options_.mask) out.set("mask", encode(*options_.mask));
  out.set("arguments", options_.arguments);
  return out;
}

std::shared_ptr<Layer> LambdaLayer::from_config(const Config& config) {
  Config rest = config;
  Options options;
  if (const Config* const found = config.find("arguments"); found != nullptr && found->is_dict()) {
    options.arguments = *found;
  }
  rest.erase("arguments");
  for (const char* key : {"function", "mask"}) {
    const Config* const found = rest.find(key);
    if (found != nullptr && found->is_null()) rest.erase(key);
  }
  drop_other_shapes(rest);
  auto stored = keel::from_config<StoredOptions>(rest, kClassName);
  options.function = std::move(stored.function);
  options.output_shape = std::move(stored.output_shape);
  if (rest.find("mask") != nullptr) options.mask = std::move(stored.mask);
  options.name = std::move(stored.name);
  options.trainable = stored.trainable;
  options.dtype = stored.dtype;
  return std::make_shared<LambdaLayer>(std::move(options));
}

KEEL_REGISTER(Layer, LambdaLayer, .package = "keras", .call = "inputs, mask, training",
              .ignored_keys =
                  "function_type=*, module=*, output_shape_type=*, "
                  "output_shape_module=*")

}  // namespace keel

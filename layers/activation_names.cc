#include <map>
#include <mutex>
#include <utility>

#include <keel/layers/activations.h>

namespace keel {
namespace {

using Function = Activation::Function;
using Maker = std::function<Function(const Config& arguments)>;

struct NoArguments {
  static constexpr void fields(auto&, auto&&) {}
};

struct ReluArguments {
  double negative_slope = 0;
  std::optional<double> max_value = {};
  double threshold = 0;
  static constexpr void fields(auto& self, auto&& field) {
    field("negative_slope", self.negative_slope);
    field("max_value", self.max_value);
    field("threshold", self.threshold);
  }
};

struct SlopeArguments {
  double negative_slope = 0.2;
  static constexpr void fields(auto& self, auto&& field) {
    field("negative_slope", self.negative_slope);
  }
};

struct HardSigmoidArguments {
  double slope = 1.0 / 6;
  static constexpr void fields(auto& self, auto&& field) { field("slope", self.slope); }
};

struct AlphaArguments {
  double alpha = 1;
  static constexpr void fields(auto& self, auto&& field) { field("alpha", self.alpha); }
};

struct GeluArguments {
  bool approximate = false;
  static constexpr void fields(auto& self, auto&& field) { field("approximate", self.approximate); }
};

struct ShrinkArguments {
  double threshold = 0.5;
  static constexpr void fields(auto& self, auto&& field) { field("threshold", self.threshold); }
};

struct ThresholdArguments {
  std::optional<double> threshold = {}, default_value = {};
  static constexpr void fields(auto& self, auto&& field) {
    field("threshold", self.threshold);
    field("default_value", self.default_value);
  }
};

struct SquareplusArguments {
  double b = 4;
  static constexpr void fields(auto& self, auto&& field) { field("b", self.b); }
};

struct AxisArguments {
  int axis = -1;
  static constexpr void fields(auto& self, auto&& field) { field("axis", self.axis); }
};

using Makers = std::map<std::string, Maker>;

// Registers function(x, arguments) under the name. Arguments lists the arguments that a file or a
// caller may pass.
template <class Arguments, class Apply>
void add_maker(Makers& makers, const std::string& name, const Apply& function) {
  makers[name] = [name, function](const Config& config) -> Function {
    return [function, arguments = from_config<Arguments>(config, "activation " + name)](
               const Tensor& x) { return function(x, arguments); };
  };
}

void add_plain(Makers& makers) {
  constexpr std::pair<const char*, Tensor (*)(const Tensor&)> kPlain[] = {
      {"exponential", activations::exponential},
      {"hard_silu", activations::hard_silu},
      {"hard_swish", activations::hard_silu},
      {"hard_tanh", activations::hard_tanh},
      {"linear", activations::linear},
      {"log_sigmoid", activations::log_sigmoid},
      {"mish", activations::mish},
      {"relu6", activations::relu6},
      {"selu", activations::selu},
      {"sigmoid", activations::sigmoid},
      {"silu", activations::silu},
      {"softplus", activations::softplus},
      {"softsign", activations::softsign},
      {"sparse_plus", activations::sparse_plus},
      {"sparse_sigmoid", activations::sparse_sigmoid},
      {"swish", activations::silu},
      {"tanh", activations::tanh},
      {"tanh_shrink", activations::tanh_shrink},
  };
  for (const auto& [name, function] : kPlain) {
    add_maker<NoArguments>(makers, name,
                           [maker = function](const Tensor& x, const auto&) { return maker(x); });
  }
}

void add_with_arguments(Makers& makers) {
  add_maker<ReluArguments>(makers, "relu", [](const Tensor& x, const auto& a) {
    return activations::relu(x, a.negative_slope, a.max_value, a.threshold);
  });
  add_maker<SlopeArguments>(makers, "leaky_relu", [](const Tensor& x, const auto& a) {
    return activations::leaky_relu(x, a.negative_slope);
  });
  add_maker<HardSigmoidArguments>(makers, "hard_sigmoid", [](const Tensor& x, const auto& a) {
    return activations::hard_sigmoid(x, a.slope);
  });
  const auto add_alpha = [&](const char* name, Tensor (*function)(const Tensor&, double)) {
    add_maker<AlphaArguments>(
        makers, name, [function](const Tensor& x, const auto& a) { return function(x, a.alpha); });
  };
  add_alpha("celu", activations::celu);
  add_alpha("elu", activations::elu);
  add_maker<GeluArguments>(makers, "gelu", [](const Tensor& x, const auto& a) {
    return activations::gelu(x, a.approximate);
  });
  const auto add_shrink = [&](const char* name, Tensor (*function)(const Tensor&, double)) {
    add_maker<ShrinkArguments>(makers, name, [function](const Tensor& x, const auto& a) {
      return function(x, a.threshold);
    });
  };
  add_shrink("hard_shrink", activations::hard_shrink);
  add_shrink("soft_shrink", activations::soft_shrink);
  makers["threshold"] = [](const Config& config) -> Function {
    const auto a = from_config<ThresholdArguments>(config, "activation threshold");
    if (!a.threshold || !a.default_value) {
      throw ValueError(
          "activation threshold: an argument is missing; pass both threshold and default_value");
    }
    return
        [a](const Tensor& x) { return activations::threshold(x, *a.threshold, *a.default_value); };
  };
  add_maker<SquareplusArguments>(makers, "squareplus", [](const Tensor& x, const auto& a) {
    return activations::squareplus(x, a.b);
  });
  const auto add_axis = [&](const char* name, Tensor (*function)(const Tensor&, int)) {
    add_maker<AxisArguments>(
        makers, name, [function](const Tensor& x, const auto& a) { return function(x, a.axis); });
  };
  add_axis("glu", activations::glu);
  add_axis("log_softmax", activations::log_softmax);
  add_axis("softmax", activations::softmax);
  add_axis("sparsemax", activations::sparsemax);
}

Makers builtin_makers() {
  Makers all;
  add_plain(all);
  add_with_arguments(all);
  return all;
}

struct KnownFunctions {
  std::mutex mutex;  // guards makers
  Makers makers = builtin_makers();
};

KnownFunctions& known() {
  static KnownFunctions instance;
  return instance;
}

// A layer that Keras's configs contain instead of a function with arguments. encode() writes the
// first form in the list that matches the function.
struct LayerForm {
  const char* class_name;
  const char* function;
  const char* old_key;  // the key's name in Keras 2
  const char* key;
  double default_value;  // default of the layer's key
};
constexpr LayerForm kLayerForms[] = {
    {"ELU", "elu", "alpha", "alpha", 1},
    {"LeakyReLU", "leaky_relu", "alpha", "negative_slope", 0.3},
    {"ReLU", "relu", "alpha", "negative_slope", 0},
    {"Softmax", "softmax", "axis", "axis", -1},
};

Activation from_layer(const LayerForm& form, const Config& config) {
  Config arguments = config;
  for (const char* key : {"name", "trainable", "dtype"}) arguments.erase(key);
  if (const Config* old = config.find(form.old_key)) {
    const Config value = *old;
    arguments.erase(form.old_key);
    arguments.set(form.key, value);
  }
  if (arguments.find(form.key) == nullptr) arguments.set(form.key, form.default_value);
  return activations::get(form.function, arguments);
}

Config layer_object(const char* module, const char* class_name, Config config) {
  return Config::dict({{"module", module},
                       {"class_name", class_name},
                       {"config", std::move(config)},
                       {"registered_name", Config()}});
}

constexpr char kHardSigmoid[] = "hard_sigmoid";
constexpr double kHardSigmoidOffset = 0.5;

// Returns min(max(slope x + 1 / 2, 0), 1) composed of layers that every Keras 3 version has.
Config hard_sigmoid_model(double slope) {
  return layer_object(
      "keras", "Sequential",
      Config::dict(
          {{"name", kHardSigmoid},
           {"layers",
            Config::list({layer_object("keras.layers", "Rescaling",
                                       Config::dict({{"name", "rescaling"},
                                                     {"scale", slope},
                                                     {"offset", kHardSigmoidOffset}})),
                          layer_object("keras.layers", "ReLU",
                                       Config::dict({{"name", "re_lu"}, {"max_value", 1.0}}))})}}));
}

// Returns the slope of a model with the structure of hard_sigmoid_model(), or nothing for another
// model.
std::optional<double> hard_sigmoid_slope(const Config& sequential) {
  const Config* const layers = sequential.is_dict() ? sequential.find("layers") : nullptr;
  if (layers == nullptr || !layers->is_list()) return {};
  std::vector<const Config*> found;
  for (const Config& layer : layers->items()) {
    if (layer["class_name"] != Config("InputLayer")) found.push_back(&layer);
  }
  if (found.size() != 2 || (*found[0])["class_name"] != Config("Rescaling") ||
      (*found[1])["class_name"] != Config("ReLU")) {
    return {};
  }
  const auto number = [](const Config& config, const char* key, double otherwise) {
    const Config* const value = config.find(key);
    return value != nullptr && value->is_number() ? value->number() : otherwise;
  };
  const Config &scaling = (*found[0])["config"], &bounds = (*found[1])["config"];
  if (number(scaling, "offset", 0) != kHardSigmoidOffset || number(bounds, "max_value", 0) != 1 ||
      number(bounds, "negative_slope", 0) != 0 || number(bounds, "threshold", 0) != 0) {
    return {};
  }
  return number(scaling, "scale", 1);
}

Activation from_object(const std::string& class_name, const Config& config) {
  if (class_name == "Sequential") {
    if (const std::optional<double> slope = hard_sigmoid_slope(config)) {
      return activations::get(kHardSigmoid, Config::dict({{"slope", *slope}}));
    }
  }
  if (class_name == "function" && config.is_string()) return Activation(config.string());
  if (class_name == "Activation") {
    Activation inner = "linear";
    decode(config["activation"], inner);
    return inner;
  }
  for (const LayerForm& form : kLayerForms) {
    if (class_name == form.class_name) return from_layer(form, config);
  }
  try {
    return activations::get(class_name, config);
  } catch (const ValueError&) {
    throw NotImplementedError(
        "activation: an object of class ", class_name,
        " is not supported; use the name of a function, or add a layer of that class");
  }
}

}  // namespace

Activation::Activation(const char* name) : Activation(std::string(name)) {}
Activation::Activation(const std::string& name) : Activation(activations::get(name)) {}
Activation::Activation(std::string name, Function function)
    : Activation(std::move(name), Config::dict(), std::move(function)) {}
Activation::Activation(std::string name, Config arguments, Function function)
    : name_(std::move(name)), arguments_(std::move(arguments)), function_(std::move(function)) {}

Config encode(const Activation& activation) {
  if (activation.arguments().entries().empty()) return activation.name();
  for (const LayerForm& form : kLayerForms) {
    if (activation.name() != form.function) continue;
    return layer_object("keras.layers", form.class_name, activation.arguments());
  }
  if (activation.name() == kHardSigmoid) {
    return hard_sigmoid_model(activation.arguments()["slope"].number());
  }
  return Config::dict({{"class_name", activation.name()}, {"config", activation.arguments()}});
}

void decode(const Config& config, Activation& activation) {
  if (config.is_null()) {
    activation = "linear";
  } else if (config.is_dict()) {
    const Config* inner = config.find("config");
    activation = from_object(config["class_name"].string(),
                             inner == nullptr || inner->is_null() ? Config::dict() : *inner);
  } else {
    activation = Activation(config.string());
  }
}

namespace activations {

Activation get(const std::string& name) { return get(name, Config::dict()); }

Activation get(const std::string& name, const Config& arguments) {
  Maker maker;
  {
    KnownFunctions& all = known();
    const std::lock_guard lock(all.mutex);
    const auto it = all.makers.find(name);
    if (it == all.makers.end()) {
      throw ValueError("activation: unknown name '", name,
                       "'; register your own function with activations::add");
    }
    maker = it->second;
  }
  Activation out(name, arguments, maker(arguments));
  out.is_known_ = true;
  return out;
}

void add(const std::string& name, Activation::Function function) {
  KnownFunctions& all = known();
  const std::lock_guard lock(all.mutex);
  const auto maker = [name, function = std::move(function)](const Config& config) {
    from_config<NoArguments>(config, "activation " + name);
    return function;
  };
  if (!all.makers.emplace(name, maker).second) {
    throw ValueError("activations::add: the name '", name, "' is taken; choose another name");
  }
}

std::vector<std::string> names() {
  KnownFunctions& all = known();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> out;
  for (const auto& [name, maker] : all.makers) out.push_back(name);
  return out;
}

}  // namespace activations
}  // namespace keel

#include <keel/savedmodel/keras/internal/keras_model_config.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>
#include <set>

#include <keel/framework/base/internal/unpack_limit.h>
#include <keel/layers/internal/shared_layers.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/keras/dialect/keras1_dialect.h>
#include <keel/savedmodel/keras/dialect/keras_dialect.h>

namespace keel {
namespace {

bool is_object(const Config& config) {
  if (!config.is_dict()) return false;
  const Config* const class_name = config.find("class_name");
  return class_name != nullptr && class_name->is_string() && config.find("config") != nullptr;
}

bool is_one_of(const std::string& name, const auto& names) {
  return std::ranges::find(names, name) != std::end(names);
}

// Returns an object of a class that is not a layer. Keras has all built-in classes of this kind.
Config object_of_keras(const Config& value, const char* kind) {
  return to_keras_object({.package = "keras"}, kind, value["class_name"].string(), value["config"]);
}

Config layer_object(const Config& layer);

bool is_layer(const Config& value) {
  if (!is_object(value)) return false;
  const std::string& class_name = value["class_name"].string();
  return absl::StrContains(class_name, '>') ||
         is_one_of(class_name, layer_registry().class_names());
}

// Converts a value in the config of a layer.
Config value_object(const std::string& key, const Config& value) {
  if (value.is_list()) {
    Config::List out;
    for (const Config& item : value.items()) out.push_back(value_object(key, item));
    return out;
  }
  if (!is_object(value)) return value;
  for (const char* kind : {"initializer", "regularizer", "constraint"}) {
    if (key.ends_with(kind)) return object_of_keras(value, absl::StrCat(kind, "s").c_str());
  }
  return is_layer(value) ? layer_object(value) : value;
}

// Unwraps a single input or output, which Keras 3 does not put into a list.
Config unwrapped(const Config& ends) {
  const bool single = ends.is_list() && ends.items().size() == 1 && ends.items()[0].is_list();
  return single ? ends.items()[0] : ends;
}

Config functional_config(const Config& config) {
  Config out = config;
  Config::List layers;
  for (const Config& entry : config["layers"].items()) {
    Config layer = layer_object(entry);
    layer.set("name", entry["name"]);
    layer.set("inbound_nodes", entry["inbound_nodes"]);
    layers.push_back(std::move(layer));
  }
  out.set("layers", std::move(layers));
  for (const char* key : {"input_layers", "output_layers"}) out.set(key, unwrapped(config[key]));
  return out;
}

Config input_config(const Config& config) {
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) {
    out.set(key == "batch_input_shape" ? "batch_shape" : key, value);
  }
  return out;
}

Config unshared_object(const Config& layer) {
  const std::string& class_name = layer["class_name"].string();
  const Config& config = layer["config"];
  const ClassTraits traits = layer_registry().traits(class_name);
  if (class_name == "Functional") {
    Config out =
        to_keras_object(traits, "src.models.functional", class_name, functional_config(config));
    out.set("registered_name", class_name);
    return out;
  }
  if (class_name == "InputLayer") {
    return to_keras_object(traits, "layers", class_name, input_config(config));
  }
  Config values = Config::dict();
  for (const auto& [key, value] : config.entries()) values.set(key, value_object(key, value));
  Config out = to_keras_object(traits, "layers", class_name, std::move(values));
  if (class_name == "Sequential") out.set("module", "keras");
  return out;
}

Config layer_object(const Config& layer) {
  Config out = unshared_object(layer);
  const Config* const number = layer.find(kSharedObjectId);
  if (number != nullptr) out.set(kSharedObjectId, *number);
  return out;
}

// Converts the encodings of values in files to plain values, and class names to those used here.
class Plain {
 public:
  explicit Plain(const ModelFromKerasOptions& options) : options_(options) {}

  Config operator()(const Config& config) const {
    if (config.is_list()) {
      Config::List out;
      for (const Config& item : config.items()) out.push_back((*this)(item));
      return out;
    }
    if (!config.is_dict()) return config;
    if (const Config* const tag = config.find("class_name"); tag != nullptr && tag->is_string()) {
      if (tag->string().starts_with("__")) return untagged(tag->string(), config);
      if (tag->string() == "Lambda")
        return plain_layer(config, {"function", "mask", "output_shape"});
      if (tag->string() == "Operator") return plain_layer(config, {"arguments"});
    }
    if (const Config* const array = numpy_array_of_keras2(config)) return *array;
    return plain_dict(config);
  }

 private:
  // Returns the value of a NumPy array, which Keras 2 writes with its type, e.g. the alpha of early
  // LeakyReLU layers.
  static const Config* numpy_array_of_keras2(const Config& config) {
    const Config* const type = config.find("type");
    const bool is_it =
        type != nullptr && *type == Config("ndarray") && config.entries().size() == 2;
    return is_it ? config.find("value") : nullptr;
  }

  Config plain_dict(const Config& config) const {
    Config out = Config::dict();
    for (const auto& [key, value] : config.entries()) {
      // These keys of a graph are converted by the reader of graphs.
      const bool graph = key == "inbound_nodes" || key == "input_layers" || key == "output_layers";
      out.set(key, graph ? value : (*this)(value));
    }
    if (is_object(config)) out.set("class_name", registered_class(config));
    return renamed(std::move(out));
  }

  // Converts ThresholdedReLU of Keras 2 to ReLU with a threshold.
  static Config renamed(Config object) {
    const Config* const class_name = object.find("class_name");
    if (class_name == nullptr || *class_name != Config("ThresholdedReLU")) return object;
    Config config = Config::dict();
    for (const auto& [key, value] : object["config"].entries()) {
      config.set(key == "theta" ? "threshold" : key, value);
    }
    object.set("class_name", "ReLU");
    object.set("config", std::move(config));
    return object;
  }

  // Converts a layer except for values that the layer reads itself: the functions of a Lambda,
  // which it looks up by name so that their Python code is never run, and the arguments of an
  // Operator.
  Config plain_layer(const Config& layer, const std::set<std::string>& unchanged) const {
    const Config* const own = layer.find("config");
    if (own == nullptr || !own->is_dict()) return plain_dict(layer);
    Config values = Config::dict();
    for (const auto& [key, value] : own->entries()) {
      values.set(key, unchanged.contains(key) ? value : (*this)(value));
    }
    Config out = layer;
    out.erase("config");
    out = plain_dict(out);
    out.set("config", std::move(values));
    return out;
  }

  void refuse_lambda(const std::string& class_name) const {
    if (class_name != "__lambda__") return;
    if (options_.safe_mode) {
      throw ValueError("a Python lambda is in the config (", class_name,
                       "), which is unsafe because it may run any code; use a layer or a named "
                       "activation instead");
    }
    throw NotImplementedError(
        "a Python lambda is in the config (", class_name,
        "), which cannot run here; use a layer or a named activation instead");
  }

  Config untagged(const std::string& tag, const Config& config) const {
    refuse_lambda(tag);
    if (tag == "__tuple__") return (*this)(config["items"]);
    if (tag == "__numpy__" || tag == "__tensor__") return config["config"]["value"];
    if (tag == "__bytes__") return config["value"];
    throw NotImplementedError("model config: values of type ", tag, " are not supported");
  }

  // Returns the registered name of a custom class, "Package>Class".
  static std::string registered_class(const Config& object) {
    const std::string& class_name = object["class_name"].string();
    const Config* const registered = object.find("registered_name");
    if (registered == nullptr || !registered->is_string()) return class_name;
    const std::string& full = registered->string();
    if (!absl::StrContains(full, '>')) return class_name;
    const std::vector<std::string> known = layer_registry().class_names();
    return is_one_of(class_name, known) && !is_one_of(full, known) ? class_name : full;
  }

  const ModelFromKerasOptions options_;
};

Specs specs_of_shapes(const Config& shapes) {
  if (shapes.is_dict()) {
    Specs::Dict out;
    for (const auto& [key, shape] : shapes.entries()) out.emplace(key, specs_of_shapes(shape));
    return out;
  }
  const bool several = !shapes.items().empty() && shapes.items()[0].is_list();
  if (several) {
    Specs::Items out;
    for (const Config& shape : shapes.items()) out.push_back(specs_of_shapes(shape));
    return Specs::list(std::move(out));
  }
  TensorSpec spec;
  decode(shapes, spec.shape);
  return Specs(spec);
}

// Builds a model from the input shape in its config. Models that are not graphs, and a Sequential
// without an InputLayer, store their input in this way.
void build(Model& model, const Config& config) {
  if (model.built()) return;
  const Config* shapes = nullptr;
  if (config["config"].is_dict()) shapes = config["config"].find("build_input_shape");
  const Config* const build_config = config.find("build_config");
  if (shapes == nullptr && build_config != nullptr && build_config->is_dict()) {
    shapes = build_config->find("input_shape");
    if (shapes == nullptr) shapes = build_config->find("shapes_dict");
  }
  if (shapes == nullptr || !(shapes->is_list() || shapes->is_dict())) return;
  model.build(specs_of_shapes(*shapes));
}

// Returns true if the reader of legacy files in Keras 3 misreads the layer: it takes "dot" for a
// function, does not know a class by its exported name, or drops an axis that is not a number.
bool is_misread(const std::string& class_name, const Config& config) {
  if (class_name == "Attention" || class_name == "GroupQueryAttention") return true;
  const Config* const axis = config.find("axis");
  return axis != nullptr && (axis->is_null() || (axis->is_list() && axis->items().size() > 1));
}

Config legacy_layer(const Config& layer);

// Converts a layer of a Sequential. Keras 3 passes the list of a model's outputs to the next layer
// unchanged, so a nested model must output a tensor instead of a list.
Config legacy_layer_of_sequential(const Config& layer) {
  Config out = legacy_layer(layer);
  if (layer["class_name"] != Config("Functional")) return out;
  Config config = out["config"];
  for (const char* key : {"input_layers", "output_layers"}) config.set(key, unwrapped(config[key]));
  out.set("config", std::move(config));
  return out;
}

Config sublayers_in_archive_form(const Config& value) {
  if (!value.is_list()) return is_layer(value) ? layer_object(value) : value;
  Config::List out;
  for (const Config& item : value.items()) out.push_back(sublayers_in_archive_form(item));
  return out;
}

Config legacy_values(const std::string& class_name, const Config& config) {
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) {
    const bool is_model = class_name == "Functional" || class_name == "Sequential";
    if (is_model && key == "layers" && value.is_list()) {
      Config::List layers;
      for (const Config& layer : value.items()) {
        layers.push_back(class_name == "Sequential" ? legacy_layer_of_sequential(layer)
                                                    : legacy_layer(layer));
      }
      out.set(key, std::move(layers));
    } else {
      // Keras reads sublayers in the form of archives from both kinds of files.
      out.set(key, sublayers_in_archive_form(value));
    }
  }
  return out;
}

Config legacy_layer(const Config& layer) {
  const std::string& class_name = layer["class_name"].string();
  const Config& config = layer["config"];
  if (!config.is_dict()) return layer;
  Config out = layer;
  if (is_misread(class_name, config)) {
    const Config object = layer_object(layer);
    for (const auto& [key, value] : object.entries()) out.set(key, value);
    return out;
  }
  if (layer_registry().traits(class_name).package == "keras_rs") {
    out.set("class_name", "keras_rs>" + class_name);
  }
  out.set("config", legacy_values(class_name, config));
  return out;
}

}  // namespace

Config to_keras_legacy(const Model& model) {
  return legacy_layer(
      Config::dict({{"class_name", model.class_name()}, {"config", model.get_config()}}));
}

size_t most_bytes_of_model(const std::string& path) {
  return 2 * most_unpacked_bytes(std::filesystem::file_size(path));
}

Config to_keras_archive(const Model& model) { return layer_object(layers::serialize(model)); }

Config to_keras_archive(const Config& layer) { return layer_object(layer); }

Config plain_config(const Config& config, const ModelFromKerasOptions& options) {
  return without_slashes_in_names(Plain(options)(config));
}

ModelHandle model_from_keras(const Config& config, const ModelFromKerasOptions& options) {
  Config plain = Plain(options)(config);
  if (records_default_training(options.keras_version, config)) plain = without_training(plain);
  const bool is_old = is_of_keras2(options.keras_version, config);
  if (is_old) plain = from_keras1(plain);
  plain = without_slashes_in_names(plain);
  if (is_old) plain = from_keras2(plain);
  const LayerHandle<Layer> layer = layers::deserialize(plain);
  const auto model = std::dynamic_pointer_cast<Model>(layer.shared());
  if (model == nullptr) {
    throw ValueError("class ", layer->class_name(), " is not a model; ",
                     layer->class_name() == "FeatureSpace"
                         ? "call load_feature_space()"
                         : "pass the config of a Functional or Sequential model");
  }
  build(*model, plain);
  return {kAdopt, model};
}

}  // namespace keel

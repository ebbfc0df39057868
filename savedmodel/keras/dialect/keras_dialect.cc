#include <keel/savedmodel/keras/dialect/keras_dialect.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace keel {
namespace {

// Returns true if is_it is true for any dict in the config.
template <class IsIt>
bool any_dict(const Config& config, const IsIt& is_it) {
  if (config.is_list()) {
    return std::ranges::any_of(config.items(), [&](const Config& c) { return any_dict(c, is_it); });
  }
  if (!config.is_dict()) return false;
  return is_it(config) || std::ranges::any_of(config.entries(), [&](const auto& entry) {
           return any_dict(entry.second, is_it);
         });
}

// Returns true for files of earlier releases of this library, which wrote version 2.15.0 but used
// the functions of Keras 3. All their models have InputLayers without "sparse", which Keras 2
// always writes.
bool is_of_earlier_release(const std::string& version, const Config& config) {
  return version == "2.15.0" && any_dict(config, [](const Config& dict) {
           const Config* const class_name = dict.find("class_name");
           const Config* const own = dict.find("config");
           return class_name != nullptr && *class_name == Config("InputLayer") && own != nullptr &&
                  own->is_dict() && own->find("sparse") == nullptr;
         });
}

// Returns true for a call in a graph of Keras 3.
bool is_call(const Config& dict) {
  const Config* const arguments = dict.find("args");
  const Config* const keywords = dict.find("kwargs");
  return arguments != nullptr && arguments->is_list() && keywords != nullptr && keywords->is_dict();
}
bool has_bool_training(const Config& call) {
  const Config* const training = call["kwargs"].find("training");
  return training != nullptr && training->is_bool();
}

bool is_hard_sigmoid(const Config& activation) {
  if (activation == Config("hard_sigmoid")) return true;
  if (!activation.is_dict()) return false;
  const Config* const class_name = activation.find("class_name");
  const Config* const config = activation.find("config");
  return class_name != nullptr && *class_name == Config("function") && config != nullptr &&
         *config == Config("hard_sigmoid");
}

Config old_hard_sigmoid() {
  return Config::dict({{"class_name", "hard_sigmoid"}, {"config", Config::dict({{"slope", 0.2}})}});
}

}  // namespace

bool is_of_keras2(const std::string& version, const Config& model_config) {
  int major = 0;
  const char* const end = version.data() + version.size();
  if (std::from_chars(version.data(), end, major).ec != std::errc()) {
    // Keras 3 writes a module for each object, at least for initializers and dtypes.
    return !any_dict(model_config,
                     [](const Config& dict) { return dict.find("module") != nullptr; });
  }
  return major < 3 && !is_of_earlier_release(version, model_config);
}

bool has_training(const Config& config) {
  return any_dict(config,
                  [](const Config& dict) { return is_call(dict) && has_bool_training(dict); });
}

bool is_keras_3_16_or_later(const std::string& version) {
  int major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return false;
  return std::from_chars(dot + 1, end, minor).ec == std::errc() &&
         (major > 3 || (major == 3 && minor >= 16));
}

bool records_default_training(const std::string& version, const Config& model_config) {
  if (version.ends_with(kExplicitTraining) || is_of_keras2(version, model_config)) return false;
  // to_json() of Keras 3 writes no version; to_json() here does if a value means something.
  return version.empty() || (version.starts_with('3') && !is_keras_3_16_or_later(version));
}

Config without_training(const Config& config) {
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) out.push_back(without_training(item));
    return out;
  }
  if (!config.is_dict()) return config;
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) out.set(key, without_training(value));
  if (!is_call(out) || !has_bool_training(out)) return out;
  Config keywords = out["kwargs"];
  keywords.erase("training");
  out.set("kwargs", std::move(keywords));
  return out;
}

std::string keras_version_of(const Hdf5File& file) {
  for (const char* group : {"/", "/model_weights"}) {
    if (file.has(group) && file.has_attribute(group, "keras_version")) {
      return file.string_attribute(group, "keras_version");
    }
  }
  return {};
}

Config from_keras2(const Config& config) {
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) out.push_back(from_keras2(item));
    return out;
  }
  if (!config.is_dict()) return config;
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) {
    const bool old = key.ends_with("activation") && is_hard_sigmoid(value);
    out.set(key, old ? old_hard_sigmoid() : from_keras2(value));
  }
  const Config* const class_name = out.find("class_name");
  const Config* const own = out.find("config");
  const bool is_gru =
      class_name != nullptr && (*class_name == Config("GRU") || *class_name == Config("GRUCell"));
  if (is_gru && own != nullptr && own->is_dict() && own->find("reset_after") == nullptr) {
    Config filled = *own;
    filled.set("reset_after", false);
    out.set("config", std::move(filled));
  }
  return out;
}

namespace {

using Names = std::map<std::string, std::string>;  // from names in the file to new names

const std::string* name_of(const Config& layer) {
  const Config* name = layer.is_dict() ? layer.find("name") : nullptr;
  if (name == nullptr || !name->is_string()) {
    const Config* const own = layer.is_dict() ? layer.find("config") : nullptr;
    name = own != nullptr && own->is_dict() ? own->find("name") : nullptr;
  }
  return name != nullptr && name->is_string() ? &name->string() : nullptr;
}

bool has_slash(const std::string& name) { return absl::StrContains(name, '/'); }

Names names_of(const Config::List& layers) {
  std::set<std::string> taken;
  for (const Config& layer : layers) {
    if (const std::string* const name = name_of(layer)) taken.insert(*name);
  }
  Names out;
  for (const Config& layer : layers) {
    const std::string* const name = name_of(layer);
    if (name == nullptr || !has_slash(*name)) continue;
    const std::string plain = plain_name(*name);
    std::string free = plain;
    for (int i = 1; !taken.insert(free).second; ++i) free = absl::StrCat(plain, "_", i);
    out.emplace(*name, std::move(free));
  }
  return out;
}

// Replaces the names everywhere in a graph. References contain no other strings that match them.
Config renamed(const Config& graph, const Names& names) {
  if (graph.is_string()) {
    const auto it = names.find(graph.string());
    return it == names.end() ? graph : Config(it->second);
  }
  if (graph.is_list()) {
    Config::List out;
    for (const Config& item : graph.items()) out.push_back(renamed(item, names));
    return out;
  }
  if (!graph.is_dict()) return graph;
  Config out = Config::dict();
  for (const auto& [key, value] : graph.entries()) out.set(key, renamed(value, names));
  return out;
}

Config with_plain_layers(const Config& config);

Config renamed_layer(const Config& layer, const Names& names) {
  Config out = with_plain_layers(layer);
  if (!out.is_dict()) return out;
  if (const Config* const name = out.find("name")) out.set("name", renamed(*name, names));
  if (const Config* const nodes = out.find("inbound_nodes")) {
    out.set("inbound_nodes", renamed(*nodes, names));
  }
  const Config* const own = out.find("config");
  const Config* const name = own != nullptr && own->is_dict() ? own->find("name") : nullptr;
  if (name != nullptr) {
    Config config = *own;
    config.set("name", renamed(*name, names));
    out.set("config", std::move(config));
  }
  return out;
}

Config::List renamed_layers(const Config::List& layers, const Names& names) {
  Config::List out;
  for (const Config& layer : layers) out.push_back(renamed_layer(layer, names));
  return out;
}

Config with_plain_layers(const Config& config) {
  if (!config.is_dict()) return config;
  Config out = config;
  const Config* const own = config.find("config");
  if (own == nullptr) return out;
  if (own->is_list()) {  // a Sequential of Keras before 2.2.3
    out.set("config", renamed_layers(own->items(), names_of(own->items())));
    return out;
  }
  const Config* const layers = own->is_dict() ? own->find("layers") : nullptr;
  if (layers == nullptr || !layers->is_list()) return out;
  const Names names = names_of(layers->items());
  Config model = *own;
  model.set("layers", renamed_layers(layers->items(), names));
  for (const char* key : {"input_layers", "output_layers"}) {
    if (const Config* const ends = own->find(key)) model.set(key, renamed(*ends, names));
  }
  out.set("config", std::move(model));
  return out;
}

}  // namespace

std::string plain_name(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name;
}

Config without_slashes_in_names(const Config& config) {
  Config out = with_plain_layers(config);
  const Config* const own = out.is_dict() ? out.find("config") : nullptr;
  const std::string* const name = own != nullptr && own->is_dict() ? name_of(*own) : nullptr;
  if (name == nullptr || !has_slash(*name)) return out;
  Config model = *own;
  model.set("name", plain_name(*name));
  out.set("config", std::move(model));
  return out;
}

}  // namespace keel

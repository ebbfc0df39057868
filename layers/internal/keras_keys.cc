#include <keel/layers/internal/keras_keys.h>

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <vector>

#include <keel/layers/internal/refused_arguments.h>

namespace keel {
namespace {

// A key with the default value at which it can be dropped, or any value if the key has no effect.
struct Key {
  std::string name;
  Config usual = {};
  bool any = false;
};

// Parses ClassTraits::ignored_keys.
std::vector<Key> parse_keys(const std::string& text) {
  std::vector<Key> out;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::string item(absl::StripLeadingAsciiWhitespace(part));
    const size_t equals = item.find('=');
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    Key key{.name = item.substr(0, equals), .any = value == "*"};
    if (!key.any) key.usual = parse_json(value);
    out.push_back(std::move(key));
  }
  return out;
}

// Renamed keys of Keras 1 and 2.
struct OldName {
  const char *class_name, *before, *now;
};
constexpr OldName kOldNames[] = {{"CategoryEncoding", "max_tokens", "num_tokens"},
                                 {"Discretization", "bins", "bin_boundaries"},
                                 {"InputLayer", "batch_input_shape", "batch_shape"},
                                 {"InputLayer", "input_dtype", "dtype"},
                                 {"LeakyReLU", "alpha", "negative_slope"},
                                 {"ReLU", "theta", "threshold"}};

std::string name_in(const Config& config) {
  const Config* const name = config.find("name");
  return name != nullptr && name->is_string() ? name->string() : "";
}

// Keys that older versions of Keras reject, whatever their values. They are written only if they
// have an effect.
struct NewKey {
  const char *class_name, *key, *usual;
};
constexpr NewKey kNewKeys[] = {{"BatchNormalization", "synchronized", "false"},
                               {"BatchNormalization", "renorm", "false"},
                               {"Dense", "quantization_config", "null"},
                               {"EinsumDense", "quantization_config", "null"},
                               {"GroupQueryAttention", "sliding_window", "null"},
                               {"GroupQueryAttention", "use_gate", "false"},
                               {"IntegerLookup", "oov_method", "\"floormod\""},
                               {"IntegerLookup", "salt", "null"},
                               {"MultiHeadAttention", "sliding_window", "null"},
                               {"MultiHeadAttention", "use_gate", "false"},
                               {"StringLookup", "oov_method", "\"floormod\""},
                               {"StringLookup", "salt", "null"}};

void drop_new_keys(const std::string& class_name, Config& config) {
  for (const NewKey& entry : kNewKeys) {
    const Config* const found = class_name == entry.class_name ? config.find(entry.key) : nullptr;
    if (found != nullptr && *found == parse_json(entry.usual)) config.erase(entry.key);
  }
  if (class_name == "BatchNormalization" && config.find("renorm") == nullptr) {
    config.erase("renorm_clipping");
    config.erase("renorm_momentum");
  }
}

void drop(const std::vector<Key>& keys, const std::string& class_name, Config& config) {
  for (const Key& key : keys) {
    const Config* const found = config.find(key.name);
    if (found == nullptr) continue;
    if (!key.any && !found->is_null() && *found != key.usual) {
      const std::string why = why_refused(class_name, key.name);
      throw NotImplementedError(
          class_name, " ", name_in(config), ": '", key.name, "' = ", to_json(*found),
          " is not supported; ",
          why.empty() ? "set it to its default in the file, or build the model in C++" : why);
    }
    config.erase(key.name);
  }
}

// Renames a key and keeps its position.
void rename(Config& config, const std::string& from, const std::string& to) {
  Config::Dict entries = config.entries();
  for (auto& [key, value] : entries) {
    if (key == from) key = to;
  }
  config = Config(std::move(entries));
}

}  // namespace

std::string class_from_keras(const std::string& class_name) {
  // Files of keras_rs also name the package; the classes are the same.
  constexpr std::string_view kPackage = "keras_rs>";
  if (class_name.starts_with(kPackage)) return class_name.substr(kPackage.size());
  // Legacy files use the name of the class in Keras's source.
  if (class_name == "GroupedQueryAttention") return "GroupQueryAttention";
  return class_name == "ThresholdedReLU" ? "ReLU" : class_name;
}

Config from_keras(const std::string& class_name, const std::string& ignored_keys, Config config) {
  // A class "Package>Class" is user code, which defines its own keys.
  if (absl::StrContains(class_name, '>') || !config.is_dict()) return config;
  for (const OldName& old : kOldNames) {
    if (class_name == old.class_name && config.find(old.now) == nullptr) {
      rename(config, old.before, old.now);
    }
  }
  // Keras before 2.6 uses these names of modes.
  const Config* const mode = config.find("output_mode");
  if (mode != nullptr && *mode == Config("binary")) config.set("output_mode", "multi_hot");
  if (mode != nullptr && *mode == Config("tf-idf")) config.set("output_mode", "tf_idf");
  // Keras writes bfloat16 for the input of a Sequential whose first layer is mixed_bfloat16.
  // Tensors are float32 here.
  const Config* const dtype = config.find("dtype");
  if (class_name == "InputLayer" && dtype != nullptr && *dtype == Config("bfloat16")) {
    config.set("dtype", "float32");
  }
  drop(parse_keys(ignored_keys), class_name, config);
  // The shape of the input, which Keras 2 writes into the first layer of a Sequential.
  config.erase("batch_input_shape");
  // If the regularizer is set, the layer class itself accepts or rejects it.
  const Config* const regularizer = config.find("activity_regularizer");
  if (regularizer != nullptr && regularizer->is_null()) config.erase("activity_regularizer");
  return config;
}

Config to_keras(const std::string& class_name, Config config) {
  // Keras's constructors of these classes reject the key `trainable`.
  if (class_name == "Discretization" || class_name.starts_with("SpatialDropout")) {
    config.erase("trainable");
  }
  drop_new_keys(class_name, config);
  if (class_name != "InputLayer") return config;
  rename(config, "batch_shape", "batch_input_shape");
  for (const char* key : {"sparse", "ragged"}) {
    const Config* const found = config.find(key);
    if (found != nullptr && found->is_bool() && !found->boolean()) config.erase(key);
  }
  return config;
}

}  // namespace keel

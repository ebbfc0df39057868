#include <keel/layers/internal/keras_keys.h>

#include <map>
#include <vector>

namespace keel {
namespace {

// A key with the default value at which it can be dropped, or any value if the key has no effect.
struct Key {
  const char* name;
  Config usual = {};
  bool any = false;
};
using Keys = std::vector<Key>;

Key unset(const char* name) { return {.name = name}; }
Key is(const char* name, Config usual) { return {.name = name, .usual = std::move(usual)}; }
Key any(const char* name) { return {.name = name, .any = true}; }

using KeysOfClasses = std::map<std::string, Keys>;

// The keys of the classes for which Keras writes more than the keys common to all classes.
const KeysOfClasses& keys_of_classes() {
  static const KeysOfClasses kKeys = {
      {"AdditiveAttention", {is("causal", false)}},
      {"Attention", {is("causal", false)}},
      {"BatchNormalization",
       {is("synchronized", false), is("renorm", false), unset("renorm_clipping"),
        any("renorm_momentum"), unset("virtual_batch_size"), unset("adjustment"), any("fused")}},
      {"CategoryEncoding", {is("sparse", false)}},
      {"Dense", {unset("lora_rank"), unset("lora_alpha"), unset("quantization_config")}},
      {"DepthwiseConv1D", {is("groups", 1)}},
      {"Discretization", {is("sparse", false)}},
      {"EinsumDense",
       {unset("lora_rank"), unset("lora_alpha"), unset("gptq_unpacked_column_size"),
        unset("quantization_config")}},
      {"EmbedReduce",
       {any("input_length"), unset("lora_rank"), unset("lora_alpha"), unset("quantization_config"),
        is("sparse", false)}},
      // A quantization_config describes how quantize() computes the codes. It does not affect their
      // meaning.
      {"Embedding",
       {any("input_length"), unset("lora_rank"), unset("lora_alpha"), any("quantization_config"),
        is("sparse", false)}},
      {"GRU", {any("implementation"), is("time_major", false), any("use_cudnn")}},
      {"GRUCell", {any("implementation")}},
      {"GroupQueryAttention",
       {unset("flash_attention"), is("use_gate", false), unset("sliding_window")}},
      {"Hashing", {is("sparse", false)}},
      {"InputLayer", {is("optional", false), any("trainable"), unset("input_tensor")}},
      {"IntegerLookup",
       {is("sparse", false), any("vocabulary_dtype"), any("vocabulary_size"),
        any("has_input_vocabulary")}},
      {"LSTM", {any("implementation"), is("time_major", false), any("use_cudnn")}},
      {"LSTMCell", {any("implementation")}},
      {"MultiHeadAttention",
       {unset("flash_attention"), is("use_gate", false), unset("sliding_window"),
        any("query_shape"), any("key_shape"), any("value_shape")}},
      {"SeparableConv1D",
       {is("groups", 1), any("kernel_initializer"), unset("kernel_regularizer"),
        unset("kernel_constraint")}},
      {"SimpleRNN", {any("implementation"), is("time_major", false)}},
      {"SimpleRNNCell", {any("implementation")}},
      {"SpatialDropout1D", {unset("noise_shape")}},
      {"StringLookup",
       {is("sparse", false), any("vocabulary_dtype"), any("vocabulary_size"),
        any("has_input_vocabulary"), is("encoding", "utf-8")}},
  };
  return kKeys;
}

const Keys& keys_of_every_class() {
  // The shape of the input, which Keras 2 writes into the first layer of a Sequential.
  static const Keys kKeys = {any("batch_input_shape")};
  return kKeys;
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

void drop(const Keys& keys, const std::string& class_name, Config& config) {
  for (const Key& key : keys) {
    const Config* const found = config.find(key.name);
    if (found == nullptr) continue;
    if (!key.any && !found->is_null() && *found != key.usual) {
      throw NotImplementedError(class_name, " ", name_in(config), ": '", key.name,
                                "' = ", to_json(*found), " is not supported");
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

Config from_keras(const std::string& class_name, Config config) {
  // A class "Package>Class" is user code, which defines its own keys.
  if (class_name.find('>') != std::string::npos || !config.is_dict()) return config;
  if (class_name == "Lambda") {
    throw NotImplementedError(
        "Lambda ", name_in(config),
        ": Python code cannot be run; write a C++ layer class and register it under this name");
  }
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
  const auto it = keys_of_classes().find(class_name);
  if (it != keys_of_classes().end()) drop(it->second, class_name, config);
  drop(keys_of_every_class(), class_name, config);
  // If the regularizer is set, the layer class itself accepts or rejects it.
  const Config* const regularizer = config.find("activity_regularizer");
  if (regularizer != nullptr && regularizer->is_null()) config.erase("activity_regularizer");
  return config;
}

Config to_keras(const std::string& class_name, Config config) {
  // Keras's constructors of these classes reject the key `trainable`.
  if (class_name == "Discretization" || class_name == "SpatialDropout1D") config.erase("trainable");
  if (class_name == "StringLookup" || class_name == "IntegerLookup") {
    // Keras before 3.14 rejects these keys, whatever their values.
    const Config* const method = config.find("oov_method");
    if (method != nullptr && *method == Config("floormod")) config.erase("oov_method");
    const Config* const salt = config.find("salt");
    if (salt != nullptr && salt->is_null()) config.erase("salt");
  }
  if (class_name != "InputLayer") return config;
  rename(config, "batch_shape", "batch_input_shape");
  for (const char* key : {"sparse", "ragged"}) {
    const Config* const found = config.find(key);
    if (found != nullptr && found->is_bool() && !found->boolean()) config.erase(key);
  }
  return config;
}

}  // namespace keel

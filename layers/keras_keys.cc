#include "layers/keras_keys.h"

#include <map>
#include <vector>

namespace keel {
namespace {

// A key and the value at which it means nothing; or any value, if it never means anything.
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

// Of the classes for which Keras writes more than the keys of every class.
const KeysOfClasses& keys_of_classes() {
  static const KeysOfClasses kKeys = {
      {"BatchNormalization",
       {unset("beta_regularizer"), unset("gamma_regularizer"), unset("beta_constraint"),
        unset("gamma_constraint"), is("synchronized", false), is("renorm", false),
        unset("renorm_clipping"), any("renorm_momentum"), unset("virtual_batch_size"),
        unset("adjustment"), any("fused")}},
      {"Dense", {unset("lora_rank"), unset("lora_alpha"), unset("quantization_config")}},
      {"Discretization", {is("sparse", false)}},
      {"Dropout", {unset("noise_shape")}},
      {"EmbedReduce",
       {unset("embeddings_regularizer"), unset("embeddings_constraint"), any("input_length"),
        unset("lora_rank"), unset("lora_alpha"), unset("quantization_config"),
        is("sparse", false)}},
      {"Embedding",
       {any("input_length"), unset("lora_rank"), unset("lora_alpha"), unset("quantization_config"),
        is("sparse", false)}},
      {"FeatureCross", {unset("kernel_regularizer"), unset("bias_regularizer")}},
      {"Flatten", {is("data_format", "channels_last")}},
      {"Hashing", {is("sparse", false)}},
      {"InputLayer", {is("optional", false), any("trainable"), unset("input_tensor")}},
      {"IntegerLookup",
       {unset("idf_weights"), is("sparse", false), is("pad_to_max_tokens", false),
        any("vocabulary_dtype"), any("vocabulary_size")}},
      {"LayerNormalization",
       {unset("beta_regularizer"), unset("gamma_regularizer"), unset("beta_constraint"),
        unset("gamma_constraint"), is("rms_scaling", false)}},
      {"StringLookup",
       {unset("idf_weights"), is("sparse", false), is("pad_to_max_tokens", false),
        any("vocabulary_dtype"), any("vocabulary_size"), is("encoding", "utf-8")}},
  };
  return kKeys;
}

const Keys& keys_of_every_class() {
  // The shape is the input's, which Keras 2 wrote into the first layer of a Sequential.
  static const Keys kKeys = {any("batch_input_shape")};
  return kKeys;
}

void drop(const Keys& keys, const std::string& class_name, Config& config) {
  for (const Key& key : keys) {
    const Config* const found = config.find(key.name);
    if (found == nullptr) continue;
    if (!key.any && !found->is_null() && *found != key.usual) {
      const Config* const name = config.find("name");
      throw NotImplementedError(class_name, " ",
                                name != nullptr && name->is_string() ? name->string() : "", ": '",
                                key.name, "' of ", to_json(*found), " is not offered");
    }
    config.erase(key.name);
  }
}

// Gives a key another name and leaves its place.
void rename(Config& config, const std::string& from, const std::string& to) {
  Config::Dict entries = config.entries();
  for (auto& [key, value] : entries) {
    if (key == from) key = to;
  }
  config = Config(std::move(entries));
}

}  // namespace

Config from_keras(const std::string& class_name, Config config) {
  // "Package>Class" is a user's own, whose keys are its own affair.
  if (class_name.find('>') != std::string::npos || !config.is_dict()) return config;
  if (class_name == "InputLayer" && config.find("batch_shape") == nullptr) {
    rename(config, "batch_input_shape", "batch_shape");
  }
  const auto it = keys_of_classes().find(class_name);
  if (it != keys_of_classes().end()) drop(it->second, class_name, config);
  drop(keys_of_every_class(), class_name, config);
  // Where it is set, it is for the class to know it.
  const Config* const regularizer = config.find("activity_regularizer");
  if (regularizer != nullptr && regularizer->is_null()) config.erase("activity_regularizer");
  return config;
}

Config to_keras(const std::string& class_name, Config config) {
  if (class_name != "InputLayer") return config;
  rename(config, "batch_shape", "batch_input_shape");
  for (const char* key : {"sparse", "ragged"}) {
    const Config* const found = config.find(key);
    if (found != nullptr && found->is_bool() && !found->boolean()) config.erase(key);
  }
  return config;
}

}  // namespace keel

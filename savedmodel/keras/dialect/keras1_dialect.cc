#include <keel/savedmodel/keras/dialect/keras1_dialect.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace keel {
namespace {

using NameTable = std::map<std::string, std::string, std::less<>>;

const Config* text_at(const Config& dict, const char* key) {
  const Config* const found = dict.is_dict() ? dict.find(key) : nullptr;
  return found != nullptr && found->is_string() ? found : nullptr;
}

std::string class_of(const Config& object) {
  const Config* const name = text_at(object, "class_name");
  return name == nullptr ? std::string() : name->string();
}

// Classes that Keras 2 renamed.
const NameTable& class_names() {
  static const NameTable kNames = {{"AtrousConvolution1D", "Conv1D"},
                                   {"AtrousConvolution2D", "Conv2D"},
                                   {"Convolution1D", "Conv1D"},
                                   {"Convolution2D", "Conv2D"},
                                   {"Convolution3D", "Conv3D"},
                                   {"Deconvolution2D", "Conv2DTranspose"},
                                   {"Deconvolution3D", "Conv3DTranspose"},
                                   {"SeparableConvolution2D", "SeparableConv2D"},
                                   {"TimeDistributedDense", "Dense"}};
  return kNames;
}

// Arguments that Keras 2 renamed in all classes that have them.
const NameTable& argument_names() {
  static const NameTable kNames = {{"W_constraint", "kernel_constraint"},
                                   {"W_regularizer", "kernel_regularizer"},
                                   {"U_regularizer", "recurrent_regularizer"},
                                   {"atrous_rate", "dilation_rate"},
                                   {"b_constraint", "bias_constraint"},
                                   {"b_regularizer", "bias_regularizer"},
                                   {"bias", "use_bias"},
                                   {"border_mode", "padding"},
                                   {"dim_ordering", "data_format"},
                                   {"dropout_U", "recurrent_dropout"},
                                   {"dropout_W", "dropout"},
                                   {"inner_activation", "recurrent_activation"},
                                   {"inner_init", "recurrent_initializer"},
                                   {"nb_filter", "filters"},
                                   {"p", "rate"},
                                   {"pool_length", "pool_size"},
                                   {"sigma", "stddev"},
                                   {"subsample", "strides"},
                                   {"subsample_length", "strides"}};
  return kNames;
}

// Arguments whose meaning depends on the class.
std::string argument_of(const std::string& class_name, const std::string& key) {
  const bool embeds = class_name.ends_with("Embedding");
  if (key == "init") {
    return embeds                  ? "embeddings_initializer"
           : class_name == "PReLU" ? "alpha_initializer"
                                   : "kernel_initializer";
  }
  if (embeds && key == "W_regularizer") return "embeddings_regularizer";
  if (embeds && key == "W_constraint") return "embeddings_constraint";
  if (key == "output_dim" && !embeds) return "units";
  if (key == "length" && class_name == "UpSampling1D") return "size";
  if (key == "stride" && class_name.ends_with("Pooling1D")) return "strides";
  const auto it = argument_names().find(key);
  return it == argument_names().end() ? key : it->second;
}

// Arguments without effect on what a layer computes: shapes of inputs, and how results are found.
bool is_dropped(const std::string& class_name, const std::string& key) {
  constexpr std::string_view kDropped[] = {"consume_less", "input_dim", "input_dtype",
                                           "input_length", "output_shape"};
  if (class_name == "InputLayer") return false;
  // The rate at which training drops whole rows, which Keras 2 drops as well.
  if (class_name == "Embedding" && key == "dropout") return true;
  if (class_name.ends_with("Embedding") && key == "input_dim") return false;
  return std::ranges::find(kDropped, key) != std::end(kDropped);
}

Config from_initializer(const Config& value) {
  if (value == Config("zero")) return "zeros";
  if (value == Config("one")) return "ones";
  if (value == Config("normal")) return "random_normal";
  if (value == Config("uniform")) return "random_uniform";
  return value;
}

// Regularizers and constraints are {"name", arguments ...}, without "class_name".
Config from_named_object(const std::string& layer, const Config& value) {
  const Config* const name = text_at(value, "name");
  if (name == nullptr || text_at(value, "class_name") != nullptr) return value;
  std::string class_name = name->string();
  if (class_name.ends_with("Regularizer")) {
    if (value.find("l1") == nullptr && value.find("l2") == nullptr) {
      throw NotImplementedError(layer, ": the regularizer ", class_name, " is not supported");
    }
    class_name = "L1L2";
  }
  Config own = Config::dict();
  for (const auto& [key, argument] : value.entries()) {
    if (key != "name") own.set(key == "m" ? "max_value" : key, argument);
  }
  return Config::dict({{"class_name", class_name}, {"config", std::move(own)}});
}

Config from_argument(const std::string& layer, const std::string& key, const Config& value) {
  if (key.ends_with("initializer")) return from_initializer(value);
  if (key.ends_with("regularizer") || key.ends_with("constraint")) {
    return from_named_object(layer, value);
  }
  if (key != "data_format") return value;
  return value == Config("th")                                 ? "channels_first"
         : value == Config("tf") || value == Config("default") ? Config("channels_last")
                                                               : value;
}

// Replaces arguments such as nb_row and nb_col by one list.
void join_lengths(const std::vector<std::string>& parts, const char* whole, Config& config) {
  Config::List lengths;
  for (const std::string& part : parts) {
    if (const Config* const found = config.find(part)) lengths.push_back(*found);
  }
  if (lengths.size() != parts.size()) return;
  for (const std::string& part : parts) config.erase(part);
  config.set(whole, std::move(lengths));
}

// [top, bottom, left, right], which Keras 2 writes as pairs.
void pair_padding(Config& config) {
  const Config* const padding = config.find("padding");
  if (padding == nullptr || !padding->is_list() || padding->items().size() != 4) return;
  const Config::List ends = padding->items();
  config.set("padding",
             Config::list({Config::list({ends[0], ends[1]}), Config::list({ends[2], ends[3]})}));
}

void check_batch_normalization(const std::string& layer, Config& config) {
  const Config* const mode = config.find("mode");
  if (mode == nullptr) return;
  if (*mode != Config(0)) {
    throw NotImplementedError(layer, ": 'mode' = ", to_json(*mode),
                              " is not supported; only mode 0 has a form in Keras 2 and 3");
  }
  config.erase("mode");
}

// Converts the arguments of a layer, whose class has its new name.
Config arguments_from_keras1(const std::string& class_name, const Config& config) {
  const Config* const name = text_at(config, "name");
  const std::string layer = absl::StrCat(class_name, " ", name == nullptr ? "" : name->string());
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) {
    if (is_dropped(class_name, key)) continue;
    if (key == "forget_bias_init") {
      out.set("unit_forget_bias", value == Config("one") || value == Config("ones"));
      continue;
    }
    const std::string renamed = argument_of(class_name, key);
    out.set(renamed, from_argument(layer, renamed, value));
  }
  if (class_name == "BatchNormalization") check_batch_normalization(layer, out);
  join_lengths({"nb_row", "nb_col"}, "kernel_size", out);
  join_lengths({"kernel_dim1", "kernel_dim2", "kernel_dim3"}, "kernel_size", out);
  join_lengths({"filter_length"}, "kernel_size", out);
  if (class_name == "ZeroPadding2D") pair_padding(out);
  return out;
}

// Returns the class for a mode of Merge and sets its arguments.
std::string merging_class(const std::string& mode, const Config& merge, Config& arguments) {
  static const NameTable kClasses = {{"ave", "Average"}, {"concat", "Concatenate"}, {"dot", "Dot"},
                                     {"max", "Maximum"}, {"mul", "Multiply"},       {"sum", "Add"}};
  const auto copy = [&](const char* from, const char* to) {
    const Config* const value = merge.find(from);
    if (value != nullptr) arguments.set(to, *value);
  };
  if (mode == "concat") copy("concat_axis", "axis");
  if (mode == "dot") copy("dot_axes", "axes");
  const auto it = kClasses.find(mode);
  return it == kClasses.end() ? std::string() : it->second;
}

// Converts a Merge whose inputs are calls of other layers.
Config merge_from_keras1(const Config& object) {
  const Config& config = object["config"];
  const Config* const mode = text_at(config, "mode");
  const Config* const mode_type = text_at(config, "mode_type");
  const Config* const name = text_at(config, "name");
  Config arguments = Config::dict();
  if (name != nullptr) arguments.set("name", *name);
  const bool named = mode_type == nullptr || *mode_type == Config("raw");
  const std::string class_name =
      mode != nullptr && named ? merging_class(mode->string(), config, arguments) : "";
  if (class_name.empty()) {
    throw NotImplementedError("Merge ", name == nullptr ? "" : name->string(), ": 'mode' = ",
                              mode == nullptr || !named ? "a function" : to_json(*mode),
                              " is not supported");
  }
  Config out = object;
  out.set("class_name", class_name);
  out.set("config", std::move(arguments));
  return out;
}

// Builds the graph of a Sequential that begins with a Merge of models.
class MergedGraph {
 public:
  // `layers` is the config of the Sequential.
  static Config model(const Config::List& layers) {
    MergedGraph graph;
    Config::List outputs = {graph.chain(layers)};
    return Config::dict({{"class_name", "Model"},
                         {"config", Config::dict({{"layers", std::move(graph.layers_)},
                                                  {"input_layers", std::move(graph.inputs_)},
                                                  {"output_layers", std::move(outputs)}})}});
  }

 private:
  static Config reference(const std::string& layer, int call = 0) {
    return Config::list({layer, call, 0});
  }

  static std::string name_of(const Config& layer) { return layer["config"]["name"].string(); }

  // Adds the layers of a Sequential and returns the result of the last one.
  Config chain(const Config::List& layers) {
    if (layers.empty()) throw ValueError("Sequential of Keras 1: a merged model has no layers");
    size_t next = 0;
    Config last;
    if (class_of(layers[0]) == "Merge") {
      last = merge(layers[next++]);
    } else {
      last = input_of(layers[0]);
      if (class_of(layers[0]) == "InputLayer") ++next;
    }
    for (; next < layers.size(); ++next) last = add(layers[next], Config::List{last});
    return last;
  }

  // Adds the merged models and the merging layer.
  Config merge(const Config& layer) {
    Config::List branches;
    for (const Config& branch : layer["config"]["layers"].items()) {
      const Config& own = branch["config"];
      if (class_of(branch) == "Sequential") {
        branches.push_back(chain(own.is_list() ? own.items() : own["layers"].items()));
      } else if (own.is_dict() && own.find("output_layers") != nullptr) {
        branches.push_back(inlined(own));
      } else {
        throw NotImplementedError("Merge ", name_of(layer), ": its input ", class_of(branch),
                                  " is no model, which is not supported");
      }
    }
    // The graph lists the layers of the branches. Copies of them in the config would be converted
    // again, in exponential time for nested merges.
    Config config = layer["config"];
    config.erase("layers");
    Config merging = layer;
    merging.set("config", std::move(config));
    return add(merging, std::move(branches));
  }

  // Adds the layers of a functional model and returns its only output.
  Config inlined(const Config& model) {
    const Config::List& outputs = model["output_layers"].items();
    if (outputs.size() != 1) {
      throw NotImplementedError("Merge: a merged model has ", outputs.size(),
                                " outputs; only one is supported");
    }
    for (const Config& layer : model["layers"].items()) layers_.push_back(layer);
    for (const Config& input : model["input_layers"].items()) inputs_.push_back(input);
    return outputs[0];
  }

  Config input_of(const Config& first) {
    Config config;
    if (class_of(first) == "InputLayer") {
      config = first["config"];
    } else {
      const std::string name = name_of(first) + "_input";
      config = Config::dict({{"name", name},
                             {"batch_input_shape", first["config"]["batch_input_shape"]},
                             {"sparse", false}});
      const Config* const dtype = text_at(first["config"], "input_dtype");
      if (dtype != nullptr) config.set("dtype", *dtype);
    }
    const std::string name = config["name"].string();
    const auto is_it = [&](const Config& layer) { return layer["name"] == Config(name); };
    if (std::ranges::none_of(layers_, is_it)) {
      layers_.push_back(Config::dict({{"class_name", "InputLayer"},
                                      {"name", name},
                                      {"config", std::move(config)},
                                      {"inbound_nodes", Config::List()}}));
      inputs_.push_back(reference(name));
    }
    return reference(name);
  }

  // Adds a call of a layer and returns the reference to its result. A layer that several models
  // share is listed once.
  Config add(const Config& layer, Config::List inputs) {
    const std::string name = name_of(layer);
    const auto is_it = [&](const Config& known) { return known["name"] == Config(name); };
    const auto it = std::ranges::find_if(layers_, is_it);
    if (it != layers_.end()) {
      Config::List nodes = (*it)["inbound_nodes"].items();
      nodes.emplace_back(std::move(inputs));
      const int call = static_cast<int>(nodes.size()) - 1;
      it->set("inbound_nodes", std::move(nodes));
      return reference(name, call);
    }
    Config entry = layer;
    entry.set("name", name);
    entry.set("inbound_nodes", Config::list({Config(std::move(inputs))}));
    layers_.push_back(std::move(entry));
    return reference(name);
  }

  Config::List layers_, inputs_;
};

bool begins_with_merge(const Config& object) {
  const Config* const layers = object.find("config");
  if (class_of(object) != "Sequential" || layers == nullptr || !layers->is_list() ||
      layers->items().empty()) {
    return false;
  }
  const Config& first = layers->items()[0];
  const Config* const config = first.is_dict() ? first.find("config") : nullptr;
  return class_of(first) == "Merge" && config != nullptr && config->is_dict() &&
         config->find("layers") != nullptr;
}

// Returns true for the config of a layer with an argument of Keras 1.
bool has_old_arguments(const std::string& class_name, const Config& config) {
  constexpr std::string_view kCommon[] = {"bias", "stride", "length"};
  return std::ranges::any_of(config.entries(), [&](const auto& entry) {
    const std::string& key = entry.first;
    if (key == "mode") return class_name == "BatchNormalization";
    if (key == "init" || key == "input_dtype") return class_name != "InputLayer";
    return argument_of(class_name, key) != key &&
           std::ranges::find(kCommon, key) == std::end(kCommon);
  });
}

Config object_from_keras1(const Config& object) {
  std::string class_name = class_of(object);
  if (class_name == "Merge") return merge_from_keras1(object);
  const auto renamed = class_names().find(class_name);
  const bool is_old = renamed != class_names().end() ||
                      has_old_arguments(class_name, object["config"]) ||
                      class_name.ends_with("Pooling1D") || class_name == "UpSampling1D" ||
                      class_name == "ZeroPadding2D";
  if (!is_old) return object;
  if (renamed != class_names().end()) class_name = renamed->second;
  Config out = object;
  out.set("class_name", class_name);
  out.set("config", arguments_from_keras1(class_name, object["config"]));
  return out;
}

// Gives a Sequential inside another model, whose config is the list of its layers, a dict with the
// name that the outer model knows.
void name_list_of_layers(Config& object) {
  const Config* const layers = object.find("config");
  const Config* const name = text_at(object, "name");
  const bool is_list = layers != nullptr && layers->is_list();
  if (class_of(object) != "Sequential" || !is_list || name == nullptr) return;
  object.set("config", Config::dict({{"name", *name}, {"layers", *layers}}));
}

}  // namespace

Config from_keras1(const Config& config) {
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) out.push_back(from_keras1(item));
    return out;
  }
  if (!config.is_dict()) return config;
  if (begins_with_merge(config)) {
    return from_keras1(MergedGraph::model(config["config"].items()));
  }
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) {
    out.set(key, key == "inbound_nodes" ? value : from_keras1(value));
  }
  name_list_of_layers(out);
  const Config* const own = out.find("config");
  const bool is_of_user = absl::StrContains(class_of(out), '>');
  return !class_of(out).empty() && !is_of_user && own != nullptr && own->is_dict()
             ? object_from_keras1(out)
             : out;
}

}  // namespace keel

#include "savedmodel/keras_h5.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>

#include "distribute/fail_together.h"
#include "layers/functional.h"
#include "layers/registry.h"
#include "savedmodel/hdf5_file.h"
#include "savedmodel/keras_h5_optimizer.h"
#include "savedmodel/model_weights.h"

namespace keel {
namespace {

using Charset = Hdf5Writer::Charset;

// What Keras 2 and 3 both read a file of; neither checks more than the major version.
constexpr const char* kKerasVersion = "2.15.0";
constexpr const char* kBackend = "tensorflow";
constexpr const char* kWeights = "/model_weights";

Config class_and_config(const Config& object) {
  return Config::dict({{"class_name", object["class_name"]}, {"config", object["config"]}});
}

// Keras 3 cannot resolve the short names of losses when it loads a file.
Config full_loss_name(const Config& loss) {
  static const std::map<std::string, std::string> kFull = {
      {"mse", "mean_squared_error"},
      {"mae", "mean_absolute_error"},
      {"mape", "mean_absolute_percentage_error"},
      {"msle", "mean_squared_logarithmic_error"},
      {"bce", "binary_crossentropy"},
      {"kld", "kl_divergence"},
      {"kullback_leibler_divergence", "kl_divergence"},
      {"logcosh", "log_cosh"},
      {"huber_loss", "huber"},
      {"cosine_proximity", "cosine_similarity"},
  };
  if (!loss.is_string()) return loss;
  std::string lower = loss.string();
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto it = kFull.find(lower);
  return it == kFull.end() ? loss : Config(it->second);
}

Config training_config(const Config& compiled) {
  const auto value = [&](const char* key) {
    const Config* found = compiled.find(key);
    return found == nullptr ? Config() : *found;
  };
  return Config::dict({{"loss", full_loss_name(value("loss"))},
                       {"metrics", value("metrics")},
                       {"weighted_metrics", value("weighted_metrics")},
                       {"loss_weights", value("loss_weights")},
                       {"optimizer_config", class_and_config(compiled["optimizer"])}});
}

// What a file is to hold beside its configuration.
struct Contents {
  struct Dataset {
    std::string path;
    std::function<Tensor()> get;
  };
  struct Names {
    std::string group, attribute;
    std::vector<std::string> names;
  };
  std::vector<Dataset> datasets;
  std::vector<Names> lists;
};

void add_weights(const LayerWeights& layer, Contents& out) {
  const std::string group = str(kWeights, "/", layer.layer);
  std::vector<std::string> names;
  for (const NamedWeight& weight : layer.weights) {
    out.datasets.push_back({.path = group + "/" + weight.name, .get = weight.entry.get});
    names.push_back(weight.name);
  }
  out.lists.push_back({.group = group, .attribute = "weight_names", .names = std::move(names)});
}

Contents contents_of(const Model& model, bool with_optimizer) {
  Contents out;
  std::vector<std::string> layers;
  for (const LayerWeights& layer : weights_by_layer(model)) {
    add_weights(layer, out);
    layers.push_back(layer.layer);
  }
  add_weights(top_level_weights(model), out);
  out.lists.push_back({.group = kWeights, .attribute = "layer_names", .names = std::move(layers)});
  if (!with_optimizer) return out;
  std::vector<std::string> names;
  for (OptimizerWeight& weight : optimizer_weights(model)) {
    out.datasets.push_back(
        {.path = str(kOptimizerWeights, "/", weight.name), .get = std::move(weight.get)});
    names.push_back(std::move(weight.name));
  }
  out.lists.push_back(
      {.group = kOptimizerWeights, .attribute = "weight_names", .names = std::move(names)});
  return out;
}

// The file that one process of a job writes. All of them read what it holds, for that may be a
// collective; so an error waits until all is read, and is thrown by commit(), in all processes.
class SharedFile {
 public:
  explicit SharedFile(const std::string& path) {
    attempt([&] { file_.emplace(path); });
  }

  template <class Write>
  void attempt(const Write& write) {
    if (group_.rank() != 0 || error_ != nullptr) return;
    try {
      write();
    } catch (const std::exception&) {
      error_ = std::current_exception();
    }
  }
  Hdf5Writer& operator*() { return *file_; }

  void commit() {
    attempt([&] { file_->commit(); });
    distribute::fail_together(group_, "save_model", [&] {
      if (error_ != nullptr) std::rethrow_exception(error_);
    });
  }

 private:
  distribute::ProcessGroup& group_ = distribute::processes();
  std::optional<Hdf5Writer> file_;
  std::exception_ptr error_;
};

void write_configuration(Hdf5Writer& file, const Config& config, const Config& compiled) {
  file.write_attribute("/", "keras_version", kKerasVersion, Charset::kUtf8);
  file.write_attribute("/", "backend", kBackend, Charset::kUtf8);
  file.write_attribute("/", "model_config", to_json(config));
  if (!compiled.is_null()) {
    file.write_attribute("/", "training_config", to_json(training_config(compiled)));
  }
  file.create_group(kWeights);
  file.write_attribute(kWeights, "keras_version", kKerasVersion);
  file.write_attribute(kWeights, "backend", kBackend);
}

}  // namespace

void write_keras_h5(const Model& model, const std::string& path,
                    const KerasH5WriteOptions& options) {
  require_no_replica("save_model");
  require_built("save_model", model);
  const Config config =
      Config::dict({{"class_name", model.class_name()}, {"config", model.get_config()}});
  Config compiled = model.get_compile_config();
  if (!compiled.is_null() && compiled["optimizer"].is_null()) compiled = Config();
  const Contents contents = contents_of(model, !compiled.is_null() && options.optimizer_weights);

  SharedFile file(path);
  file.attempt([&] {
    write_configuration(*file, config, compiled);
    for (const Contents::Names& list : contents.lists) (*file).create_group(list.group);
  });
  for (const Contents::Dataset& dataset : contents.datasets) {
    const Tensor value = dataset.get();
    file.attempt([&] { (*file).write(dataset.path, value); });
  }
  file.attempt([&] {
    for (const Contents::Names& list : contents.lists) {
      (*file).write_string_list(list.group, list.attribute, list.names);
    }
  });
  file.commit();
}

namespace {

// A layer's weights in a file: names of datasets.
struct StoredLayer {
  std::string layer;
  std::vector<std::string> names;     // as weight_names has them
  std::vector<std::string> datasets;  // their paths
};

// Empty for a layer that the file lists without a group.
StoredLayer stored_layer(const Hdf5File& file, const std::string& name) {
  StoredLayer out{.layer = name, .names = {}, .datasets = {}};
  const std::string group = str(kWeights, "/", name);
  if (!file.has(group)) return out;
  out.names = file.string_list(group, "weight_names");
  for (const std::string& weight : out.names) out.datasets.push_back(str(group, "/", weight));
  return out;
}

std::vector<StoredLayer> weighted_layers(const Hdf5File& file) {
  std::vector<StoredLayer> out;
  for (const std::string& name : file.string_list(kWeights, "layer_names")) {
    StoredLayer layer = stored_layer(file, name);
    if (!layer.names.empty()) out.push_back(std::move(layer));
  }
  return out;
}

// A weight's own name and its layer's: "dense/kernel" of "model/dense/kernel:0".
std::string last_two_parts(std::string name) {
  if (name.ends_with(":0")) name.resize(name.size() - 2);
  const size_t last = name.rfind('/');
  const size_t before = last == std::string::npos || last == 0 ? last : name.rfind('/', last - 1);
  return before == std::string::npos ? name : name.substr(before + 1);
}

// In a nested model the order depends on which of its layers are frozen. Where names tell what
// belongs together, they say it better.
void match_by_name(const LayerWeights& layer, StoredLayer& stored) {
  std::map<std::string, std::string> datasets;
  for (size_t i = 0; i < stored.names.size(); ++i) {
    datasets[last_two_parts(stored.names[i])] = stored.datasets[i];
  }
  std::vector<std::string> ordered;
  for (const NamedWeight& weight : layer.weights) {
    const auto it = datasets.find(last_two_parts(weight.name));
    if (it == datasets.end()) return;
    ordered.push_back(it->second);
    datasets.erase(it);
  }
  if (datasets.empty()) stored.datasets = std::move(ordered);
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

struct Assignment {
  std::string dataset;
  const StateEntry* entry;
};

void match_weights(const Hdf5File& file, const LayerWeights& layer, StoredLayer stored,
                   std::vector<Assignment>& out) {
  if (layer.weights.size() != stored.names.size()) {
    std::vector<std::string> names;
    for (const NamedWeight& weight : layer.weights) names.push_back(weight.name);
    throw ValueError(file.path(), ": layer '", layer.layer, "' needs ", names.size(), " weights (",
                     joined(names), "), the file has ", stored.names.size(), " under '",
                     stored.layer, "' (", joined(stored.names), ")");
  }
  if (layer.nested) match_by_name(layer, stored);
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    const StateEntry& entry = layer.weights[i].entry;
    const TensorSpec found = file.spec(stored.datasets[i]);
    if (found.shape != entry.spec.shape) {
      throw ValueError(file.path(), ": layer '", layer.layer, "', weight '", layer.weights[i].name,
                       "' needs shape ", entry.spec.shape, ", the file has ", found.shape, " in ",
                       stored.datasets[i]);
    }
    out.push_back({.dataset = stored.datasets[i], .entry = &entry});
  }
}

void read_weights(const Hdf5File& file, const Model& model) {
  std::vector<LayerWeights> layers = weights_by_layer(model);
  std::erase_if(layers, [](const LayerWeights& layer) { return layer.weights.empty(); });
  const std::vector<StoredLayer> stored = weighted_layers(file);
  if (layers.size() != stored.size()) {
    std::vector<std::string> needed, found;
    for (const LayerWeights& layer : layers) needed.push_back(layer.layer);
    for (const StoredLayer& layer : stored) found.push_back(layer.layer);
    throw ValueError(file.path(), ": the model has ", needed.size(), " layers with weights (",
                     joined(needed), "), the file has ", found.size(), " (", joined(found), ")");
  }
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < layers.size(); ++i) {
    match_weights(file, layers[i], stored[i], assignments);
  }
  const LayerWeights own = top_level_weights(model);
  match_weights(file, own, stored_layer(file, own.layer), assignments);
  for (const Assignment& a : assignments) a.entry->set(file.read(a.dataset, a.entry->spec.dtype));
}

// A file's JSON text, or what a model or an optimizer was made of, may be wrong in many ways.
template <class Make>
auto naming_file(const std::string& path, const char* attribute, Make make) {
  try {
    return make();
  } catch (const ValueError& error) {
    throw ValueError(path, ": ", attribute, ": ", error.what());
  } catch (const TypeError& error) {
    throw TypeError(path, ": ", attribute, ": ", error.what());
  } catch (const NotImplementedError& error) {
    throw NotImplementedError(path, ": ", attribute, ": ", error.what());
  } catch (const std::bad_alloc&) {
    throw IoError(path, ": ", attribute, " asks for more memory than there is");
  } catch (const std::length_error&) {
    throw IoError(path, ": ", attribute, " asks for more memory than there is");
  }
}

// A Sequential whose config has no InputLayer tells its input this way.
void build_from_config(Model& model, const Config& config) {
  const Config* shape = config.find("build_input_shape");
  if (model.built() || shape == nullptr || !shape->is_list()) return;
  TensorSpec spec;
  decode(*shape, spec.shape);
  model.build(Specs(spec));
}

ModelHandle make_model(const std::string& path, const std::string& json) {
  return naming_file(path, "model_config", [&] {
    const Config config = parse_json(json);
    const LayerHandle<Layer> layer = layers::deserialize(config);
    const auto model = std::dynamic_pointer_cast<Model>(layer.shared());
    if (model == nullptr) throw ValueError("class ", layer->class_name(), " is not a model");
    build_from_config(*model, config["config"]);
    return ModelHandle(kAdopt, model);
  });
}

// Keras 2 puts the metrics of a model with one output into one list more.
Config one_list(const Config& metrics) {
  if (metrics.is_list() && metrics.items().size() == 1 && metrics.items()[0].is_list()) {
    return metrics.items()[0];
  }
  return metrics;
}

void compile_model(const Hdf5File& file, Model& model) {
  if (!file.has_attribute("/", "training_config")) return;
  const std::string json = file.string_attribute("/", "training_config");
  naming_file(file.path(), "training_config", [&] {
    const Config config = parse_json(json);
    Config compiled = Config::dict({{"optimizer", config["optimizer_config"]}});
    if (const Config* loss = config.find("loss")) compiled.set("loss", *loss);
    for (const char* key : {"metrics", "weighted_metrics"}) {
      if (const Config* metrics = config.find(key)) compiled.set(key, one_list(*metrics));
    }
    model.compile_from_config(compiled);
  });
  read_optimizer_weights(file, model);
}

}  // namespace

ModelHandle read_keras_h5(const std::string& path, const KerasH5ReadOptions& options) {
  const Hdf5File file(path);
  if (!file.has_attribute("/", "model_config")) {
    throw IoError(path, ": has no model_config: no whole model of Keras");
  }
  ModelHandle model = make_model(path, file.string_attribute("/", "model_config"));
  if (!file.has(kWeights)) throw IoError(path, ": has no group ", kWeights);
  read_weights(file, *model);
  if (options.compile) compile_model(file, *model);
  return model;
}

}  // namespace keel

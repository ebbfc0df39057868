// Writes legacy files of Keras with given contents, in the form of any version.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <keel/savedmodel/hdf5/hdf5_contents.h>

namespace keel::testing_support {

// The group of a layer.
struct StoredLayer {
  std::string name;
  std::vector<std::pair<std::string, Tensor>> weights = {};
};

// The contents of a file. Without a config, it holds only weights.
struct StoredModel {
  std::string version = "2.2.4";  // empty: none
  std::string config = {};
  std::vector<StoredLayer> layers = {};
  std::string training = {};
  std::string backend = "tensorflow";                          // empty: none
  std::vector<std::pair<std::string, Tensor>> optimizer = {};  // weights of the optimizer
};

// Writes a file.
inline void write(const std::string& path, const StoredModel& model) {
  Hdf5Contents out;
  const bool whole = !model.config.empty();
  const std::string root = whole ? "/model_weights" : "/";
  if (whole) {
    out.texts.push_back({"/", "model_config", model.config});
    out.groups.push_back(root);
  }
  if (!model.training.empty()) out.texts.push_back({"/", "training_config", model.training});
  if (!model.version.empty()) {
    out.texts.push_back({"/", "keras_version", model.version});
    if (whole) out.texts.push_back({root, "keras_version", model.version});
  }
  if (!model.backend.empty()) out.texts.push_back({root, "backend", model.backend});
  std::vector<std::string> layers;
  for (const StoredLayer& layer : model.layers) {
    const std::string group = (whole ? root + "/" : "/") + layer.name;
    out.groups.push_back(group);
    std::vector<std::string> names;
    for (const auto& [name, value] : layer.weights) {
      out.datasets.push_back({.path = group + "/" + name, .get = [held = value] { return held; }});
      names.push_back(name);
    }
    out.lists.push_back({.object = group, .attribute = "weight_names", .values = names});
    layers.push_back(layer.name);
  }
  out.lists.push_back({.object = root, .attribute = "layer_names", .values = layers});
  std::vector<std::string> slots;
  for (const auto& [name, value] : model.optimizer) {
    if (slots.empty()) out.groups.emplace_back("/optimizer_weights");
    slots.push_back(name);
    out.datasets.push_back({"/optimizer_weights/" + name, [held = value] { return held; }});
  }
  if (!slots.empty()) {
    out.lists.push_back({"/optimizer_weights", "weight_names", slots});
  }
  write_hdf5("test", path, out);
}

}  // namespace keel::testing_support

// Models as JSON, without their weights (Model.to_json, keras.models.model_from_json).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/layers/utils/saving.h>

namespace keel {

// Returns the config of a model as JSON, in the form of a .keras file's config.json: the layers and
// how they are connected, and the arguments of compile(). Keras reads it by model_from_json(). The
// vocabularies of preprocessing layers are contained, but no weights. Throws NotImplementedError if
// a part of the model has no config.
std::string to_json(const Model& model);
inline std::string to_json(const ModelHandle& model) { return to_json(*model); }

// Options of model_from_json().
struct ModelFromJsonOptions {
  std::vector<saving::CustomObject> custom_objects = {};  // classes that the config may name
  bool compile = true;    // compile the model as it was compiled when it was written
  bool safe_mode = true;  // as for load_model()
};

// Makes a model, with new weights, from the JSON that to_json() or Keras 1 to 3 wrote. Throws
// ValueError for a text that is not JSON or not the config of a model, and for an unknown class;
// NotImplementedError, naming it, for a feature that is not supported.
ModelHandle model_from_json(const std::string& json, const ModelFromJsonOptions& options = {});

}  // namespace keel

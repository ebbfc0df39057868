// Converts the configs of models between this library and Keras's files: the object format of
// .keras archives, which has a module for each object, and the encodings that files use for plain
// values.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include <keel/layers/training/model.h>

namespace keel {

// Returns the config of a model for a .keras archive, in which every object has the form {"module",
// "class_name", "config", "registered_name"}. Throws NotImplementedError if a part of the model has
// no config.
Config to_keras_archive(const Model& model);
// Returns the same for a layer, from what layers::serialize() returns.
Config to_keras_archive(const Config& layer);
// Returns the config of a model for a legacy file, in which objects have the form {"class_name",
// "config"}. Exceptions have the form of archives, because Keras 3 reads either form of each entry:
// layers inside other layers, and layers that only that form can express.
Config to_keras_legacy(const Model& model);

// Options of model_from_keras().
struct ModelFromKerasOptions {
  // Selects the error for a Python lambda, which cannot run here: ValueError if true, otherwise
  // NotImplementedError.
  bool safe_mode = true;
  // The file's keras_version, or empty if unknown. Configs of Keras 1 and 2 are converted by
  // from_keras2() (keras_dialect.h).
  std::string keras_version = {};
};

// Returns a config of either form with the values and class names of this library, but does not
// convert configs of Keras 1 and 2.
Config plain_config(const Config& config, const ModelFromKerasOptions& options = {});

// Creates the model of a config of either form, with new weights. Values that Keras tags (arrays,
// tuples, bytes) are read as plain values. Throws ValueError for an invalid config, and
// NotImplementedError, naming it, for a feature that is not supported.
ModelHandle model_from_keras(const Config& config, const ModelFromKerasOptions& options = {});

// Returns the most bytes of tensors that a model of this file can need: twice its weights, which
// are in the file, however well compressed. A configuration that needs more would fail later,
// because its weights are missing from the file, after it has allocated the memory.
size_t most_bytes_of_model(const std::string& path);

// Returns make(), and adds the file and the name of a part of it to the errors that it throws.
template <class Make>
auto naming_file(const std::string& path, const char* part, Make make) {
  try {
    return make();
  } catch (const ValueError& error) {
    throw ValueError(path, ": ", part, ": ", error.what());
  } catch (const TypeError& error) {
    throw TypeError(path, ": ", part, ": ", error.what());
  } catch (const NotImplementedError& error) {
    throw NotImplementedError(path, ": ", part, ": ", error.what());
  } catch (const std::bad_alloc&) {
    throw IoError(path, ": ", part, " requests more memory than is available");
  } catch (const std::length_error&) {
    throw IoError(path, ": ", part, " requests more memory than is available");
  }
}

}  // namespace keel

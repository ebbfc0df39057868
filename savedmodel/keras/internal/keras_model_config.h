// Converts model configs between this library and Keras's files: the object dialect of .keras
// archives, with a module for each object, and the values that files may store instead of plain
// values.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include <keel/layers/training/model.h>

namespace keel {

// Returns the config of a model for a .keras archive: {"module", "class_name", "config",
// "registered_name"} at every level. Throws NotImplementedError if a part of the model has no
// config.
Config to_keras_archive(const Model& model);
// Returns {"class_name", "config"} at every level, for a legacy file. Exceptions are layers inside
// other layers, and objects that only the other dialect can express: Keras 3 reads both dialects,
// entry by entry.
Config to_keras_legacy(const Model& model);

// Options of model_from_keras().
struct ModelFromKerasOptions {
  // A Python lambda cannot run here. True: it throws ValueError because it is unsafe. False: it
  // throws NotImplementedError.
  bool safe_mode = true;
  // The file's keras_version; empty if unknown. Configs of Keras 1 and 2 are converted by
  // from_keras2() (keras_dialect.h).
  std::string keras_version = {};
};

// Creates the model that a config of either dialect describes, with new weights. Values that Keras
// tags (arrays, tuples, bytes) are read as plain values.
// Throws ValueError for a config that does not describe a model, and for lambdas. Throws
// NotImplementedError, naming the object, for unsupported ones.
ModelHandle model_from_keras(const Config& config, const ModelFromKerasOptions& options = {});

// Returns the maximum number of tensor bytes of a model that is created from this file. The file
// contains the weights, however well compressed, and creating them needs the same amount again. A
// configuration that requests more would fail because of missing weights, but only after allocating
// the memory.
size_t most_bytes_of_model(const std::string& path);

// Calls make() and adds the file and one of its parts to the messages of its errors. Invalid JSON
// text, model configs or optimizer configs raise many kinds of errors.
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

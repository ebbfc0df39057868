// Configs of models between this library and Keras's files: the object dialect of .keras archives,
// with a module for each object, and what files may hold in place of plain values.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include <keel/layers/training/model.h>

namespace keel {

// The config of a .keras archive for a model: {"module", "class_name", "config",
// "registered_name"}, all the way down. NotImplementedError if a part of the model has no config.
Config to_keras_archive(const Model& model);
// {"class_name", "config"} for a legacy file, all the way down but for the layers that others hold,
// and those that only the other dialect expresses: Keras 3 reads either, entry by entry.
Config to_keras_legacy(const Model& model);

struct ModelFromKerasOptions {
  // Whether a Python lambda is a ValueError that says so; it cannot run here in any case, and is a
  // NotImplementedError without.
  bool safe_mode = true;
  // The file's keras_version; empty: unknown. Of Keras 1 and 2, configs are read as from_keras2()
  // (keras_dialect.h) says.
  std::string keras_version = {};
};

// The model that the config of a file of either dialect describes, its weights new. Values that
// Keras tags (arrays, tuples, bytes) are read as plain ones.
// ValueError for a config that makes no model, and for lambdas; NotImplementedError for what is
// not offered: the error names it.
ModelHandle model_from_keras(const Config& config, const ModelFromKerasOptions& options = {});

// Bytes of tensors that a model made of this file may take: its weights are in the file, however
// well compressed, and need as much again while they are made. What the configuration asks for
// beyond that would fail for want of weights, after the memory was taken.
size_t most_bytes_of_model(const std::string& path);

// make(), whose errors name the file and a part of it: JSON text, or what a model or an optimizer
// is made of, may be wrong in many ways.
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
    throw IoError(path, ": ", part, " asks for more memory than there is");
  } catch (const std::length_error&) {
    throw IoError(path, ": ", part, " asks for more memory than there is");
  }
}

}  // namespace keel

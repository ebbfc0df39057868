#include "savedmodel/saved_model.h"

#include <filesystem>

#include "distribute/fail_together.h"
#include "savedmodel/keras_h5.h"

namespace keel {
namespace {

void check_suffix(const char* who, const std::string& path) {
  if (path.ends_with(".weights.h5") || path.ends_with(".keras")) {
    throw NotImplementedError(who, ": files '.keras' and '.weights.h5' are not offered, received '",
                              path, "'; use '.h5'");
  }
  if (!path.ends_with(".h5") && !path.ends_with(".hdf5")) {
    throw ValueError(who, ": the file's name must end in '.h5' or '.hdf5', received '", path, "'");
  }
}

}  // namespace

void save_model(const Model& model, const std::string& path, const SaveOptions& options) {
  check_suffix("save_model", path);
  distribute::fail_together(distribute::processes(), "save_model", [&] {
    if (!options.overwrite && std::filesystem::exists(path)) {
      throw ValueError("save_model: ", path, " exists, and overwrite is false");
    }
  });
  write_keras_h5(model, path, {.optimizer_weights = options.include_optimizer});
}

ModelHandle load_model(const std::string& path, const LoadOptions& options) {
  check_suffix("load_model", path);
  return read_keras_h5(path, {.compile = options.compile});
}

}  // namespace keel

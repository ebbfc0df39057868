// Saving and loading whole models; the suffix of the file's name chooses the format.
//
//   save_model(ranker, "ranker.h5");
//   ModelHandle same = load_model("ranker.h5");
//
// ".h5" and ".hdf5" are Keras's legacy files (keras_h5.h), which Keras 2 and 3 read and write too.
// Classes of one's own are found in layer_registry(), loss_registry() and so on: add them before
// loading.
#pragma once

#include <string>

#include "layers/model.h"

namespace keel {

struct SaveOptions {
  bool include_optimizer = false;  // the optimizer's state too; its config always is
  bool overwrite = true;           // false: ValueError if the file exists
};

// NotImplementedError for a suffix that is not offered, ValueError for one without meaning, and
// what write_keras_h5 throws. The file appears whole or not at all. All processes of a job call it.
void save_model(const Model& model, const std::string& path, const SaveOptions& options = {});
inline void save_model(const ModelHandle& model, const std::string& path,
                       const SaveOptions& options = {}) {
  save_model(*model, path, options);
}

struct LoadOptions {
  bool compile = false;  // compile the model as it was, if the file says how
};

// A new model for the strategy of now. NotImplementedError and ValueError for suffixes as above;
// what read_keras_h5 throws.
ModelHandle load_model(const std::string& path, const LoadOptions& options = {});

}  // namespace keel

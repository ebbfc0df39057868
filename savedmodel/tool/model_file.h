// Detects the kind of a file (model, weights or checkpoint, in any format) and reads its values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel::tool {

enum class FileKind { kArchive, kLegacyModel, kLegacyWeights, kWeights, kCheckpoint };
// Returns a description for users, such as "model, Keras archive".
const char* describe(FileKind kind);
inline bool has_model(FileKind kind) {
  return kind == FileKind::kArchive || kind == FileKind::kLegacyModel;
}

// Detects the kind from the file's contents. Throws IoError if the file is missing, damaged or of
// an unknown kind.
FileKind kind_of_file(const std::string& path);
// Returns the newest checkpoint of a folder, or any other path unchanged. Throws IoError if a
// folder has no checkpoint.
std::string file_of(const std::string& path);

// A model and whether it could be compiled.
struct LoadedModel {
  ModelHandle model;
  std::string not_compiled =
      {};  // reason why the training configuration cannot be used; empty if it can
};
// Loads a model and compiles it if the file has a training configuration. Throws the errors of
// load_model, and ValueError, naming `caller`, for a file of another kind.
LoadedModel load_whole_model(const std::string& caller, const std::string& path);

// Calls load_weights() and prints a line to standard error for each skipped weight.
void load_weights_into(const std::string& caller, const ModelHandle& model, const std::string& path,
                       bool by_name);

// A tensor of a file.
struct StoredValue {
  std::string name;  // "dense/kernel"
  TensorSpec spec;
  std::function<Tensor()> get;
  std::function<Tensor(int64_t)> row;  // unset if the value has no rows
};

// The weights and the optimizer state of a file or a model.
struct StoredValues {
  std::vector<StoredValue> weights;
  std::vector<StoredValue> optimizer;
};

// Returns the values of a model. Weights are named by their layer and weight names. The optimizer
// state is included if the optimizer has made a step.
StoredValues values_of(const Model& model);
// Returns true if the model is compiled and at step 0, so its slots contain no training state.
bool has_new_optimizer(const Model& model);
inline constexpr char kNewOptimizer[] =
    "new: the file has no optimizer state, or not for all variables (the state of engine tables is "
    "in checkpoints only)";
// Returns the values of a weights file, named by their positions, or of a checkpoint, named by
// their keys.
StoredValues values_of(const std::string& path, FileKind kind);

}  // namespace keel::tool

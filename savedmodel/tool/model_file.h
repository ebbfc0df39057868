// Reads the kind and the values of files of models, weights and checkpoints in any format.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/tool/stored_values.h>

namespace keel::tool {

// The kind of a file.
enum class FileKind { kArchive, kLegacyModel, kLegacyWeights, kWeights, kCheckpoint };
// Returns a description of the kind for messages.
const char* describe(FileKind kind);
inline bool has_model(FileKind kind) {
  return kind == FileKind::kArchive || kind == FileKind::kLegacyModel;
}

// Determines the kind from the contents of a file. Throws IoError if it is missing, damaged or of
// another kind.
FileKind kind_of_file(const std::string& path);
// Returns the newest checkpoint if `path` is a folder, and otherwise `path`. Throws IoError if a
// folder has no checkpoint.
std::string file_of(const std::string& path);

// The result of load_whole_model().
struct LoadedModel {
  ModelHandle model;
  std::string not_compiled =
      {};  // reason why the training configuration cannot be used; empty if it can
};
// Loads a whole model, compiled if the file contains a valid training configuration. Throws the
// errors of load_model(), and ValueError, naming `caller`, for a file without a model.
LoadedModel load_whole_model(const std::string& caller, const std::string& path);

// Calls load_weights() and prints a line to stderr for each weight that was skipped.
void load_weights_into(const std::string& caller, const ModelHandle& model, const std::string& path,
                       bool by_name);

// Returns the values of a model without tables for unbounded ids (stored_table.h). Weights are
// named by layer and weight. The optimizer's state is included if the optimizer has made a step.
StoredValues values_of(const Model& model);
// Returns true if the model is compiled and its optimizer has not made a step, so that its slots
// hold only initial values.
bool has_new_optimizer(const Model& model);
inline constexpr char kNewOptimizer[] =
    "new: the file has no optimizer state, or not for all variables (the state of engine tables is "
    "in "
    "checkpoints only)";
// Returns the values of a file of weights, named by their paths in it, or of a checkpoint, named by
// their keys. They include the parts of tables for unbounded ids (take_tables()).
StoredValues values_of(const std::string& path, FileKind kind);

}  // namespace keel::tool

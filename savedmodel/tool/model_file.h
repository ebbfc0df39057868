// A file of a model, of weights or a checkpoint, whatever its format: what kind it is, and the
// values in it.
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
const char* describe(FileKind kind);
inline bool has_model(FileKind kind) {
  return kind == FileKind::kArchive || kind == FileKind::kLegacyModel;
}

// By the file's contents. IoError if it is missing, damaged or none of these.
FileKind kind_of_file(const std::string& path);
// The newest checkpoint of a folder; other paths as they are. IoError if a folder has none.
std::string file_of(const std::string& path);

struct LoadedModel {
  ModelHandle model;
  std::string not_compiled = {};  // why the training configuration cannot be used; empty if it can
};
// Compiled if the file says how. What load_model throws; ValueError, naming `caller`, for a file of
// another kind.
LoadedModel load_whole_model(const std::string& caller, const std::string& path);

// load_weights(), which prints a line on the standard error for each weight that it leaves out.
void load_weights_into(const std::string& caller, const ModelHandle& model, const std::string& path,
                       bool by_name);

// A tensor of a file.
struct StoredValue {
  std::string name;  // "dense/kernel"
  TensorSpec spec;
  std::function<Tensor()> get;
  std::function<Tensor(int64_t)> row;  // of one that has rows
};

struct StoredValues {
  std::vector<StoredValue> weights;
  std::vector<StoredValue> optimizer;
};

// Weights go by the names of layers and weights; optimizer's state is there if it has made a step.
StoredValues values_of(const Model& model);
// Compiled, and at step 0: nothing in its slots is of training.
bool has_new_optimizer(const Model& model);
inline constexpr char kNewOptimizer[] =
    "new: the file has no state of steps, or not of all variables (what belongs to tables in an "
    "engine is in checkpoints only)";
// Those of a file of weights alone, by their place in it, or of a checkpoint, by their keys.
StoredValues values_of(const std::string& path, FileKind kind);

}  // namespace keel::tool

// Checkpoint: the state of a training run in a file, to go on from.
//
// A checkpoint holds values by key. Keys follow from the structure of the model (layer_state.h),
// so a model built by the same code finds its own whatever names its layers were given, and a file
// written under one strategy is restored under another: whole tables are kept, whoever holds them.
//
//   model/dense_1/kernel               weights, and random state of layers
//   model/dense_1/kernel/momentum      slots, of an optimizer or of an embedding engine
//   optimizers/<name>/iteration, optimizers/<name>/learning_rate (if it is a number)
//   variables/<name>                   what the caller added
//
// The file is HDF5: /entries has one dataset for each value, its attribute "key" the key; the
// root's attributes are format, format_version, entries (their number) and step. A seal
// (atomic_file.h) ends it. Files appear whole or not at all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "optimizers/optimizer.h"

namespace keel {

struct CheckpointItems {
  std::optional<LayerHandle<Layer>> model = {};
  std::map<std::string, OptimizerHandle> optimizers = {};
  std::map<std::string, Variable> variables = {};  // counters and the like
};

struct RestoreOptions {
  bool allow_missing_weights = false;  // true: they keep their values and are listed as missing
};

// What a restore found.
struct RestoreStatus {
  std::string path = {};
  int64_t step = 0;
  // Keys that the file lacks; these values are as they were.
  std::vector<std::string> missing = {};
  // Keys of the file that nothing took.
  std::vector<std::string> unused = {};

  void assert_consumed() const;  // ValueError, naming the keys, unless both lists are empty
};

class Checkpoint {
 public:
  explicit Checkpoint(CheckpointItems items);

  // Both: RuntimeError in a replica, or if a layer of the model has no weights yet: call
  // it once before. IoError if the file cannot be written or read. write: ValueError if two values
  // of the model have one key.
  void write(const std::string& path, int64_t step) const;

  // Checks the whole file and all shapes, then assigns. With one optimizer the slots of all
  // trainable variables are restored; with several, each restores those that it has already and
  // those that were its own when the file was written.
  // IoError for a file that is damaged or no checkpoint; ValueError, naming the keys, if weights
  // are missing or a value has another shape or dtype. Nothing has changed then.
  RestoreStatus restore(const std::string& path, const RestoreOptions& options = {}) const;

 private:
  const CheckpointItems items_;
};

}  // namespace keel

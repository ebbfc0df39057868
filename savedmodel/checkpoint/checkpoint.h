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
//   embeddings/<name>/<table>, embeddings/<name>/<table>/<slot>
//                                      tables of mid-level objects, in an engine or on the host
//
// The file is HDF5: /entries has one dataset for each value, its attribute "key" the key; the
// root's attributes are format, format_version, entries (their number), step and parts. A seal
// (atomic_file.h) ends it. Files appear whole or not at all.
//
// Where a strategy spans several processes, each writes the rows of the tables that it holds into a
// part of its own (checkpoint_file.h), and reads those that it will hold: any number of processes,
// hosts and cores restores what any other wrote, and none has a whole table in memory, but for
// those of DistributedEmbedding and of embedding objects that are not built yet. All processes call
// write and restore together; what one of them cannot read or write is an error in all.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/tracked_tables.h>
#include <keel/layers/layer.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

struct CheckpointItems {
  std::optional<LayerHandle<Layer>> model = {};
  std::map<std::string, OptimizerHandle> optimizers = {};
  std::map<std::string, Variable> variables = {};  // counters and the like
  // tpu::TPUEmbedding, TPUEmbeddingForServing, TPUEmbeddingV0.
  std::map<std::string, std::shared_ptr<TrackedTables>> embeddings = {};
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
  // of the model have one key, RuntimeError if an embedding object is not built.
  void write(const std::string& path, int64_t step) const;

  // Checks the whole file and all shapes, then assigns. With one optimizer the slots of all
  // trainable variables are restored; with several, each restores those that it has already and
  // those that were its own when the file was written. An embedding object that is not built yet
  // will start from the values restored.
  // IoError for a file that is damaged or no checkpoint; ValueError, naming the keys, if weights
  // are missing or a value has another shape or dtype. Nothing has changed then.
  RestoreStatus restore(const std::string& path, const RestoreOptions& options = {}) const;

 private:
  const CheckpointItems items_;
};

}  // namespace keel

// Checkpoint: the state of a training run in a file, from which training can resume.
// CheckpointManager: a folder that keeps the newest checkpoints.
//
// A checkpoint maps keys to values. Keys follow from the structure of the model (layer_state.h), so
// a model built by the same code finds its values whatever its layers are named. A file written
// under one strategy can be restored under another, because tables are stored whole, independent of
// their sharding.
//
//   model/dense_1/kernel               weights and random state of layers
//   model/dense_1/kernel/momentum      slots, of an optimizer or of an embedding engine
//   optimizers/<name>/iteration, optimizers/<name>/learning_rate (if it is a number)
//   variables/<name>                   variables added by the caller
//   embeddings/<name>/<table>, embeddings/<name>/<table>/<slot>
//                                      tables of mid-level objects, in an engine or on the host
//
// The file is HDF5. /entries has one dataset per value, whose attribute "key" is the key. The
// attributes of the root are format, format_version, entries (their number), step and parts. The
// file ends with a seal (atomic_file.h). Files appear as a whole or not at all.
//
// If a strategy spans several processes, each process writes its rows of sharded tables to its own
// part file (checkpoint_file.h), and reads only the rows that it will hold. A checkpoint can be
// restored with another number of processes, hosts and cores. No process holds a whole table in
// memory, except tables of DistributedEmbedding and of embedding objects that are not built yet.
// write() and restore() are collective over the processes; an error in one process is thrown in
// all.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

class TrackedTables;  // the tables of a mid-level embedding object

// The objects whose values a checkpoint holds.
struct CheckpointItems {
  std::optional<LayerHandle<Layer>> model = {};            // weights and random state of its layers
  std::map<std::string, OptimizerHandle> optimizers = {};  // for example those of your own loop
  std::map<std::string, Variable> variables = {};          // for example counters
  // Values outside variables, for example of callbacks. Of each entry get(), set() and any_rows are
  // used. A file names them like variables, so no variable may have the same name.
  std::map<std::string, StateEntry> values = {};
  // tpu::TPUEmbedding, TPUEmbeddingForServing and TPUEmbeddingV0.
  std::map<std::string, std::shared_ptr<TrackedTables>> embeddings = {};
};

// Options of Checkpoint::restore.
struct RestoreOptions {
  // If true, the values that the file and the items have in common are restored, and RestoreStatus
  // lists the others. For example for evaluation, which needs no optimizer. Weights that the file
  // lacks are an error nevertheless.
  bool partial = false;
  // If true, weights that the file lacks keep their values and are listed as missing. Implies
  // `partial`.
  bool allow_missing_weights = false;
};

// The result of a restore. Unless the restore is partial, the lists contain at most fallback rows.
struct RestoreStatus {
  std::string path = {};  // path of the checkpoint
  int64_t step = 0;       // as passed to write()
  // Keys that the file lacks; these values are unchanged.
  std::vector<std::string> missing = {};
  // Keys of the file that no item uses.
  std::vector<std::string> unused = {};
  // Keys of the fallback rows and their slots of tables with dynamic ids that have another number
  // of fallback rows than the saved tables (DynamicVocabulary::not_admitted). The rows have their
  // initial values.
  std::vector<std::string> initialized = {};

  // Throws ValueError, naming the keys, unless all lists are empty.
  void assert_consumed() const;
};

// Writes and restores the values of its items.
class Checkpoint {
 public:
  // Stores handles to the items; their values are read by write() and assigned by restore().
  explicit Checkpoint(CheckpointItems items);

  // Writes a checkpoint. Throws RuntimeError in a replica, if a layer of the model has no weights
  // yet (call the model once first), or if an embedding object is not built. Throws ValueError if
  // two values of the model have the same key, and IoError if the file cannot be written.
  void write(const std::string& path, int64_t step) const;

  // Checks the whole file and all shapes, then assigns the values. With one optimizer, the slots of
  // all trainable variables are restored. With several, each restores the slots that it already has
  // and those that were its own when the file was written; the slots of a table with dynamic ids
  // belong to the optimizer that has slots of these names. Slots that no step has used yet are in
  // no file and keep their initial values. An embedding object that is not built yet will start
  // from the restored values.
  //
  // Throws RuntimeError in a replica, or if a layer of the model has no weights yet. Throws IoError
  // for a file that cannot be read, is damaged or is not a checkpoint. Throws ValueError, naming
  // the keys, if a value has another shape or dtype, and unless the restore is partial, if the file
  // lacks a value of the items or has one that no item uses. If it throws one of these, nothing has
  // changed. The rows of tables with dynamic ids are read after all checks, in blocks that replace
  // the table: if the disk fails then (IoError), the table is empty.
  RestoreStatus restore(const std::string& path, const RestoreOptions& options = {}) const;

 private:
  const CheckpointItems items_;
};

// Options of CheckpointManager.
struct CheckpointManagerOptions {
  int64_t max_to_keep = 5;               // 0 keeps all
  std::string checkpoint_name = "ckpt";  // the part of the file names before "-<step>.h5"
};

// Saves checkpoints as "<directory>/<checkpoint_name>-<step>.h5". The index
// "<directory>/checkpoint" lists them in JSON, oldest first: {"latest": "ckpt-20.h5", "all":
// ["ckpt-10.h5", "ckpt-20.h5"]}. The index is written after a new checkpoint and before old ones
// are deleted, so at any time it names complete files. Only one job at a time may save into a
// folder; all of its processes make the same calls and see the same folder. save() throws IoError
// if another job has written the index meanwhile.
//
// If the index is missing, or none of its files exists, the folder is listed instead. Every
// complete checkpoint of this name is then used, in ascending order of step; this reads all of
// their bytes. If the index names files and the folder has no checkpoint at all, that is an
// IoError.
class CheckpointManager {
 public:
  // Creates the folder, or opens an existing one. Removes what an interrupted save() has left
  // behind: temporary files, parts without a checkpoint, and checkpoints that were not yet added to
  // the index or not yet deleted. Files of a running save() are kept, including those of another
  // job. Throws ValueError for a negative max_to_keep, and for a name that is empty or contains a
  // '/'. Throws IoError if the folder or its index cannot be used.
  CheckpointManager(Checkpoint checkpoint, std::string directory,
                    CheckpointManagerOptions options = {});

  // Saves a checkpoint and returns its path. A checkpoint of the same step is replaced and becomes
  // the newest. Throws what Checkpoint::write throws, and IoError if the index cannot be written.
  std::string save(int64_t step);

  const std::vector<std::string>& checkpoints() const { return checkpoints_; }  // oldest first
  // Returns the path of the newest checkpoint, or an empty optional if there is none.
  std::optional<std::string> latest_checkpoint() const;

  // Restores a checkpoint; see Checkpoint::restore.
  RestoreStatus restore(const std::string& path, const RestoreOptions& options = {}) const;
  // Restores the newest checkpoint. Returns an empty optional if there is none. If it is damaged,
  // the IoError names the newest good one.
  std::optional<RestoreStatus> restore_or_initialize(const RestoreOptions& options = {}) const;

 private:
  void adopt_index_of_rank_0();
  void write_index(const std::vector<std::string>& paths);
  void check_only_job() const;
  void remove_temporary_files() const;

  const Checkpoint checkpoint_;
  const std::string directory_;
  const CheckpointManagerOptions options_;
  std::vector<std::string> checkpoints_;
  std::string index_text_;  // of the index, as this job has read or written it last
};

// Returns the path of the newest checkpoint of a folder, or an empty optional if it has none. A
// folder without an index is listed as described above. Throws IoError if the index is damaged.
std::optional<std::string> latest_checkpoint(const std::string& directory);

}  // namespace keel

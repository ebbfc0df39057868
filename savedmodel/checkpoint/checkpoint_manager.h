// CheckpointManager: a folder that keeps the newest checkpoints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/savedmodel/checkpoint/checkpoint.h>

namespace keel {

// Options of CheckpointManager.
struct CheckpointManagerOptions {
  int64_t max_to_keep = 5;  // 0 keeps all
  std::string checkpoint_name = "ckpt";
};

// Saves checkpoints as "<directory>/<checkpoint_name>-<step>.h5". The index
// "<directory>/checkpoint" lists them in JSON, oldest first: {"latest": "ckpt-20.h5", "all":
// ["ckpt-10.h5", "ckpt-20.h5"]}. The index is written after a new checkpoint and before old ones
// are deleted, so at any time it names complete files. Only one job at a time may save into a
// folder; all of its processes make the same calls and see the same folder.
//
// If the index is missing, or none of its files exists, the folder is listed instead. Every
// complete checkpoint of this name is then used, in ascending order of step; this reads all of
// their bytes.
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
  // Restores the newest checkpoint. Returns an empty optional if there is none.
  std::optional<RestoreStatus> restore_or_initialize(const RestoreOptions& options = {}) const;

 private:
  void take_up_the_index_of_rank_0();
  void write_index(const std::vector<std::string>& paths) const;
  void remove_litter() const;

  const Checkpoint checkpoint_;
  const std::string directory_;
  const CheckpointManagerOptions options_;
  std::vector<std::string> checkpoints_;
};

// Returns the path of the newest checkpoint of a folder, or an empty optional if it has none. A
// folder without an index is listed as described above. Throws IoError if the index is damaged.
std::optional<std::string> latest_checkpoint(const std::string& directory);

}  // namespace keel

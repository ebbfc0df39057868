// CheckpointManager: a folder of checkpoints, the newest few of which are kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/savedmodel/checkpoint/checkpoint.h>

namespace keel {

struct CheckpointManagerOptions {
  int64_t max_to_keep = 5;  // 0 keeps all
  std::string checkpoint_name = "ckpt";
};

// Files are "<directory>/<checkpoint_name>-<step>.h5"; "<directory>/checkpoint" says in JSON which
// there are: {"latest": "ckpt-20.h5", "all": ["ckpt-10.h5", "ckpt-20.h5"]}, oldest first. It is
// written last, and files are deleted after it: whenever the process ends, it names files that
// are whole. One job at a time may save into a folder; all of its processes call all of this, and
// see the same folder.
//
// If the index is gone, or none of its files exists, the folder is listed instead: every whole
// checkpoint of this name counts, by ascending step, which takes a pass over their bytes.
class CheckpointManager {
 public:
  // Makes the folder, or takes up what is there. Removes what an interrupted save() has left:
  // temporary files, parts without their checkpoint, and checkpoints that did not make it into the
  // index or out of the folder. Files of a running save() stay, also those of another job.
  // ValueError for a negative max_to_keep or a name
  // that is empty or has a '/'; IoError if the folder or its index cannot be used.
  CheckpointManager(Checkpoint checkpoint, std::string directory,
                    CheckpointManagerOptions options = {});

  // Returns the path. A step that was saved before is replaced, and is the newest then. What
  // Checkpoint::write throws.
  std::string save(int64_t step);

  const std::vector<std::string>& checkpoints() const { return checkpoints_; }  // oldest first
  std::optional<std::string> latest_checkpoint() const;

  RestoreStatus restore(const std::string& path, const RestoreOptions& options = {}) const;
  // Of the newest; empty if there is none yet.
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

// Path of the newest checkpoint of a folder, which is listed as above if it has no index; empty if
// it has none. IoError for a broken index.
std::optional<std::string> latest_checkpoint(const std::string& directory);

}  // namespace keel

// The files of a checkpoint: values by key, written by all processes of a job and readable by any
// number of processes. See checkpoint.h for their contents.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/function_ref.h>
#include <keel/layers/layer.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

// A value to write.
struct CheckpointValue {
  std::string key;
  TensorSpec spec;
  std::string optimizer = {};  // the optimizer that owns the slot; empty for other values
  std::function<Tensor()> get;
  std::optional<StateEntry::Rows> rows = {};  // if set, the value is written and read in pieces
};

// Writes a checkpoint. Collective over the processes of the job, which all pass the same keys. The
// first process writes `path`. Each other process writes the rows that only it holds to
// "<path>.part-<process>-<checksum>". `path` is written last and names its parts, so a checkpoint
// exists as a whole or not at all. Parts of an older checkpoint of this path are then removed.
// Throws IoError in every process if one of them cannot write.
void write_checkpoint(const std::string& path, int64_t step,
                      const std::vector<CheckpointValue>& values);

// Removes a checkpoint and its parts.
void remove_checkpoint(const std::string& path);

// Reads a checkpoint and its parts.
class CheckpointReader {
 public:
  struct Stored {
    TensorSpec spec;  // spec of the whole value
    std::string optimizer = {};
  };

  // Opens a checkpoint. Throws IoError if a file is damaged or not a checkpoint, and if a part is
  // missing or belongs to another checkpoint.
  explicit CheckpointReader(const std::string& path);
  ~CheckpointReader();

  int64_t step() const { return step_; }
  const std::map<std::string, Stored>& index() const { return index_; }  // by key
  // Reads a whole value, or rows [begin, end) of it.
  Tensor read(const std::string& key) const;
  Tensor read(const std::string& key, int64_t begin, int64_t end) const;
  const std::string& path() const { return path_; }
  // Calls use(begin, values) for pieces that together make up rows [begin, end). Each piece is
  // small compared with a large table.
  void read_rows(const std::string& key, int64_t begin, int64_t end,
                 FunctionRef<void(int64_t begin, const Tensor& values)> use) const;

 private:
  struct Piece {
    const Hdf5File* file;
    std::string dataset;
    int64_t first = 0, count = 0;  // rows; a value without rows counts as one row
  };
  void add_file(const Hdf5File& file);
  void check_whole() const;

  const std::string path_;
  int64_t step_ = 0;
  std::vector<std::unique_ptr<Hdf5File>> files_;
  std::map<std::string, Stored> index_;
  std::map<std::string, std::vector<Piece>> pieces_;  // by key
};

}  // namespace keel

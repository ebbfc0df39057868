// The files of a checkpoint: values by key, written by all processes of a job and read by any
// number of them. See checkpoint.h for what they hold.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

struct CheckpointValue {
  std::string key;
  TensorSpec spec;
  std::string optimizer = {};  // whose slot it is
  std::function<Tensor()> get;
  std::optional<StateEntry::Rows> rows = {};  // written and read in pieces if set
};

// Collective over the processes of the job, which all give the same keys. The first process writes
// `path`; the others the rows that only they have, in "<path>.part-<process>-<checksum>". `path` is
// written last and names its parts: a checkpoint is there whole or not at all. Parts of an older
// checkpoint of this path are removed then. IoError in every process if one cannot write.
void write_checkpoint(const std::string& path, int64_t step,
                      const std::vector<CheckpointValue>& values);

// Removes the checkpoint and its parts.
void remove_checkpoint(const std::string& path);

class CheckpointReader {
 public:
  struct Stored {
    TensorSpec spec;  // of the whole value
    std::string optimizer = {};
  };

  // IoError for a file that is damaged or no checkpoint, and if a part is missing or another's.
  explicit CheckpointReader(const std::string& path);
  ~CheckpointReader();

  int64_t step() const { return step_; }
  const std::map<std::string, Stored>& index() const { return index_; }  // by key
  Tensor read(const std::string& key) const;
  // Calls use(begin, values) for pieces that together are rows [begin, end), each small beside a
  // large table.
  void read_rows(const std::string& key, int64_t begin, int64_t end,
                 const std::function<void(int64_t begin, const Tensor& values)>& use) const;

 private:
  struct Piece {
    const Hdf5File* file;
    std::string dataset;
    int64_t first = 0, count = 0;  // rows; a value without rows counts as one
  };
  void add_file(const Hdf5File& file);
  void check_whole() const;

  const std::string path_;
  int64_t step_ = 0;
  std::vector<std::unique_ptr<Hdf5File>> files_;
  std::map<std::string, Stored> index_;
  std::map<std::string, std::vector<Piece>> pieces_;  // by key, by first row
};

}  // namespace keel

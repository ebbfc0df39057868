// MappedTables: the tables of a loaded model that are read in place from the model's file.
//
//   auto tables = std::make_shared<MappedTables>();
//   ModelHandle ranker = load_model("ranker.keras", {.compile = false, .mapped_tables = tables});
//   // ranker starts at once; the system reads the rows of its tables when they are looked up.
//   tables->promote();  // optional, from any thread: copies them to huge pages
//
// A table is mapped if it has at least 1 MiB and the file stores it as contiguous little-endian
// float32 or int8 values at an aligned address, as save_model() writes it; other tables are copied.
// Processes that load one file share the memory of its mapped tables. Values of a mapped table have
// the same bits as those of a copied one. Assigning to a mapped variable or training it copies it.
//
// Replace the files of loaded models by rename: a file that is truncated while it is mapped ends
// the process (SIGBUS).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel {

class MappedFile;

// Belongs to one call of load_model(). Thread safe.
class MappedTables {
 public:
  // A table, or another weight of at least 1 MiB.
  struct Table {
    std::string name = {};      // its dataset in the file, such as "/layers/embedding/vars/0"
    int64_t bytes = 0;          // size of the values
    std::string obstacle = {};  // why it was copied, such as "the dataset is chunked"; else empty
    bool promoted = false;      // true if promote() has moved it to memory
  };

  MappedTables();
  ~MappedTables();
  MappedTables(const MappedTables&) = delete;
  MappedTables& operator=(const MappedTables&) = delete;

  // Returns all tables of the model, in the order of loading.
  std::vector<Table> tables() const;
  // Return the sums of the sizes of the tables that are mapped (promoted ones included), or copied.
  int64_t mapped_bytes() const;
  int64_t copied_bytes() const;

  // Moves mapped tables to anonymous memory on huge pages, where lookups of random rows are faster.
  // Predictions may run meanwhile, and their results keep their bits. A table is moved only if the
  // system, or the process's cgroup, has 1.25 times its size available. Stops once `go_on`, called
  // every few MiB, returns false. Returns the number of bytes moved.
  int64_t promote(const std::function<bool()>& go_on = [] { return true; });

  // Called by the readers of model files. map() returns a tensor of the values at `offset` of the
  // file at `path`; copied() records why a table was not mapped.
  Tensor map(const std::string& name, const std::string& path, int64_t offset,
             const TensorSpec& spec);
  void copied(const std::string& name, int64_t bytes, std::string obstacle);
  // Weights of fewer bytes are never mapped.
  static constexpr int64_t kSmallestBytes = int64_t{1} << 20;

 private:
  struct Entry {
    Table table;
    std::shared_ptr<const MappedFile> file = nullptr;  // null if copied
    int64_t offset = 0;
  };
  mutable std::mutex mutex_;  // guards the following
  std::vector<Entry> entries_;
  std::shared_ptr<const MappedFile> file_;  // the last one; a model has one
};

}  // namespace keel

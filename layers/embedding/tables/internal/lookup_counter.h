// LookupCounter: collects the LookupStatistics of the tables of one layer.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>
#include <keel/layers/embedding/tables/lookup_statistics.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Thread-safe: replicas may call add() concurrently.
class LookupCounter {
 public:
  // Counts lookups of this number of tables.
  explicit LookupCounter(size_t tables) : statistics_(tables) {}

  // The ids of one feature in one lookup.
  struct Part {
    size_t table = 0;     // index of its table
    Tensor ids;           // int64 or string
    int64_t samples = 0;  // rows of its activation
    IdCounts invalid = {};
  };
  // Adds one lookup. Call it after everything that can fail.
  void add(const std::vector<Part>& parts);
  LookupStatistics statistics(size_t table) const;

 private:
  mutable std::mutex mutex_;
  std::vector<LookupStatistics> statistics_;  // by table
};

// Adds the counts of another process to `sum`.
void add_statistics(LookupStatistics& sum, const LookupStatistics& other);

// Returns the notice for the user about a table without its name: "12.5 ids per lookup, ...".
std::string text_of(const LookupStatistics& statistics);

}  // namespace keel

// Statistics of lookups in embedding tables, kept in a directory between runs: the number of ids
// per example, the most frequent ids, and the load balance of both sharding strategies. An engine
// reads them to choose the sharding strategy of its tables. They never change a result.
//
// There is one JSON file for each table. Its name is a hash of the properties that the statistics
// depend on (ProfileKey) and nothing else, so that several models can share a directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <keel/distribute/embedding/partition.h>
#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1.h>

namespace keel::tpu {

// Identifies the statistics of a table.
struct ProfileKey {
  std::string table_name;
  int64_t num_features = 1;  // activation rows per example
  int64_t vocabulary_size = 1;
  int64_t dimension = 1;
  std::string sharding_strategy = "div";  // or "mod"
  int64_t task_count = 1;                 // hosts

  static constexpr void fields(auto& self, auto&& field) {
    field("table_name", self.table_name);
    field("num_features", self.num_features);
    field("vocabulary_size", self.vocabulary_size);
    field("dimension", self.dimension);
    field("sharding_strategy", self.sharding_strategy);
    field("task_count", self.task_count);
  }
  friend bool operator==(const ProfileKey&, const ProfileKey&) = default;
};

// Returns "<16 hexadecimal digits>.profile.json", the 64-bit FNV-1a hash of the key's fields.
// Strings are hashed as length and bytes, numbers as 8 bytes, little-endian. The name does not
// depend on the machine or the run.
std::string profile_file_name(const ProfileKey& key);

// A frequent row and the number of its lookups.
struct HotRow {
  int64_t id = 0;
  int64_t count = 0;
  static constexpr void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("count", self.count);
  }
};

// The statistics of one table, over the sampled examples.
struct TableProfile {
  ProfileKey key;
  int64_t examples_seen = 0;  // including examples that were not sampled
  int64_t examples = 0;
  int64_t ids = 0;
  int64_t distinct_ids = 0;                 // a lower bound once kMaxTrackedIds ids are tracked
  std::vector<int64_t> div_load, mod_load;  // number of ids by owning shard
  std::vector<HotRow> hot_rows;             // most frequent first, at most kHotRows

  static constexpr int kHotRows = 10;
  static constexpr int64_t kMaxTrackedIds = 1 << 20;

  double mean_ids_per_example() const;  // 0 without examples
  // Return the number of ids of the fullest shard divided by the mean over all shards: 1 is even,
  // the number of shards is the maximum.
  double div_imbalance() const;
  double mod_imbalance() const;
};

// Write and read the file of one table. A missing file reads as unset. Throw IoError, naming the
// path, if the directory or the file cannot be written, or if the file has another format or
// another key.
void write_profile(const std::string& directory, const TableProfile& profile);
std::optional<TableProfile> read_profile(const std::string& directory, const ProfileKey& key);
// Returns the statistics of all such files in a directory, sorted by table name. Throws IoError
// under the same conditions.
std::vector<TableProfile> read_profiles(const std::string& directory);

// Returns "div" or "mod", whichever gives the fullest shards of the tables less load according to
// the kept statistics; returns `strategy` if both are equal or there are no statistics. Statistics
// recorded under either strategy are used; the sharding_strategy of the keys is ignored. Throws
// IoError under the same conditions.
std::string choose_sharding_strategy(const std::string& directory,
                                     const std::vector<ProfileKey>& tables,
                                     const std::string& strategy);

// Collects the statistics of several tables. Sampling depends only on the seed and on an example's
// position in the stream of examples. Not thread-safe: the host thread that feeds the engine calls
// it.
class LookupProfiler {
 public:
  // Throws ValueError unless sample_fraction is in (0, 1].
  LookupProfiler(std::vector<ProfileKey> tables, int cores_per_host, ProfilerOptions options = {});

  // Records the lookups of one batch: for each table, the features that look up in it. The
  // numbering of examples continues from batch to batch.
  void record(const std::vector<std::vector<TensorLike>>& features_by_table, int64_t batch_size);

  std::vector<TableProfile> profiles() const;  // profiles of all batches so far, by table
  // Writes the files of the tables with enough sampled examples. Returns their number.
  int save(const std::string& directory) const;

 private:
  struct Counter {
    distribute::Partition div, mod;
    std::unordered_map<int64_t, int64_t> counts = {};  // counts of tracked ids
  };
  void count(size_t table, int64_t id);
  TableProfile finished(size_t table) const;

  const ProfilerOptions options_;
  const int cores_per_host_;  // the rows of a host are assigned to them round-robin
  int64_t examples_seen_ = 0;
  std::vector<TableProfile> profiles_;
  std::vector<Counter> counters_;
};

}  // namespace keel::tpu

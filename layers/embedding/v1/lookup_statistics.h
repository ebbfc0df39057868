// Statistics of lookups in embedding tables, kept in a directory between runs: how many ids an
// example has, which are frequent, and how evenly either way of sharding deals them out. An engine
// reads them to choose how its tables are split; they never change a value.
//
// There is one JSON file for each table. Its name is a hash of what the statistics depend on
// (ProfileKey) and nothing else, so that several models share a directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <keel/distribute/embedding/partition.h>
#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel::tpu {

struct ProfileKey {
  std::string table_name;
  int64_t num_features = 1;  // activation rows per example
  int64_t vocabulary_size = 1;
  int64_t dimension = 1;
  std::string sharding_strategy = "div";  // or "mod"
  int64_t task_count = 1;                 // hosts

  static void fields(auto& self, auto&& field) {
    field("table_name", self.table_name);
    field("num_features", self.num_features);
    field("vocabulary_size", self.vocabulary_size);
    field("dimension", self.dimension);
    field("sharding_strategy", self.sharding_strategy);
    field("task_count", self.task_count);
  }
  friend bool operator==(const ProfileKey&, const ProfileKey&) = default;
};

// "<16 hexadecimal digits>.profile.json", of the 64-bit FNV-1a hash of the key's fields: strings by
// length and bytes, numbers by 8 bytes, little-endian. The same on every machine and in every run.
std::string profile_file_name(const ProfileKey& key);

struct HotRow {
  int64_t id = 0;
  int64_t count = 0;
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("count", self.count);
  }
};

// Of the examples that were sampled.
struct TableProfile {
  ProfileKey key;
  int64_t examples_seen = 0;  // sampled or not
  int64_t examples = 0;
  int64_t ids = 0;
  int64_t distinct_ids = 0;                 // a lower bound once kMaxTrackedIds are tracked
  std::vector<int64_t> div_load, mod_load;  // ids by shard that owns them
  std::vector<HotRow> hot_rows;             // most frequent first, at most kHotRows

  static constexpr int kHotRows = 10;
  static constexpr int64_t kMaxTrackedIds = 1 << 20;

  double mean_ids_per_example() const;  // 0 without examples
  // Ids of the fullest shard over the mean of all: 1 is even, the number of shards is worst.
  double div_imbalance() const;
  double mod_imbalance() const;
};

// IoError, with the path: the directory or the file cannot be written, or the file is none of these
// or of another key. A file that is not there is nothing.
void write_profile(const std::string& directory, const TableProfile& profile);
std::optional<TableProfile> read_profile(const std::string& directory, const ProfileKey& key);
// All of a directory's files of this kind, by table name. IoError as above.
std::vector<TableProfile> read_profiles(const std::string& directory);

// "div" or "mod": whichever leaves the fullest shards of the tables with less to do, after the
// statistics kept under either strategy; `strategy` itself where they do not tell or there are
// none. The keys' own strategies do not count. IoError as above.
std::string choose_sharding_strategy(const std::string& directory,
                                     const std::vector<ProfileKey>& tables,
                                     const std::string& strategy);

struct ProfilerOptions {
  double sample_fraction = 0.03;
  uint64_t seed = 0;
  int64_t min_examples = 100;  // sampled ones that make statistics worth keeping
};

// Collects the statistics of several tables. Which examples are sampled depends on the seed and
// their place in the stream of examples alone. Not thread safe: the host that feeds the engine
// collects.
class LookupProfiler {
 public:
  // ValueError unless the fraction is in (0, 1].
  LookupProfiler(std::vector<ProfileKey> tables, int cores_per_host, ProfilerOptions options = {});

  // The lookups of one batch: by table, the features that look up in it. Examples are numbered on
  // from batch to batch.
  void record(const std::vector<std::vector<TensorLike>>& features_by_table, int64_t batch_size);

  std::vector<TableProfile> profiles() const;  // of what was recorded up to now, by table
  // Writes the file of each table that enough examples were sampled of; returns how many.
  int save(const std::string& directory) const;

 private:
  struct Counter {
    distribute::Partition div, mod;
    std::unordered_map<int64_t, int64_t> counts = {};  // of tracked ids
  };
  void count(size_t table, int64_t id);
  TableProfile finished(size_t table) const;

  const ProfilerOptions options_;
  const int cores_per_host_;  // which take the rows of a host in turn
  int64_t examples_seen_ = 0;
  std::vector<TableProfile> profiles_;
  std::vector<Counter> counters_;
};

}  // namespace keel::tpu

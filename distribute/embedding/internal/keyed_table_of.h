// KeyedTableOf: the implementation of KeyedTable for one type of keys.
#pragma once

#include <string>
#include <vector>

#include <keel/distribute/dynamic/internal/admission_filter.h>
#include <keel/distribute/dynamic/internal/distinct_keys.h>
#include <keel/distribute/dynamic/internal/key_directory.h>
#include <keel/distribute/embedding/internal/keyed_table.h>

namespace keel::distribute {

// Key is int64_t or std::string.
template <class Key>
class KeyedTableOf final : public KeyedTable {
 public:
  explicit KeyedTableOf(const KeyedTableOptions& options);

  int64_t row_limit() const override { return first_key_row() + directory_.limit(); }
  bool is_row(int64_t row) const override;
  void plan_update(std::span<const std::shared_ptr<KeyedLookup>> lookups) override;
  void commit_update() override;
  void resolve(KeyedLookup& lookup) const override;
  void finish_update() override;

  DynamicTableStatistics statistics() const override;
  DynamicTableMemory memory() const override;
  Tensor keys() const override;
  std::vector<char> contains(const Tensor& keys) const override;
  Tensor read(int part, const Tensor& keys) const override;
  DynamicKeyInfo info(const Tensor& key) const override;
  void assign_rows(const Tensor& keys, const Tensor& values) override;
  void erase(const Tensor& keys) override;
  int64_t prune(const PruneOptions& options) override;
  DynamicTableState state() const override;
  void restore(const DynamicTableState& state) override;

 private:
  // What a lookup found for a key: a row number, or one of these.
  static constexpr int64_t kFresh = -1;
  static constexpr int64_t kIgnored = -2;
  // A distinct key of a lookup.
  struct Entry {
    int64_t found = 0;  // row number, kFresh or kIgnored
    int64_t count = 0;  // occurrences
    int64_t now = 0;    // in an update: its position, or -1 - index of the absent key
  };
  struct Lookup final : KeyedLookup {
    explicit Lookup(size_t most) : distinct(most) {}
    DistinctKeys<Key> distinct;
    std::vector<Entry> entries;  // by distinct key
    int64_t version = 0;         // of the table
  };
  // A key of an update that has no row.
  struct Absent {
    Key key;
    uint64_t hash = 0;
    int64_t count = 0;
    bool contributes = false;  // it was a hit or fresh when it was looked up
    bool qualifies = false;
    bool admitted = false;
    int64_t row = 0;  // once admitted
  };
  struct Plan {
    std::vector<std::shared_ptr<KeyedLookup>> lookups;
    std::vector<Absent> absent;
    int64_t refused = 0;
  };
  // A row that has been removed. Its memory still holds it.
  struct Removed {
    Key key;
    int64_t row = 0;
    int64_t count = 0;
    EvictionReason reason{};
  };

  // lookup
  std::shared_ptr<KeyedLookup> look_up_keys(std::span<const FeatureBatch> features, bool training,
                                            int64_t update) const override;
  void find_entries(Lookup& lookup, bool training, int64_t update) const;
  void replace_keys(Lookup& lookup, std::span<const FeatureBatch> features) const;
  int64_t miss_row(const Key& key) const;
  bool has_room() const;

  // update
  Plan merge(std::span<const std::shared_ptr<KeyedLookup>> lookups) const;
  void choose_admitted(Plan& plan) const;
  [[noreturn]] void throw_full(const Plan& plan, int64_t candidates, int64_t room) const;
  void admit(Absent& absent, int64_t now);
  int64_t create_row(const Key& key, uint64_t hash, const KeyUse& use);

  // eviction
  KeyRank rank() const;
  std::vector<uint32_t> expired(int64_t ttl, int64_t now) const;
  std::vector<uint32_t> below_norm(double norm, std::span<const uint32_t> exempt) const;
  // Remove rows and count them in `counter`.
  void remove(std::span<const uint32_t> positions, EvictionReason reason, int64_t& counter);
  // Calls the callbacks with the rows removed since the last call.
  void report_removed();

  // calls
  Tensor key_tensor(const KeyDirectory<Key>& of, std::span<const uint32_t> positions) const;
  Tensor rows_at(int part, std::span<const uint32_t> positions) const;
  uint32_t position_of(const Key& key, const char* caller) const;
  void check_distinct(const Tensor& keys) const;
  void restore_keys(const DynamicTableState& state);
  std::span<const Key> elements(const Tensor& keys, const char* caller) const;

  KeyDirectory<Key> directory_;
  AdmissionFilter<Key> filter_;
  // Changes whenever keys or rows change, so that lookups know whether they are stale.
  int64_t version_ = next_version();
  std::optional<Plan> plan_;
  std::vector<uint32_t> admitted_;  // positions of the keys that the current update has admitted
  std::vector<Removed> removed_;    // for callbacks; empty if there are none
};

}  // namespace keel::distribute

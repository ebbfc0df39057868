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
  std::shared_ptr<KeyedLookup> begin_lookup(std::span<const FeatureBatch> features, bool training,
                                            int64_t update) const override;
  void write_requests(const KeyedLookup& lookup, std::span<MessageWriter> messages) const override;
  void answer(MessageReader& request, bool training, int64_t update,
              MessageWriter& reply) const override;
  void finish_lookup(KeyedLookup& lookup, std::span<const FeatureBatch> features,
                     std::span<MessageReader> replies) const override;
  void write_uses(const KeyedLookup& lookup, std::span<MessageWriter> messages) const override;
  std::shared_ptr<KeyedLookup> read_uses(MessageReader& message) const override;
  void prepare_update(std::span<const std::shared_ptr<KeyedLookup>> lookups) override;
  void commit_update() override;
  void resolve(KeyedLookup& lookup_base) const override;
  void begin_finish() override;
  void end_finish() override;
  bool takes_part(KeyedRound round) const override;
  void write(KeyedRound round, MessageWriter& message) const override;
  void read(KeyedRound round, std::span<MessageReader> messages) override;

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
  std::pair<SavedRange, SavedRange> saved_ranges() const override;
  Tensor shard_starts() const override;
  std::vector<uint32_t> saved_order(SavedIds of) const override;
  Tensor keys_at(SavedIds of, std::span<const uint32_t> positions) const override;
  Tensor uses_at(SavedIds of, SavedUse what, std::span<const uint32_t> positions) const override;
  Tensor rows_at(int part, std::span<const uint32_t> positions) const override;
  std::pair<SavedRange, Tensor> saved_sketch() const override;
  std::unique_ptr<PreparedTable> prepare_restore(const SavedTable& saved) const override;
  void replace(PreparedTable& prepared) override;
  void finish_restore() override;

 private:
  // What a lookup found for a key: a row number, or one of these.
  static constexpr int64_t kFresh = -1;
  static constexpr int64_t kIgnored = -2;
  static constexpr int64_t kRemote = -3;  // a row of another process, in Lookup::reads
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
    const float* initial = nullptr;  // its initial row, if the lookup has computed it
    int64_t row = 0;                 // once admitted
  };
  struct Plan {
    std::vector<std::shared_ptr<KeyedLookup>> lookups;
    std::vector<Absent> absent;
    int64_t refused = 0;
    int64_t room = -1;  // >= 0: fewer keys fit than qualify in all processes
  };
  // A row that has been removed. Its memory still holds it.
  struct Removed {
    Key key;
    int64_t row = 0;
    int64_t count = 0;
    EvictionReason reason{};
  };

  // lookup
  void find_entries(Lookup& lookup, bool training, int64_t update) const;
  int64_t found_of(const Key& key, uint64_t hash, uint32_t position, bool training,
                   int64_t update) const;
  void count_found(Lookup& lookup) const;
  void give_row(Lookup& lookup, size_t entry, std::span<const float> row) const;
  void replace_keys(Lookup& lookup, std::span<const FeatureBatch> features) const;
  int64_t miss_row(const Key& key) const;
  bool has_room() const;
  // The number of rows in all processes.
  int64_t size() const { return peers().alone() ? directory_.size() : size_of_all_; }

  // update
  Plan merge(std::span<const std::shared_ptr<KeyedLookup>> lookups) const;
  std::vector<Absent*> candidates(Plan& plan) const;
  bool is_bounded() const;
  int64_t count_of(const Absent& absent) const {
    return filter_.count(absent.key, absent.hash) + absent.count;
  }
  void read_plans(std::span<MessageReader> messages);
  void write_choice(MessageWriter& message) const;
  void read_choices(std::span<MessageReader> messages);
  [[noreturn]] void throw_full(const Key& smallest, int64_t candidates, int64_t room) const;
  void count_uses(std::span<const Entry> entries, int64_t now);
  void admit(Absent& absent, int64_t now);
  // Adds a row for a key. `initial` is its initial row, or null if that must be computed.
  int64_t create_row(const Key& key, uint64_t hash, const KeyUse& use,
                     const float* initial = nullptr);

  // eviction
  KeyRank rank() const;
  std::vector<uint32_t> expired(int64_t ttl, int64_t now) const;
  std::vector<uint32_t> below_norm(double norm_limit, std::span<const uint32_t> exempt) const;
  // Remove rows and count them in `counter`.
  void remove(std::span<const uint32_t> positions, EvictionReason reason, int64_t& counter);
  // Calls the callbacks with the rows removed since the last call.
  void report_removed();
  void read_sizes(std::span<MessageReader> messages);
  void write_lowest(const KeyDirectory<Key>& of, int64_t n, KeyRank rank,
                    MessageWriter& message) const;
  std::vector<uint32_t> read_lowest(const KeyDirectory<Key>& of, int64_t n, KeyRank rank,
                                    std::span<MessageReader> messages) const;
  // Removes the lowest ranks of all processes until `most` rows remain.
  void remove_lowest(int64_t most, EvictionReason reason,
                     int64_t DynamicTableStatistics::* counter);

  // calls
  Tensor key_tensor(const KeyDirectory<Key>& of, std::span<const uint32_t> positions) const;
  Tensor read_of_all(int part, std::span<const Key> keys, const char* caller) const;
  int64_t sum_of_all(int64_t mine) const;
  void refresh_size();
  std::span<const Key> elements(const Tensor& keys, const char* caller) const;
  DynamicTableStatistics local_statistics() const;

  // checkpoints
  // Ids that have been read and checked.
  struct Prepared;
  class SavedKeys;
  const KeyDirectory<Key>& directory(SavedIds of) const {
    return of == SavedIds::kRows ? directory_ : filter_.pending();
  }
  void read_keys(Prepared& to) const;
  void read_pending(Prepared& to) const;
  void read_sketch(Prepared& to) const;
  void read_rows(const Prepared& from);
  void set_rounding_numbers();

  KeyDirectory<Key> directory_;
  AdmissionFilter<Key> filter_;
  std::optional<Plan> plan_;
  bool is_committed_ = false;       // the keys of plan_ have been admitted
  std::vector<uint32_t> admitted_;  // positions of the keys that the current update has admitted
  std::vector<Removed> removed_;    // for callbacks; empty if there are none
  int64_t size_of_all_ = 0;         // with several processes: of all of them
  // Of the current eviction: the rows and pending keys of all processes that are too many, and why
  // the rows are removed.
  int64_t excess_ = 0, excess_pending_ = 0;
  EvictionReason reason_ = EvictionReason::kCapacity;
  int64_t DynamicTableStatistics::* counter_ = &DynamicTableStatistics::evicted_capacity;
};

}  // namespace keel::distribute

// KeyedTable: the part of a table for unbounded ids that one process holds.
//
// The rows are those of a TableShard that grows. Row 0 holds zeros: keys that are not admitted read
// it, and gradients for it are dropped. The fallback rows follow, then the rows of keys. A lookup
// replaces keys by row numbers, so that pooling, gradient sums and update rules are those of static
// tables.
//
// An update of several tables has three phases (keyed_rounds.h). plan_updates() may throw and
// changes nothing. After it has returned, commit_update() counts and admits keys. After the rows
// have been updated, finish_updates() evicts rows.
//
// With several processes, each holds the rows of the keys that it owns (KeyedPeers), and all hold
// equal fallback rows. A lookup asks the owners for rows. Keys of other processes then have numbers
// of two kinds: before the update, -1 - i is row i of `given_rows`; after resolve(), the numbers
// from row_limit() on are those of `remote`. All calls between steps are collective.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/dynamic_rows.h>
#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/dynamic/internal/initial_rows.h>
#include <keel/distribute/dynamic/internal/keyed_peers.h>
#include <keel/distribute/dynamic/internal/saved_table.h>
#include <keel/distribute/dynamic/table_statistics.h>
#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/embedding/internal/table_shard.h>

namespace keel::distribute {

// The lookup of the keys of one replica's batch in one table.
class KeyedLookup {
 public:
  virtual ~KeyedLookup() = default;

  // By feature of the table: the batch with row numbers in place of keys. Before the update, -1 - i
  // is row i of `given_rows`. Under NotAdmitted::ignore(), ids that read nothing are left out.
  std::vector<FeatureBatch> features;
  // By distinct key: the row number that its occurrences read, and, once an update has been
  // resolved, the one to which their gradients contribute. `targets` is empty if they are the same.
  std::vector<int64_t> reads, targets;
  std::vector<std::vector<uint32_t>> numbers;  // by feature, by id: number of the distinct key
  // [n, dim]: initial rows of keys that qualify, and rows that other processes hold.
  std::vector<float> given_rows;
  // The distinct keys that other processes own, by process; and the end of each process's part.
  std::vector<uint32_t> remote;
  std::vector<int64_t> remote_ends;
  bool is_foreign = false;                        // from read_uses()
  int64_t hits = 0, fresh = 0, not_admitted = 0;  // occurrences by result
};

// The arguments that a KeyedTable is created from.
struct KeyedTableOptions {
  std::string name = {};
  DynamicVocabulary dynamic = {};
  int64_t dim = 0;
  std::vector<Slot> slots = {};
  kernels::StorageType storage = kernels::StorageType::kFloat32;
  KeyedPeers peers = {};
  ProcessGroup* copies = nullptr;  // that hold equal tables, which count own inference lookups
};

// The rounds of messages in which the processes decide together.
enum class KeyedRound {
  kPlan,    // of an update: whether new keys fit
  kChoose,  // which of them are admitted if they do not
  kSizes,   // after an update: how many keys are too many
  kEvict    // which of them are removed
};

// Keys are tensors of int64 or strings, as KeyedTableOptions::dynamic says. Any number of threads
// may call the const members while no thread calls another one.
class KeyedTable : public SavableTable {
 public:
  // Throws std::bad_alloc if there is not enough memory.
  static std::unique_ptr<KeyedTable> create(const KeyedTableOptions& options);
  KeyedTable(const KeyedTable&) = delete;
  KeyedTable& operator=(const KeyedTable&) = delete;

  const KeyedTableOptions& options() const { return options_; }
  // Sets what new rows start with, and initializes the fallback rows.
  void set_initial_rows(InitialRows rows);

  // The rows. Row numbers are below row_limit(). is_row() is true for the fallback rows and the
  // rows of keys.
  TableShard& shard() { return *shard_; }
  const TableShard& shard() const { return *shard_; }
  int64_t first_key_row() const { return 1 + options_.dynamic.not_admitted.fallback_rows(); }
  virtual int64_t row_limit() const = 0;
  virtual bool is_row(int64_t row) const = 0;

  // Looks up a batch in this table; `features` are its features. `update` is the number of the
  // update that may follow, if `training` is true. Throws TypeError for keys of another type.
  // Collective over processes.
  std::shared_ptr<KeyedLookup> look_up(std::span<const FeatureBatch> features, bool training,
                                       int64_t update) const;
  // Counts the results of an inference lookup; look_up() does so itself.
  void count_inference(const KeyedLookup& lookup) const;
  // A lookup in several processes consists of: begin_lookup(); write_requests(), which appends to
  // a message for each process; answer() to the requests of others; finish_lookup() with the
  // replies by process.
  virtual std::shared_ptr<KeyedLookup> begin_lookup(std::span<const FeatureBatch> features,
                                                    bool training, int64_t update) const = 0;
  virtual void write_requests(const KeyedLookup& lookup,
                              std::span<MessageWriter> messages) const = 0;
  virtual void answer(MessageReader& request, bool training, int64_t update,
                      MessageWriter& reply) const = 0;
  virtual void finish_lookup(KeyedLookup& lookup, std::span<const FeatureBatch> features,
                             std::span<MessageReader> replies) const = 0;

  // Write to the owners of keys how often they occurred in a lookup that is updated, or, if this
  // process owns all keys, write all of them to one message; and return what another process has
  // written: a lookup without features, whose targets are by position in the message.
  virtual void write_uses(const KeyedLookup& lookup, std::span<MessageWriter> messages) const = 0;
  virtual std::shared_ptr<KeyedLookup> read_uses(MessageReader& message) const = 0;

  // The phases of an update; see keyed_rounds.h. prepare_update() collects the keys of all lookups
  // of local replicas and of other processes. It changes nothing.
  virtual void prepare_update(std::span<const std::shared_ptr<KeyedLookup>> lookups) = 0;
  // Counts the keys of the planned update and admits new ones.
  virtual void commit_update() = 0;
  // Replaces the row numbers of a lookup by those to which its gradients contribute: 0 if a
  // gradient is dropped. Thread-safe for different lookups.
  virtual void resolve(KeyedLookup& lookup) const = 0;
  // Evicts rows by age and norm; ends the update. Callbacks run last.
  virtual void begin_finish() = 0;
  virtual void end_finish() = 0;
  // A round of decisions. All processes take part, or none. read() throws CollectiveError if new
  // keys do not fit.
  virtual bool takes_part(KeyedRound round) const = 0;
  virtual void write(KeyedRound round, MessageWriter& message) const = 0;
  virtual void read(KeyedRound round, std::span<MessageReader> messages) = 0;

  // Plan and finish the update of this table alone.
  void plan_update(std::span<const std::shared_ptr<KeyedLookup>> lookups);
  void finish_update();
  int64_t updates() const { return statistics_.updates; }

  // The calls between steps; see DynamicTable.
  virtual DynamicTableStatistics statistics() const = 0;
  virtual DynamicTableMemory memory() const = 0;
  virtual Tensor keys() const = 0;
  virtual std::vector<char> contains(const Tensor& keys) const = 0;
  virtual Tensor read(int part, const Tensor& keys) const = 0;
  virtual DynamicKeyInfo info(const Tensor& key) const = 0;
  virtual void assign_rows(const Tensor& keys, const Tensor& values) = 0;
  virtual void erase(const Tensor& keys) = 0;
  virtual int64_t prune(const PruneOptions& options) = 0;
  void set_clock(int64_t clock);
  void on_evict(EvictionCallback callback);
  // Takes over the callbacks of another table.
  void take_callbacks(KeyedTable& other) { callbacks_ = std::move(other.callbacks_); }

  virtual DynamicTableState state() const = 0;
  // Replaces the whole table. If there are more rows than the capacity, evicts the lowest ranks.
  // Throws ValueError, without a change, if they do not fit and there is no eviction policy.
  void restore(const DynamicTableState& state);
  Tensor fallback_rows(int part) const final;
  int64_t clock() const { return clock_; }
  const RandomStream& stream() const { return initial_->stream(); }
  int64_t version() const final { return version_; }
  Tensor gathered(const Tensor& mine) const final;

 protected:
  explicit KeyedTable(const KeyedTableOptions& options);

  // The time of the current update, and between updates.
  int64_t time_of_update() const { return is_user_clock() ? clock_ : statistics_.updates; }
  int64_t time_between_updates() const {
    return is_user_clock() ? clock_ : std::max<int64_t>(0, statistics_.updates - 1);
  }
  bool is_user_clock() const { return options_.dynamic.clock == Clock::kUser; }
  // Throws RuntimeError if a callback is running.
  void check_not_in_callback(const char* caller) const;
  void call_back(const EvictedRows& rows);
  void check_type(std::span<const FeatureBatch> features) const;
  const KeyedPeers& peers() const { return options_.peers; }
  // Returns a number that no table has had before.
  static int64_t next_version();
  double norm(int64_t row) const;
  void check_saved(const SavedTable& saved) const;
  void restore_fallback(const SavedTable& saved);

  const KeyedTableOptions options_;
  std::unique_ptr<TableShard> shard_;  // never null
  std::unique_ptr<InitialRows> initial_;
  DynamicTableStatistics statistics_;  // without those of inference lookups, size and pending
  mutable std::atomic<int64_t> inference_looked_up_ = 0, inference_hits_ = 0;
  int64_t clock_ = 0;
  int64_t version_ = next_version();
  std::vector<EvictionCallback> callbacks_;
  bool in_callback_ = false;
};

}  // namespace keel::distribute

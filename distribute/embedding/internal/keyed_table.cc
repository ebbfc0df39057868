#include <keel/distribute/embedding/internal/keyed_table.h>

#include <absl/cleanup/cleanup.h>
#include <algorithm>
#include <cmath>
#include <unistd.h>

#include <keel/distribute/embedding/internal/keyed_rounds.h>
#include <keel/distribute/embedding/internal/keyed_table_of.h>

namespace keel::distribute {
namespace {

// Returns the address space to reserve for the rows of a table: what the machine could hold, or
// for a bounded table a multiple of its capacity with room for the ids of large batches.
size_t most_row_bytes(const KeyedTableOptions& options) {
  const auto memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto row =
      static_cast<double>(options.dim) * 4 * static_cast<double>(1 + options.slots.size());
  const double bounded = 4 * static_cast<double>(options.dynamic.capacity) * row + 0x1p32;
  return static_cast<size_t>(options.dynamic.capacity == 0 ? memory : std::min(memory, bounded));
}

}  // namespace

KeyedTable::KeyedTable(const KeyedTableOptions& options)
    : options_(options),
      shard_(std::make_unique<TableShard>(options.dim, options.slots, options.storage,
                                          most_row_bytes(options))) {
  shard_->grow(first_key_row());
}

std::unique_ptr<KeyedTable> KeyedTable::create(const KeyedTableOptions& options) {
  if (options.dynamic.key == KeyType::kString) {
    return std::make_unique<KeyedTableOf<std::string>>(options);
  }
  return std::make_unique<KeyedTableOf<int64_t>>(options);
}

void KeyedTable::set_initial_rows(InitialRows rows) {
  initial_ = std::make_unique<InitialRows>(std::move(rows));
  std::vector<float> row(options_.dim);
  for (int64_t i = 0; i < options_.dynamic.not_admitted.fallback_rows(); ++i) {
    initial_->fill_fallback(i, row);
    shard_->reset(1 + i, row.data());
  }
}

void KeyedTable::check_type(std::span<const FeatureBatch> features) const {
  const bool strings = options_.dynamic.key == KeyType::kString;
  for (const FeatureBatch& feature : features) {
    if (feature.ids.dtype() == (strings ? DType::kString : DType::kInt64)) continue;
    throw TypeError("TPUEmbedding: the ids of table '", options_.name, "' must be ",
                    strings ? "strings" : "int64", ", received ", feature.ids.dtype());
  }
}

std::shared_ptr<KeyedLookup> KeyedTable::look_up(std::span<const FeatureBatch> features,
                                                 bool training, int64_t update) const {
  const std::shared_ptr<KeyedLookup> out = begin_lookup(features, training, update);
  KeyedPeers::Messages replies;
  if (!peers().alone()) {
    std::vector<MessageWriter> requests(peers().size()), answers(peers().size());
    write_requests(*out, requests);
    const auto received = peers().exchange("lookup of ids", requests);
    for (int p = 0; p < peers().size(); ++p) {
      MessageReader request{Bytes(received[p])};
      if (p != peers().rank()) answer(request, training, update, answers[p]);
    }
    replies = peers().exchange("rows looked up", answers);
  }
  std::vector<MessageReader> readers = readers_of(replies);
  finish_lookup(*out, features, readers);
  if (!training) count_inference(*out);
  return out;
}

void KeyedTable::count_inference(const KeyedLookup& lookup) const {
  inference_looked_up_ += lookup.hits + lookup.not_admitted;
  inference_hits_ += lookup.hits;
}

void KeyedTable::plan_update(std::span<const std::shared_ptr<KeyedLookup>> lookups) {
  KeyedTable* const table = this;
  const KeyedLookups copy(lookups.begin(), lookups.end());
  plan_updates({&table, 1}, {&copy, 1});
}

void KeyedTable::finish_update() {
  KeyedTable* const table = this;
  finish_updates({&table, 1});
}

void KeyedTable::set_clock(int64_t clock) {
  check_not_in_callback("set_clock");
  if (!is_user_clock()) {
    throw ValueError("set_clock: the clock of table '", options_.name,
                     "' counts updates; set DynamicVocabulary::clock to Clock::kUser");
  }
  if (clock < clock_) {
    throw ValueError("set_clock: the clock of table '", options_.name, "' is ", clock_,
                     " and cannot go back to ", clock);
  }
  clock_ = clock;
}

void KeyedTable::on_evict(EvictionCallback callback) {
  check_not_in_callback("on_evict");
  callbacks_.push_back(std::move(callback));
}

void KeyedTable::check_not_in_callback(const char* caller) const {
  if (!in_callback_) return;
  throw RuntimeError(caller, ": a callback of on_evict must not change table '", options_.name,
                     "'; call it after the step");
}

void KeyedTable::call_back(const EvictedRows& rows) {
  in_callback_ = true;
  const absl::Cleanup leave = [this] { in_callback_ = false; };
  for (const EvictionCallback& callback : callbacks_) callback(rows);
}

int64_t KeyedTable::next_version() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

double KeyedTable::norm(int64_t row) const {
  std::vector<float> values(options_.dim);
  shard_->read(0, row, values.data());
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

}  // namespace keel::distribute

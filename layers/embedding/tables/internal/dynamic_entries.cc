#include <keel/layers/embedding/tables/internal/dynamic_entries.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/distribute/dynamic/internal/saved_table.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/text.h>
#include <keel/framework/config/config.h>

namespace keel {
namespace {

using distribute::KeyedTable;
using distribute::SavedIds;
using distribute::SavedPart;
using distribute::SavedRange;
using distribute::SavedTable;
using distribute::SavedUse;

// The counters of a table with their names in files.
const std::vector<std::pair<const char*, int64_t DynamicTableStatistics::*>>& named_counters() {
  using S = DynamicTableStatistics;
  static const std::vector<std::pair<const char*, int64_t S::*>> kAll = {
      {"looked_up", &S::looked_up},
      {"hits", &S::hits},
      {"fresh", &S::fresh},
      {"not_admitted", &S::not_admitted},
      {"admitted", &S::admitted},
      {"assigned", &S::assigned},
      {"refused", &S::refused},
      {"dropped_gradients", &S::dropped_gradients},
      {"evicted_ttl", &S::evicted_ttl},
      {"evicted_norm", &S::evicted_norm},
      {"evicted_capacity", &S::evicted_capacity},
      {"pruned", &S::pruned},
      {"erased", &S::erased},
      {"inference_looked_up", &S::inference_looked_up},
      {"inference_hits", &S::inference_hits}};
  return kAll;
}

uint64_t unsigned_of(const Config& config) {
  const std::optional<uint64_t> out = parse_number<uint64_t>(config.string());
  if (!out) throw ValueError("restore: '", config.string(), "' is not a number of a random stream");
  return *out;
}

// Returns the part of a table that is one JSON text. 64-bit unsigned numbers are texts. Collective.
std::string text_of(const KeyedTable& table) {
  const DynamicTableStatistics statistics = table.statistics();
  Config counters = Config::dict();
  for (const auto& [name, member] : named_counters()) counters.set(name, statistics.*member);
  const bool strings = table.options().dynamic.key == KeyType::kString;
  return to_json(
      Config::dict({{"updates", statistics.updates},
                    {"clock", table.clock()},
                    {"key", strings ? "string" : "int64"},
                    {"dim", table.options().dim},
                    {"stream", Config::dict({{"seed", number_text(table.stream().seed)},
                                             {"purpose", number_text(table.stream().purpose)}})},
                    {"counters", counters}}));
}

void read_text(const std::string& text, SavedTable& state) {
  const Config config = parse_json(text);
  state.statistics.updates = config["updates"].integer();
  state.clock = config["clock"].integer();
  state.stream = {.seed = unsigned_of(config["stream"]["seed"]),
                  .purpose = unsigned_of(config["stream"]["purpose"])};
  for (const auto& [name, member] : named_counters()) {
    state.statistics.*member = config["counters"][name].integer();
  }
}

distribute::SavedPart part_of(const StateEntry::Saved& value) {
  return {.spec = value.spec, .place = value.place, .read = value.read};
}

StateEntry::Saved in_memory(const Tensor& value) {
  const distribute::SavedPart part = distribute::saved_part(value);
  return {.spec = part.spec, .read = part.read};
}

// Saves and restores the parts of one table.
class Parts {
 public:
  explicit Parts(std::function<KeyedTable*()> access) : access_(std::move(access)) {}

  const KeyedTable& table() const { return *access_(); }

  // Returns the positions of the ids of this process in the order of checkpoints.
  std::span<const uint32_t> order(SavedIds of) {
    const int64_t version = table().version();
    if (version != version_) orders_.clear();
    version_ = version;
    const auto [found, is_new] = orders_.try_emplace(of);
    if (is_new) found->second = table().saved_order(of);
    return found->second;
  }

  // What restore() makes the new table.
  SavedTable& saved() { return saved_; }
  // Checks the parts. If `state` is an empty text, the rows are those of a static table.
  void prepare(const StateEntry::Saved& state) {
    SavedTable saved = std::exchange(saved_, {});
    const auto text = state.read(0, 1).item<std::string>();
    if (text.empty()) {
      complete_static(saved);
    } else {
      saved.by_shard = true;
      read_state(text, state.place, saved);
    }
    prepared_ = access_()->prepare_restore(saved);
  }
  void replace() {
    access_()->replace(*prepared_);
    prepared_.reset();
  }
  void finish() { access_()->finish_restore(); }

 private:
  void read_state(const std::string& text, const std::string& place, SavedTable& saved) const {
    if (!saved.keys || !saved.rows) {
      throw ValueError("restore: table '", table().options().name,
                       "' cannot be restored without its ids and rows");
    }
    if (place.empty()) return read_text(text, saved);
    try {
      read_text(text, saved);
    } catch (const Error& error) {
      throw IoError(place, ": ", error.what(), "; the file is damaged, restore it from a copy");
    }
  }
  // Completes the rows of a static table: row i becomes the row of id i.
  void complete_static(SavedTable& saved) const {
    saved.clock = table().clock();
    saved.stream = table().stream();
    saved.statistics = {.updates = table().updates(), .assigned = saved.rows.rows()};
    saved.pending_keys = distribute::saved_part(table().keys_at(SavedIds::kPending, {}));
    saved.pending_count = distribute::saved_part(Tensor::zeros({0}, DType::kInt64));
    saved.pending_last = saved.pending_count;
  }

  const std::function<KeyedTable*()> access_;
  int64_t version_ = 0;  // of the orders
  std::map<SavedIds, std::vector<uint32_t>> orders_;
  SavedTable saved_;
  std::unique_ptr<distribute::PreparedTable> prepared_;
};

// Adds entries to a list.
class EntryList {
 public:
  using Kind = StateEntry::Kind;
  using Prepare = std::function<void(SavedTable& saved, const StateEntry::Saved& value)>;
  // Returns a value of ids at positions.
  using AtPositions = std::function<Tensor(const KeyedTable&, std::span<const uint32_t>)>;

  EntryList(std::string table, const KeyedTable& now, const std::function<KeyedTable*()>& access)
      : table_(std::move(table)),
        ranges_(now.saved_ranges()),
        parts_(std::make_shared<Parts>(access)) {
    // If every process holds the whole table, the first one writes it.
    const auto& group = distribute::processes();
    if (now.options().peers.alone() && group.rank() != 0) {
      ranges_.first.end = ranges_.first.first;
      ranges_.second.end = ranges_.second.first;
    }
  }

  int64_t rows() const { return ranges_.first.total; }
  int64_t pending() const { return ranges_.second.total; }

  // Adds the entry of a value with one row per id.
  void add_rows(const std::string& name, Kind kind, const TensorSpec& spec, SavedIds of,
                const AtPositions& at, const Prepare& prepare) {
    const SavedRange range = of == SavedIds::kRows ? ranges_.first : ranges_.second;
    StateEntry& entry = add(name, kind, spec, prepare);
    entry.get = [parts = parts_, of, at] {
      return parts->table().gathered(at(parts->table(), parts->order(of)));
    };
    entry.rows = StateEntry::Rows{
        .first = range.first,
        .end = range.end,
        .read = {},
        .write = {},
        .get = [parts = parts_, of, at, first = range.first](int64_t begin, int64_t end) {
          return at(parts->table(), parts->order(of).subspan(begin - first, end - begin));
        }};
  }
  void add_uses(const std::string& name, Kind kind, SavedIds of, SavedUse what,
                SavedPart SavedTable::* part) {
    const int64_t n = of == SavedIds::kRows ? rows() : pending();
    add_rows(
        name, kind, {.shape = {n}, .dtype = DType::kInt64}, of,
        [of, what](const KeyedTable& table, std::span<const uint32_t> positions) {
          return table.uses_at(of, what, positions);
        },
        into(part));
  }
  void add_keys(const std::string& name, Kind kind, DType type, SavedIds of,
                SavedPart SavedTable::* part) {
    const int64_t n = of == SavedIds::kRows ? rows() : pending();
    add_rows(
        name, kind, {.shape = {n}, .dtype = type}, of,
        [of](const KeyedTable& table, std::span<const uint32_t> positions) {
          return table.keys_at(of, positions);
        },
        into(part));
  }
  // Adds the entry of a part of the rows: 0 for the weights, else a slot.
  void add_part(const std::string& name, Kind kind, const TensorSpec& spec, int part,
                const Prepare& prepare) {
    add_rows(
        name, kind, spec, SavedIds::kRows,
        [part](const KeyedTable& table, std::span<const uint32_t> positions) {
          return table.rows_at(part, positions);
        },
        prepare);
  }
  // Adds the entry of a value that all processes know.
  void add_value(const std::string& name, Kind kind, const TensorSpec& spec,
                 const std::function<Tensor(const KeyedTable&)>& get, const Prepare& prepare) {
    add(name, kind, spec, prepare).get = [parts = parts_, get] { return get(parts->table()); };
  }
  // Adds the last entry, which restores the table.
  void add_state(const std::string& name) {
    const auto prepare = [parts = parts_](const StateEntry::Saved& value) {
      parts->prepare(value);
    };
    StateEntry& entry = add(name, Kind::kWeight, {.shape = {}, .dtype = DType::kString}, {});
    entry.get = [parts = parts_] { return Tensor::scalar(text_of(parts->table())); };
    entry.restore = {.prepare = prepare,
                     .replace = [parts = parts_] { parts->replace(); },
                     .finish = [parts = parts_] { parts->finish(); }};
    entry.set = [restore = *entry.restore](const Tensor& value) {
      restore.prepare(in_memory(value));
      restore.replace();
      restore.finish();
    };
  }
  std::vector<StateEntry> take() { return std::move(out_); }

 private:
  static Prepare into(SavedPart SavedTable::* part) {
    return
        [part](SavedTable& saved, const StateEntry::Saved& value) { saved.*part = part_of(value); };
  }
  StateEntry& add(const std::string& name, Kind kind, const TensorSpec& spec,
                  const Prepare& prepare) {
    StateEntry& entry = out_.emplace_back();
    entry.name = name;
    entry.spec = spec;
    entry.kind = kind;
    entry.trainable = name == table_;
    entry.any_rows = true;
    if (prepare == nullptr) return entry;
    entry.restore = {.prepare = [parts = parts_, prepare](const StateEntry::Saved& value) {
      prepare(parts->saved(), value);
    }};
    entry.set = [restore = *entry.restore](const Tensor& value) {
      restore.prepare(in_memory(value));
    };
    return entry;
  }

  const std::string table_;
  std::pair<SavedRange, SavedRange> ranges_;  // of rows and of pending ids
  const std::shared_ptr<Parts> parts_;
  std::vector<StateEntry> out_;
};

}  // namespace

std::vector<StateEntry> dynamic_entries(const std::string& table,
                                        const std::vector<std::string>& slots,
                                        const KeyedTable& now,
                                        const std::function<KeyedTable*()>& access) {
  using S = SavedTable;
  using Saved = StateEntry::Saved;
  constexpr auto kWeight = StateEntry::Kind::kWeight;
  constexpr auto kSlot = StateEntry::Kind::kSlot;
  const std::string prefix = table + "/";
  const DynamicVocabulary& dynamic = now.options().dynamic;
  const int64_t dim = now.options().dim;
  const DType of_keys = dynamic.key == KeyType::kString ? DType::kString : DType::kInt64;
  EntryList list(table, now, access);
  list.add_keys(prefix + "keys", kWeight, of_keys, SavedIds::kRows, &S::keys);
  const auto rows_of = [dim](int64_t count, bool per_row) {
    return TensorSpec{.shape = {count, per_row ? 1 : dim}};
  };
  list.add_part(table, kWeight, rows_of(list.rows(), false), 0,
                [](S& saved, const Saved& value) { saved.rows = part_of(value); });
  const std::vector<Slot>& names = now.options().slots;
  for (size_t i = 0; i < names.size(); ++i) {
    list.add_part(slots.at(i), kSlot, rows_of(list.rows(), names[i].per_row),
                  static_cast<int>(i) + 1, [slot = names[i].name](S& saved, const Saved& value) {
                    saved.slots[slot] = part_of(value);
                  });
  }
  list.add_uses(prefix + "count", kWeight, SavedIds::kRows, SavedUse::kCount, &S::count);
  list.add_uses(prefix + "last", kWeight, SavedIds::kRows, SavedUse::kLast, &S::last);
  list.add_uses(prefix + "born", kWeight, SavedIds::kRows, SavedUse::kBorn, &S::born);
  list.add_value(
      prefix + "shards", kSlot, {.shape = {distribute::kKeyShards + 1}, .dtype = DType::kInt64},
      [](const KeyedTable& from) { return from.shard_starts(); },
      [](S& saved, const Saved& value) { saved.shards = part_of(value); });
  list.add_keys(prefix + "pending/keys", kSlot, of_keys, SavedIds::kPending, &S::pending_keys);
  list.add_uses(prefix + "pending/count", kSlot, SavedIds::kPending, SavedUse::kCount,
                &S::pending_count);
  list.add_uses(prefix + "pending/last", kSlot, SavedIds::kPending, SavedUse::kLast,
                &S::pending_last);
  list.add_value(
      prefix + "sketch", kSlot, {.shape = {now.saved_sketch().first.total}, .dtype = DType::kUint8},
      [](const KeyedTable& from) { return from.gathered(from.saved_sketch().second); },
      [](S& saved, const Saved& value) {
        saved.sketch = value.read(0, value.spec.shape[0]).to_vector<uint8_t>();
      });
  const int64_t fallbacks = dynamic.not_admitted.fallback_rows();
  const auto whole = [](const Saved& value) { return value.read(0, value.spec.shape[0]); };
  list.add_value(
      prefix + "fallback", kWeight, rows_of(fallbacks, false),
      [](const KeyedTable& from) { return from.fallback_rows(0); },
      [whole](S& saved, const Saved& value) { saved.fallback = whole(value); });
  for (size_t i = 0; i < names.size(); ++i) {
    list.add_value(
        prefix + "fallback/" + slots.at(i).substr(prefix.size()), kSlot,
        rows_of(fallbacks, names[i].per_row),
        [part = static_cast<int>(i) + 1](const KeyedTable& from) {
          return from.fallback_rows(part);
        },
        [slot = names[i].name, whole](S& saved, const Saved& value) {
          saved.fallback_slots[slot] = whole(value);
        });
  }
  list.add_state(prefix + "state");
  return list.take();
}

std::string dynamic_notice(const std::string& caller, const DynamicTableStatistics& s) {
  const double share = s.looked_up == 0 ? 0
                                        : 100.0 * static_cast<double>(s.not_admitted) /
                                              static_cast<double>(s.looked_up);
  return absl::StrCat(caller, " has ", s.size, " rows; ", std::round(10 * share) / 10,
                      " % of the ids were not admitted, ",
                      s.evicted_ttl + s.evicted_norm + s.evicted_capacity, " ids were evicted, ",
                      s.refused, " were refused");
}

}  // namespace keel

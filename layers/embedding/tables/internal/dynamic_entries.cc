#include <keel/layers/embedding/tables/internal/dynamic_entries.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/distribute/dynamic/internal/state_rows.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/text.h>
#include <keel/framework/config/config.h>

namespace keel {
namespace {

using distribute::KeyedTable;

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

// The part of a state that is one JSON text. 64-bit unsigned numbers are texts.
std::string text_of(const DynamicTableState& state) {
  Config counters = Config::dict();
  for (const auto& [name, member] : named_counters()) {
    counters.set(name, state.statistics.*member);
  }
  return to_json(
      Config::dict({{"updates", state.statistics.updates},
                    {"clock", state.clock},
                    {"key", state.keys.dtype() == DType::kString ? "string" : "int64"},
                    {"dim", state.rows.dim(1)},
                    {"stream", Config::dict({{"seed", number_text(state.stream.seed)},
                                             {"purpose", number_text(state.stream.purpose)}})},
                    {"counters", counters}}));
}

void read_text(const std::string& text, DynamicTableState& state) {
  const Config config = parse_json(text);
  state.statistics.updates = config["updates"].integer();
  state.clock = config["clock"].integer();
  state.stream = {.seed = unsigned_of(config["stream"]["seed"]),
                  .purpose = unsigned_of(config["stream"]["purpose"])};
  for (const auto& [name, member] : named_counters()) {
    state.statistics.*member = config["counters"][name].integer();
  }
}

Tensor rows_at(const Tensor& of, std::span<const int64_t> order) {
  if (of.dtype() == DType::kString) return distribute::state_rows<std::string>(of, order);
  if (of.dtype() == DType::kInt64) return distribute::state_rows<int64_t>(of, order);
  return distribute::state_rows<float>(of, order);
}

// Returns the positions of keys in ascending order, by (shard, key) or by key.
template <class Key>
std::vector<int64_t> order_of(const Tensor& keys, bool by_shard) {
  const auto values = keys.data<Key>();
  std::vector<int> shards(values.size());
  for (size_t i = 0; i < values.size() && by_shard; ++i) {
    shards[i] = distribute::key_shard(distribute::key_hash(values[i]));
  }
  std::vector<int64_t> out(values.size());
  std::iota(out.begin(), out.end(), 0);
  std::ranges::sort(out, [&](int64_t a, int64_t b) {
    return std::tie(shards[a], values[a]) < std::tie(shards[b], values[b]);
  });
  return out;
}

std::vector<int64_t> order_of(const Tensor& keys, bool by_shard) {
  return keys.dtype() == DType::kString ? order_of<std::string>(keys, by_shard)
                                        : order_of<int64_t>(keys, by_shard);
}

// Reorders all parts of a state that have one row per key.
void reorder(DynamicTableState& state, bool by_shard) {
  const std::vector<int64_t> order = order_of(state.keys, by_shard);
  for (Tensor* const part : {&state.keys, &state.rows, &state.count, &state.last, &state.born}) {
    *part = rows_at(*part, order);
  }
  for (auto& [name, slot] : state.slots) slot = rows_at(slot, order);
  const std::vector<int64_t> pending = order_of(state.pending_keys, by_shard);
  for (Tensor* const part : {&state.pending_keys, &state.pending_count, &state.pending_last}) {
    *part = rows_at(*part, pending);
  }
}

// Returns the first row of each key shard, and the number of rows.
Tensor first_rows(const Tensor& keys) {
  std::vector<int64_t> out(distribute::kKeyShards + 1);
  const auto count = [&](const auto& values) {
    for (const auto& key : values) ++out[distribute::key_shard(distribute::key_hash(key)) + 1];
  };
  if (keys.dtype() == DType::kString) {
    count(keys.data<std::string>());
  } else {
    count(keys.data<int64_t>());
  }
  std::partial_sum(out.begin(), out.end(), out.begin());
  return Tensor::from(out, {std::ssize(out)});
}

Tensor sketch_tensor(const std::vector<uint8_t>& cells) {
  return Tensor::from(cells, {std::ssize(cells)});
}

// The values of the entries of one table: a copy of it, and what has been set.
class Parts {
 public:
  explicit Parts(std::function<KeyedTable*()> access) : access_(std::move(access)) {}

  // Returns the copy in the order of files.
  const DynamicTableState& copy() {
    if (!copy_) {
      copy_ = access_()->state();
      reorder(*copy_, true);
    }
    return *copy_;
  }
  // What restore() makes the new table.
  DynamicTableState& stored() {
    if (!stored_) {
      stored_ = access_()->state();
      // Slots that are not set start anew.
      stored_->slots.clear();
      stored_->fallback_slots.clear();
    }
    return *stored_;
  }
  void restore(const std::string& text) {
    if (text.empty()) {
      take_static_rows();
    } else {
      read_text(text, stored());
    }
    check_lengths();
    reorder(stored(), false);
    access_()->restore(stored());
    stored_.reset();
    copy_.reset();
  }

 private:
  // Completes the rows of a static table: row i becomes the row of id i.
  void take_static_rows() {
    const KeyedTable& table = *access_();
    const DynamicVocabulary& dynamic = table.options().dynamic;
    DynamicTableState& s = stored();
    const int64_t n = s.rows.dim(0);
    const auto refuse = [&](const std::string& why) {
      stored_.reset();
      throw ValueError("restore: the ", n, " rows of a static table cannot become rows of table '",
                       table.options().name, "', ", why);
    };
    if (dynamic.key == KeyType::kString) {
      refuse("whose ids are strings; use assign_rows for them");
    }
    if (dynamic.capacity > 0 && n > dynamic.capacity) {
      refuse(str("which has capacity ", dynamic.capacity, "; increase capacity"));
    }
    std::vector<int64_t> keys(n);
    std::iota(keys.begin(), keys.end(), 0);
    s.keys = Tensor::from(keys, {n});
    for (Tensor* const part : {&s.count, &s.last, &s.born}) {
      *part = Tensor::zeros({n}, DType::kInt64);
    }
    for (Tensor* const part : {&s.pending_keys, &s.pending_count, &s.pending_last}) {
      *part = Tensor::zeros({0}, DType::kInt64);
    }
    s.fallback_slots = table.state().fallback_slots;
    s.statistics = {.updates = s.statistics.updates, .assigned = n};
  }
  // reorder() requires that all parts have one row per key.
  void check_lengths() {
    const DynamicTableState& s = stored();
    const int64_t n = s.keys.size();
    bool fits = s.pending_count.size() == s.pending_keys.size() &&
                s.pending_last.size() == s.pending_keys.size();
    for (const Tensor* const part : {&s.count, &s.last, &s.born}) {
      fits = fits && part->size() == n;
    }
    fits = fits && s.rows.dim(0) == n;
    for (const auto& [name, slot] : s.slots) fits = fits && slot.dim(0) == n;
    if (!fits) {
      throw ValueError("restore: the parts of table '", access_()->options().name,
                       "' have different numbers of rows; the file is damaged");
    }
  }

  std::function<KeyedTable*()> access_;
  std::optional<DynamicTableState> copy_, stored_;
};

// Adds entries to a list.
class EntryList {
 public:
  EntryList(std::string table, const std::function<KeyedTable*()>& access)
      : table_(std::move(table)), parts_(std::make_shared<Parts>(access)) {}

  // Adds the entry of a part, a member of the state.
  void add(const std::string& name, StateEntry::Kind kind, const TensorSpec& spec,
           Tensor DynamicTableState::* part) {
    add(
        name, kind, spec, [parts = parts_, part] { return parts->copy().*part; },
        [parts = parts_, part](const Tensor& value) { parts->stored().*part = value; });
  }
  // Adds the entry of a slot, or of a slot of the fallback rows.
  void add_slot(const std::string& name, const std::string& slot, const TensorSpec& spec,
                std::map<std::string, Tensor> DynamicTableState::* part) {
    add(
        name, StateEntry::Kind::kSlot, spec,
        [parts = parts_, part, slot] { return (parts->copy().*part).at(slot); },
        [parts = parts_, part, slot](const Tensor& value) {
          (parts->stored().*part)[slot] = value;
        });
  }
  void add(const std::string& name, StateEntry::Kind kind, const TensorSpec& spec,
           std::function<Tensor()> get, std::function<void(const Tensor&)> set) {
    out_.push_back({.name = name,
                    .spec = spec,
                    .kind = kind,
                    .trainable = name == table_,
                    .get = std::move(get),
                    .set = std::move(set),
                    .any_rows = true});
  }
  const std::shared_ptr<Parts>& parts() const { return parts_; }
  std::vector<StateEntry> take() { return std::move(out_); }

 private:
  const std::string table_;
  const std::shared_ptr<Parts> parts_;
  std::vector<StateEntry> out_;
};

}  // namespace

std::vector<StateEntry> dynamic_entries(const std::string& table,
                                        const std::vector<std::string>& slots,
                                        const KeyedTable& now,
                                        const std::function<KeyedTable*()>& access) {
  using S = DynamicTableState;
  constexpr auto kWeight = StateEntry::Kind::kWeight;
  constexpr auto kSlot = StateEntry::Kind::kSlot;
  const std::string prefix = table + "/";
  const DynamicTableStatistics statistics = now.statistics();
  const DynamicVocabulary& dynamic = now.options().dynamic;
  const int64_t n = statistics.size, dim = now.options().dim;
  const DType of_keys = dynamic.key == KeyType::kString ? DType::kString : DType::kInt64;
  const auto rows = [dim](int64_t count) { return TensorSpec{.shape = {count, dim}}; };
  const auto slot_rows = [dim](const Slot& slot, int64_t count) {
    return TensorSpec{.shape = {count, slot.per_row ? 1 : dim}};
  };
  const auto numbers = [](int64_t count) {
    return TensorSpec{.shape = {count}, .dtype = DType::kInt64};
  };
  EntryList list(table, access);
  const auto parts = list.parts();
  list.add(prefix + "keys", kWeight, {.shape = {n}, .dtype = of_keys}, &S::keys);
  list.add(table, kWeight, rows(n), &S::rows);
  const std::vector<Slot>& names = now.options().slots;
  for (size_t i = 0; i < names.size(); ++i) {
    list.add_slot(slots.at(i), names[i].name, slot_rows(names[i], n), &S::slots);
  }
  list.add(prefix + "count", kWeight, numbers(n), &S::count);
  list.add(prefix + "last", kWeight, numbers(n), &S::last);
  list.add(prefix + "born", kWeight, numbers(n), &S::born);
  list.add(
      prefix + "shards", kSlot, numbers(distribute::kKeyShards + 1),
      [parts] { return first_rows(parts->copy().keys); }, [](const Tensor&) {});
  const int64_t pending = statistics.pending;
  list.add(prefix + "pending/keys", kSlot, {.shape = {pending}, .dtype = of_keys},
           &S::pending_keys);
  list.add(prefix + "pending/count", kSlot, numbers(pending), &S::pending_count);
  list.add(prefix + "pending/last", kSlot, numbers(pending), &S::pending_last);
  list.add(
      prefix + "sketch", kSlot, {.shape = {now.memory().sketch}, .dtype = DType::kUint8},
      [parts] { return sketch_tensor(parts->copy().sketch); },
      [parts](const Tensor& value) { parts->stored().sketch = value.to_vector<uint8_t>(); });
  const int64_t fallback = dynamic.not_admitted.fallback_rows();
  list.add(prefix + "fallback", kWeight, rows(fallback), &S::fallback);
  for (size_t i = 0; i < names.size(); ++i) {
    list.add_slot(prefix + "fallback/" + slots.at(i).substr(prefix.size()), names[i].name,
                  slot_rows(names[i], fallback), &S::fallback_slots);
  }
  list.add(
      prefix + "state", kWeight, {.shape = {}, .dtype = DType::kString},
      [parts] { return Tensor::scalar(text_of(parts->copy())); },
      [parts](const Tensor& value) { parts->restore(value.item<std::string>()); });
  return list.take();
}

std::string dynamic_notice(const std::string& caller, const DynamicTableStatistics& s) {
  const double share = s.looked_up == 0 ? 0
                                        : 100.0 * static_cast<double>(s.not_admitted) /
                                              static_cast<double>(s.looked_up);
  return str(caller, " has ", s.size, " rows; ", std::round(10 * share) / 10,
             " % of the ids were not admitted, ",
             s.evicted_ttl + s.evicted_norm + s.evicted_capacity, " ids were evicted, ", s.refused,
             " were refused");
}

}  // namespace keel

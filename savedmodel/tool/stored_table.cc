#include <keel/savedmodel/tool/stored_table.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/framework/base/internal/text.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>

namespace keel::tool {
namespace {

constexpr size_t kMostFrequent = 10;

std::string id_text(const Tensor& keys, int64_t i) { return value_text(keys, i); }

std::string row_text(const Tensor& rows, int64_t row) {
  std::string out;
  const int64_t dim = rows.dim(1);
  for (int64_t j = 0; j < dim; ++j) out += ' ' + value_text(rows, row * dim + j);
  return out;
}

// Returns the position of an id given as text; unset if it has none.
std::optional<int64_t> position_of(const Tensor& keys, const std::string& id) {
  if (!keys) return {};
  if (keys.dtype() == DType::kString) {
    const auto values = keys.data<std::string>();
    const auto at = std::ranges::find(values, id);
    if (at == values.end()) return {};
    return at - values.begin();
  }
  const auto number = parse_number<int64_t>(id);
  if (!number) throw ValueError("keel inspect: the ids are integers, received '", id, "'");
  const auto values = keys.data<int64_t>();
  const auto at = std::ranges::find(values, *number);
  if (at == values.end()) return {};
  return at - values.begin();
}

// Describes what a lookup of an id without a row returns.
std::string miss_text(const StoredTable& table, const DynamicTableState& state,
                      const std::string& id) {
  const int64_t others = state.fallback ? state.fallback.dim(0) : 0;
  if (others == 0) {
    if (!table.options) return "zeros, or nothing with NotAdmitted::ignore()";
    return table.options->not_admitted.kind == NotAdmitted::Kind::kIgnore
               ? "nothing: the id is left out"
               : "zeros";
  }
  const int64_t row = state.keys.dtype() == DType::kString
                          ? distribute::fallback_row(id, others)
                          : distribute::fallback_row(*parse_number<int64_t>(id), others);
  return absl::StrCat("fallback row ", row, " =", row_text(state.fallback, row));
}

void print_counters(const DynamicTableStatistics& s) {
  std::cout << "    counters  updates " << s.updates << ", looked up " << s.looked_up << " (hits "
            << s.hits << ", fresh " << s.fresh << ", not admitted " << s.not_admitted
            << "), admitted " << s.admitted << ", assigned " << s.assigned << ", refused "
            << s.refused << ", evicted " << s.evicted_ttl << " by ttl, " << s.evicted_norm
            << " by norm, " << s.evicted_capacity << " by capacity, pruned " << s.pruned
            << ", erased " << s.erased << '\n';
}

// Returns the positions of the ids with the highest counts, the lowest id first among equals.
std::vector<int64_t> most_frequent(const DynamicTableState& state) {
  const auto counts = state.count.data<int64_t>();
  std::vector<int64_t> out(counts.size());
  std::iota(out.begin(), out.end(), 0);
  const size_t n = std::min(kMostFrequent, out.size());
  const auto before = [&](int64_t a, int64_t b) {
    if (counts[a] != counts[b]) return counts[a] > counts[b];
    if (state.keys.dtype() == DType::kString) {
      return state.keys.data<std::string>()[a] < state.keys.data<std::string>()[b];
    }
    return state.keys.data<int64_t>()[a] < state.keys.data<int64_t>()[b];
  };
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), before);
  out.resize(n);
  return out;
}

void print_table(const StoredTable& table) {
  const DynamicTableState state = table.get();
  const int64_t n = state.keys.size();
  std::cout << "  " << table.name << "  " << state.keys.dtype() << " ids, " << n << " rows of "
            << state.rows.dim(1);
  if (table.options) {
    const int64_t capacity = table.options->capacity;
    std::cout << ", capacity " << (capacity == 0 ? "unbounded" : std::to_string(capacity));
  }
  if (state.pending_keys && state.pending_keys.size() > 0) {
    std::cout << ", " << state.pending_keys.size() << " pending ids";
  }
  std::cout << '\n';
  if (table.options) std::cout << "    options   " << to_json(encode(*table.options)) << '\n';
  if (!table.state_text.empty()) std::cout << "    state     " << table.state_text << '\n';
  if (table.state_text.empty() && table.options) print_counters(state.statistics);
  std::cout << "    most frequent ids" << (n == 0 ? "  none" : "");
  const auto counts = state.count.data<int64_t>();
  for (const int64_t i : most_frequent(state)) {
    std::cout << "  " << id_text(state.keys, i) << " (" << counts[i] << ')';
  }
  std::cout << '\n';
}

// The values of a file that belong to the table with this name.
class TableParts {
 public:
  TableParts(std::string name, const StoredValues& values) : name_(std::move(name)) {
    for (const auto* list : {&values.weights, &values.optimizer}) {
      for (const StoredValue& value : *list) {
        if (is_part(value.name)) parts_.emplace(part_of(value.name), value);
      }
    }
  }

  bool is_part(const std::string& value) const {
    return value == name_ || value.starts_with(name_ + "/");
  }

  StoredTable table() const {
    StoredTable out = {.name = name_, .get = [parts = *this] { return parts.state(); }};
    if (const auto at = parts_.find("state"); at != parts_.end()) {
      out.state_text = at->second.get().data<std::string>()[0];
    }
    out.has_times = parts_.contains("last");
    return out;
  }

 private:
  // Returns the name of a part; "rows" for the rows, which checkpoints store under the table's
  // name.
  std::string part_of(const std::string& value) const {
    return value == name_ ? "rows" : value.substr(name_.size() + 1);
  }
  Tensor get(const std::string& part) const {
    const auto at = parts_.find(part);
    return at == parts_.end() ? Tensor() : at->second.get();
  }
  DynamicTableState state() const {
    DynamicTableState out = {.keys = get("keys"),
                             .rows = get("rows"),
                             .slots = {},
                             .count = get("count"),
                             .last = get("last"),
                             .born = get("born"),
                             .pending_keys = get("pending/keys"),
                             .pending_count = get("pending/count"),
                             .pending_last = {},
                             .fallback = get("fallback"),
                             .fallback_slots = {}};
    const int64_t n = out.keys.size();
    if (out.keys.rank() != 1 || out.rows.rank() != 2 || out.rows.dim(0) != n ||
        out.rows.dtype() != DType::kFloat32 || out.count.dtype() != DType::kInt64 ||
        out.count.size() != n) {
      throw ValueError(name_,
                       ": the parts of the table do not fit each other; the file is damaged");
    }
    static const std::set<std::string> kKnown = {"rows", "fallback"};
    for (const auto& [part, value] : parts_) {
      const bool is_slot =
          !kKnown.contains(part) && !absl::StrContains(part, '/') && value.spec == out.rows.spec();
      if (is_slot) out.slots.emplace(part, value.get());
    }
    return out;
  }

  const std::string name_;
  std::map<std::string, StoredValue> parts_;
};

// Compares two stored tables.
class TableComparison {
 public:
  TableComparison(const StoredTable& a, const StoredTable& b, double atol)
      : name_("table " + a.name), a_(a.get()), b_(b.get()), atol_(atol), texts_(a, b) {}

  std::vector<std::string> lines() && {
    if (a_.keys.dtype() != b_.keys.dtype() || a_.rows.dim(1) != b_.rows.dim(1)) {
      return {str(name_, ": ", a_.keys.dtype(), " ids, rows of ", a_.rows.dim(1), " and ",
                  b_.keys.dtype(), " ids, rows of ", b_.rows.dim(1))};
    }
    if (a_.keys.dtype() == DType::kString) {
      compare<std::string>();
    } else {
      compare<int64_t>();
    }
    compare_fallback();
    if (texts_.first != texts_.second) {
      lines_.push_back(absl::StrCat(name_, " state: ", texts_.first, " and ", texts_.second));
    }
    return std::move(lines_);
  }

 private:
  struct Texts : std::pair<std::string, std::string> {
    Texts(const StoredTable& a, const StoredTable& b) : pair(a.state_text, b.state_text) {}
  };

  template <class Key>
  static std::map<Key, int64_t> positions(const Tensor& keys) {
    std::map<Key, int64_t> out;
    int64_t i = 0;
    for (const Key& key : keys.data<Key>()) out.emplace(key, i++);
    return out;
  }

  template <class Key>
  void compare() {
    const std::map<Key, int64_t> in_a = positions<Key>(a_.keys), in_b = positions<Key>(b_.keys);
    std::vector<std::pair<int64_t, int64_t>> both;
    count_absent(in_a, in_b, a_.keys, "A");
    count_absent(in_b, in_a, b_.keys, "B");
    for (const auto& [key, i] : in_a) {
      if (const auto at = in_b.find(key); at != in_b.end()) both.emplace_back(i, at->second);
    }
    compare_rows("rows", a_.rows, b_.rows, both);
    for (const auto& [slot, values] : a_.slots) {
      const auto at = b_.slots.find(slot);
      if (at != b_.slots.end()) compare_rows("slot " + slot, values, at->second, both);
    }
    compare_numbers("counts", a_.count, b_.count, both);
    compare_numbers("last times", a_.last, b_.last, both);
    compare_numbers("first times", a_.born, b_.born, both);
  }

  template <class Key>
  void count_absent(const std::map<Key, int64_t>& in, const std::map<Key, int64_t>& other,
                    const Tensor& keys, const char* where) {
    int64_t count = 0;
    std::string first;
    for (const auto& [key, i] : in) {
      if (other.contains(key)) continue;
      if (count++ == 0) first = id_text(keys, i);
    }
    if (count > 0)
      lines_.push_back(
          absl::StrCat(name_, ": ", count, " ids only in ", where, ", the first ", first));
  }

  void compare_rows(const std::string& what, const Tensor& x, const Tensor& y,
                    const std::vector<std::pair<int64_t, int64_t>>& both) {
    const int64_t dim = x.dim(1);
    const auto a = x.data<float>(), b = y.data<float>();
    int64_t count = 0, at = 0;
    double largest = 0;
    for (const auto& [i, j] : both) {
      double most = 0;
      for (int64_t d = 0; d < dim; ++d) {
        const double p = a[i * dim + d], q = b[j * dim + d];
        if (p == q || (std::isnan(p) && std::isnan(q))) continue;
        const double difference = std::abs(p - q);
        most = std::max(
            most, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
      }
      if (most <= atol_) continue;
      ++count;
      if (most > largest) {
        largest = most;
        at = i;
      }
    }
    if (count == 0) return;
    lines_.push_back(absl::StrCat(name_, ": ", what, " of ", count, " ids differ, by up to ",
                                  number_text(largest), " at ", id_text(a_.keys, at)));
  }

  void compare_numbers(const char* what, const Tensor& x, const Tensor& y,
                       const std::vector<std::pair<int64_t, int64_t>>& both) {
    if (!x || !y || x.size() != a_.keys.size() || y.size() != b_.keys.size()) return;
    const auto a = x.data<int64_t>(), b = y.data<int64_t>();
    const auto differs = [&](const auto& pair) { return a[pair.first] != b[pair.second]; };
    const auto count = std::ranges::count_if(both, differs);
    if (count == 0) return;
    const auto first = std::ranges::find_if(both, differs);
    lines_.push_back(absl::StrCat(name_, ": ", what, " of ", count, " ids differ, the first at ",
                                  id_text(a_.keys, first->first), ": ", a[first->first], " and ",
                                  b[first->second]));
  }

  void compare_fallback() {
    if (!a_.fallback || !b_.fallback) return;
    if (a_.fallback.shape() != b_.fallback.shape()) {
      lines_.push_back(absl::StrCat(name_, ": ", a_.fallback.dim(0), " and ", b_.fallback.dim(0),
                                    " fallback rows"));
      return;
    }
    const auto a = a_.fallback.data<float>(), b = b_.fallback.data<float>();
    int64_t count = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool is_equal = a[i] == b[i] || std::abs(double{a[i]} - b[i]) <= atol_;
      count += is_equal ? 0 : 1;
    }
    if (count > 0)
      lines_.push_back(absl::StrCat(name_, ": ", count, " values of fallback rows differ"));
  }

  const std::string name_;
  const DynamicTableState a_, b_;
  const double atol_;
  const Texts texts_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<StoredTable> tables_of(const Model& model) {
  std::vector<StoredTable> out;
  for (const NamedDynamicTable& table : all_dynamic_tables(model)) {
    out.push_back({.name = table.layer + "/" + table.name,
                   .get = [table = table.table] { return table.state(); },
                   .options = table.table.options()});
  }
  return out;
}

std::vector<StoredTable> take_tables(StoredValues& values) {
  constexpr std::string_view kKeys = "/keys";
  const auto has = [&](const std::string& name) {
    return std::ranges::find(values.weights, name, &StoredValue::name) != values.weights.end();
  };
  std::vector<std::string> names;
  for (const StoredValue& value : values.weights) {
    if (!value.name.ends_with(kKeys)) continue;
    const std::string name = value.name.substr(0, value.name.size() - kKeys.size());
    if (has(name + "/count") && (has(name) || has(name + "/rows"))) names.push_back(name);
  }
  std::vector<StoredTable> out;
  for (const std::string& name : names) {
    const TableParts parts(name, values);
    out.push_back(parts.table());
    for (auto* list : {&values.weights, &values.optimizer}) {
      std::erase_if(*list, [&](const StoredValue& value) { return parts.is_part(value.name); });
    }
  }
  return out;
}

void print_dynamic_tables(const std::vector<StoredTable>& tables) {
  if (tables.empty()) return;
  std::cout << "\ntables for unbounded ids\n";
  for (const StoredTable& table : tables) print_table(table);
}

const StoredTable* table_named(const std::vector<StoredTable>& tables, const std::string& name) {
  const auto exact = std::ranges::find(tables, name, &StoredTable::name);
  if (exact != tables.end()) return &*exact;
  const StoredTable* found = nullptr;
  for (const StoredTable& table : tables) {
    if (!absl::StrContains("/" + table.name + "/", "/" + name + "/")) continue;
    if (found != nullptr) {
      throw ValueError("'", name, "' is ambiguous; it may be ", found->name, " or ", table.name);
    }
    found = &table;
  }
  return found;
}

void print_id(const StoredTable& table, const std::string& id) {
  const DynamicTableState state = table.get();
  const std::optional<int64_t> at = position_of(state.keys, id);
  const std::string name = absl::StrCat(table.name, "[", id, "]");
  if (!at) {
    const std::optional<int64_t> pending = position_of(state.pending_keys, id);
    const int64_t count = pending ? state.pending_count.data<int64_t>()[*pending] : 0;
    std::cout << name << ": not in the table, pending count " << count << '\n'
              << "a lookup returns " << miss_text(table, state, id) << '\n';
    return;
  }
  std::cout << name << ": count " << state.count.data<int64_t>()[*at];
  if (table.has_times) {
    std::cout << ", last " << state.last.data<int64_t>()[*at] << ", born "
              << state.born.data<int64_t>()[*at];
  }
  std::cout << '\n' << name << " =" << row_text(state.rows, *at) << '\n';
  for (const auto& [slot, values] : state.slots) {
    std::cout << slot << " =" << row_text(values, *at) << '\n';
  }
}

std::vector<std::string> table_differences(const std::vector<StoredTable>& a,
                                           const std::vector<StoredTable>& b, double atol) {
  std::vector<std::string> out;
  for (const StoredTable& table : a) {
    const auto other = std::ranges::find(b, table.name, &StoredTable::name);
    if (other == b.end()) {
      out.push_back(absl::StrCat("table ", table.name, ": only in A"));
      continue;
    }
    for (std::string& line : TableComparison(table, *other, atol).lines()) {
      out.push_back(std::move(line));
    }
  }
  for (const StoredTable& table : b) {
    if (std::ranges::find(a, table.name, &StoredTable::name) == a.end()) {
      out.push_back(absl::StrCat("table ", table.name, ": only in B"));
    }
  }
  return out;
}

}  // namespace keel::tool

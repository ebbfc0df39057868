#include <keel/layers/embedding/distributed/internal/table_stacking.h>

#include <algorithm>
#include <set>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/framework/update_rule.h>

namespace keel {
namespace {

constexpr int64_t kTile = 8;  // rows and columns are padded to multiples of it

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Returns false for updates that may depend on a whole row or on the gradient of a whole table, and
// for slots created for one table.
bool is_elementwise(const EmbeddingOptimizer& optimizer) {
  if (!optimizer) return true;
  return !optimizer->custom && !optimizer->required_dim && optimizer->clipnorm == 0 &&
         !optimizer->slot_variable_creation_fn &&
         !std::ranges::any_of(optimizer->rule->slots(), &Slot::per_row);
}

// Returns null if both tables may share a stack, else the property in which they differ.
const char* difference(const StackableTable& a, const StackableTable& b) {
  if (a.dynamic || b.dynamic) return "fixed number of rows";
  if (padded_dim(a.dim) != padded_dim(b.dim)) return "padded dim";
  if (a.combiner != b.combiner) return "combiner";
  return a.optimizer == b.optimizer && is_elementwise(a.optimizer) ? nullptr : "optimizer";
}

using Group = std::vector<int>;  // positions of tables

int64_t activation_bytes(const StackableTable& table, int shards) {
  return table.samples / shards * padded_dim(table.dim) * static_cast<int64_t>(sizeof(float));
}

std::vector<Group> group_by_name(const std::vector<StackableTable>& tables,
                                 const StackingOptions& options) {
  Group by_name(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) by_name[t] = static_cast<int>(t);
  std::ranges::sort(by_name, {}, [&](int t) { return tables[t].name; });
  std::vector<Group> out;
  std::vector<int64_t> bytes;  // by group
  for (const int t : by_name) {
    const int64_t needed = activation_bytes(tables[t], options.shards);
    size_t g = 0;
    while (g < out.size() && (difference(tables[out[g][0]], tables[t]) != nullptr ||
                              bytes[g] + needed > options.activation_mem_bytes_limit)) {
      ++g;
    }
    if (g == out.size()) {
      out.emplace_back();
      bytes.push_back(0);
    }
    out[g].push_back(t);
    bytes[g] += needed;
  }
  return out;
}

int find_table(const std::vector<StackableTable>& tables, const std::string& name) {
  const auto it = std::ranges::find(tables, name, &StackableTable::name);
  if (it != tables.end()) return static_cast<int>(it - tables.begin());
  throw ValueError("table_stacking: unknown table '", name,
                   "'; name tables with placement sparsecore");
}

std::vector<Group> group_by_lists(const std::vector<StackableTable>& tables,
                                  const std::vector<std::vector<std::string>>& lists) {
  std::vector<Group> out;
  std::set<int> stacked;
  for (const std::vector<std::string>& list : lists) {
    Group group;
    for (const std::string& name : list) {
      const int t = find_table(tables, name);
      if (tables[t].dynamic) {
        throw ValueError("table_stacking: table '", name,
                         "' has dynamic ids and cannot be stacked; remove it from the lists");
      }
      if (std::ranges::find(group, t) != group.end()) {
        throw ValueError("table_stacking: a list must name a table only once, received '", name,
                         "' twice");
      }
      if (!stacked.insert(t).second) {
        throw ValueError("table_stacking: a table can be in only one stack, received '", name,
                         "' in two lists; list it once");
      }
      if (!group.empty()) {
        const StackableTable& first = tables[group[0]];
        if (const char* what = difference(first, tables[t])) {
          throw ValueError("table_stacking: tables of one stack must have the same ", what,
                           ", but those of '", first.name, "' and '", name, "' differ");
        }
      }
      group.push_back(t);
    }
    if (!group.empty()) out.push_back(std::move(group));
  }
  for (int t = 0; t < std::ssize(tables); ++t) {
    if (!stacked.contains(t)) out.push_back({t});
  }
  return out;
}

TableStack make_stack(const std::vector<StackableTable>& tables, const Group& group,
                      const StackingOptions& options) {
  TableStack out = {.shards = options.shards};
  const bool alone = group.size() == 1;
  int64_t shard_row = 0;
  for (const int t : group) {
    const StackableTable& table = tables[t];
    const auto turns = static_cast<int>(out.members.size());
    out.name += (turns == 0 ? "" : "_") + table.name;
    out.dim = alone ? table.dim : padded_dim(table.dim);
    const int64_t rows = alone ? table.vocabulary_size
                               : padded_vocabulary_size(table.vocabulary_size, options.shards);
    out.members.push_back({.table = t,
                           .name = table.name,
                           .vocabulary_size = table.vocabulary_size,
                           .dim = table.dim,
                           .padded_vocabulary_size = rows,
                           .shard_row = shard_row,
                           .rotation = turns * options.sparse_cores_per_device % options.shards});
    out.vocabulary_size += rows;
    shard_row += rows / options.shards;
  }
  return out;
}

}  // namespace

TableStacking::TableStacking(const char* text) : auto_(true) {
  if (std::string(text) != "auto") {
    throw ValueError(
        "table_stacking: must be \"auto\", std::nullopt or lists of table names, received '", text,
        "'");
  }
}

Config encode(const TableStacking& stacking) {
  if (stacking.auto_) return "auto";
  if (stacking.lists_.empty()) return {};
  return stacking.one_list_ ? encode(stacking.lists_[0]) : encode(stacking.lists_);
}

void decode(const Config& config, TableStacking& stacking) {
  if (config.is_null()) {
    stacking = std::nullopt;
  } else if (config.is_string()) {
    stacking = config.string().c_str();
  } else if (!config.items().empty() && config.items()[0].is_string()) {
    std::vector<std::string> names;
    decode(config, names);
    stacking = std::move(names);
  } else {
    std::vector<std::vector<std::string>> lists;
    decode(config, lists);
    stacking = std::move(lists);
  }
}

int64_t padded_dim(int64_t dim) { return round_up(dim, kTile); }

int64_t padded_vocabulary_size(int64_t vocabulary_size, int shards) {
  return round_up(vocabulary_size, kTile * shards);
}

std::optional<TableStack::MemberId> TableStack::find(int64_t row) const {
  const int64_t local = row / shards;
  // Members are in ascending order of shard_row: the last one that starts at or before `local`
  // holds the row.
  for (auto it = members.rbegin(); it != members.rend(); ++it) {
    if (local < it->shard_row) continue;
    const int64_t turn = (row % shards - it->rotation + shards) % shards;
    const int64_t id = (local - it->shard_row) * shards + turn;
    return id < it->vocabulary_size ? std::optional(MemberId{&*it, id}) : std::nullopt;
  }
  return {};
}

TableStack::RowRange TableStack::rows_of(const StackMember& member, int64_t begin,
                                         int64_t end) const {
  return {.begin = (member.shard_row + begin / shards) * shards,
          .end = (member.shard_row + (end + shards - 1) / shards) * shards};
}

void TableStack::unstack(const StackMember& member, int64_t begin, int64_t end, const float* rows,
                         float* out) const {
  const int64_t first = rows_of(member, begin, end).begin;
  for (int64_t id = begin; id < end; ++id, out += member.dim) {
    std::copy_n(rows + (row(member, id) - first) * dim, member.dim, out);
  }
}

void TableStack::stack(const StackMember& member, int64_t begin, int64_t end, const float* values,
                       float* rows) const {
  const int64_t first = rows_of(member, begin, end).begin;
  for (int64_t id = begin; id < end; ++id, values += member.dim) {
    std::copy_n(values, member.dim, rows + (row(member, id) - first) * dim);
  }
}

std::vector<TableStack> stack_tables(const std::vector<StackableTable>& tables,
                                     const TableStacking& stacking,
                                     const StackingOptions& options) {
  const std::vector<Group> groups = stacking.is_auto() ? group_by_name(tables, options)
                                                       : group_by_lists(tables, stacking.lists());
  std::vector<TableStack> out;
  std::set<std::string> names;
  for (const Group& group : groups) {
    TableStack stack = make_stack(tables, group, options);
    // The joined name of a stack may equal the name of another table.
    while (!names.insert(stack.name).second) stack.name += "_";
    out.push_back(std::move(stack));
  }
  return out;
}

}  // namespace keel

#include <keel/savedmodel/checkpoint/checkpoint.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/update_rule.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/optimizers/step/optimizer_slots.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>
#include <keel/savedmodel/keras/internal/model_weights.h>

namespace keel {
namespace {

// A value to save or restore.
struct Entry {
  std::string key;
  TensorSpec spec;
  bool required = false;
  bool is_slot = false;        // of a layer
  std::string optimizer = {};  // the optimizer that owns the slot; empty for other values
  std::function<Tensor()> get;
  std::function<void(const Tensor&)> set;
  std::optional<StateEntry::Rows> rows = {};
  bool any_rows = false;
  std::optional<StateEntry::Restore> restore = {};
};

// A variable that an optimizer may keep slots for.
struct Trained {
  std::string key;
  Variable variable;
  bool may_lack_slots = false;  // true if the variable may be used for serving only
};

Entry stored_as(std::string key, const StateEntry& entry) {
  return {.key = std::move(key),
          .spec = entry.spec,
          .required = entry.kind == StateEntry::Kind::kWeight,
          .is_slot = entry.kind == StateEntry::Kind::kSlot,
          .get = entry.get,
          .set = entry.set,
          .rows = entry.rows,
          .any_rows = entry.any_rows,
          .restore = entry.restore};
}

std::vector<Entry> model_entries(const CheckpointItems& items) {
  std::vector<Entry> out;
  if (!items.model) return out;
  for_each_state_entry(**items.model, [&](const std::string& path, const StateEntry& entry) {
    out.push_back(stored_as("model/" + path, entry));
  });
  return out;
}

std::vector<Entry> embedding_entries(const CheckpointItems& items) {
  std::vector<Entry> out;
  for (const auto& [name, tables] : items.embeddings) {
    for (const StateEntry& entry : tables->state_entries()) {
      out.push_back(stored_as(absl::StrCat("embeddings/", name, "/", entry.name), entry));
    }
  }
  return out;
}

std::vector<Trained> trained_in_model(const CheckpointItems& items) {
  if (!items.model) return {};
  std::map<uint64_t, std::string> keys;
  for_each_state_entry(**items.model, [&](const std::string& path, const StateEntry& entry) {
    if (entry.variable_id != 0) keys.emplace(entry.variable_id, "model/" + path);
  });
  std::vector<Trained> out;
  for (const Variable& variable : (*items.model)->trainable_variables()) {
    const auto it = keys.find(variable.id());
    if (it != keys.end()) out.push_back({.key = it->second, .variable = variable});
  }
  return out;
}

std::vector<Trained> trained_variables(const CheckpointItems& items) {
  std::vector<Trained> out = trained_in_model(items);
  for (const auto& [name, tables] : items.embeddings) {
    for (const Variable& variable : tables->trainable_variables()) {
      out.push_back({.key = absl::StrCat("embeddings/", name, "/", variable.name()),
                     .variable = variable,
                     .may_lack_slots = true});
    }
  }
  return out;
}

Entry slot_entry(const std::string& key, const std::string& name, const OptimizerHandle& optimizer,
                 const Variable& variable, size_t slot) {
  const auto shape = slot_shape(optimizer->optimizer_of(variable).rule(), slot, variable);
  return {.key = key,
          .spec = {.shape = shape.value_or(variable.shape()), .dtype = variable.dtype()},
          .optimizer = name,
          .get = [=] { return optimizer->slots(variable)[slot].read(); },
          .set =
              [=](const Tensor& value) {
                optimizer->build({variable});
                optimizer->slots(variable)[slot].assign(value);
              }};
}

// Returns the optimizers of the items and, after a MultiOptimizer "x", those that it shares the
// variables among as "x/0", "x/1", ..., whose counters replace those that it sets.
std::vector<std::pair<std::string, OptimizerHandle>> all_optimizers(const CheckpointItems& items) {
  std::vector<std::pair<std::string, OptimizerHandle>> out;
  for (const auto& item : items.optimizers) {
    out.emplace_back(item);
    const std::vector<OptimizerHandle> several = item.second->optimizers();
    for (size_t i = 0; i < several.size(); ++i) {
      out.emplace_back(absl::StrCat(item.first, "/", i), several[i]);
    }
  }
  return out;
}

void add_counters(const CheckpointItems& items, std::vector<Entry>& out) {
  for (const auto& item : all_optimizers(items)) {
    const OptimizerHandle& optimizer = item.second;
    const std::string prefix = "optimizers/" + item.first + "/";
    out.push_back({.key = prefix + "iteration",
                   .spec = {.shape = {}, .dtype = DType::kInt64},
                   .get = [=] { return optimizer->iterations_variable().read(); },
                   .set = [=](const Tensor& v) { optimizer->set_iterations(v.item<int64_t>()); }});
    const auto add_variable = [&](const std::string& key, const Variable& variable) {
      out.push_back({.key = prefix + key,
                     .spec = variable.spec(),
                     .get = [=] { return variable.read(); },
                     .set = [=](const Tensor& v) { variable.assign(v); }});
    };
    for (const Variable& own : optimizer->wrapper_variables()) {
      add_variable("wrapper/" + own.name(), own);
    }
    for (const Variable& shared : optimizer->shared_slots()) add_variable(shared.name(), shared);
    if (!optimizer->optimizers().empty() || !optimizer->learning_rate_source().number()) continue;
    out.push_back(
        {.key = prefix + "learning_rate",
         .spec = {.shape = {}, .dtype = DType::kFloat64},
         .get = [=] { return Tensor::scalar(optimizer->learning_rate()); },
         .set = [=](const Tensor& v) { optimizer->set_learning_rate(v.item<double>()); }});
  }
  for (const auto& item : items.variables) {
    const Variable& variable = item.second;
    out.push_back({.key = "variables/" + item.first,
                   .spec = variable.spec(),
                   .get = [=] { return variable.read(); },
                   .set = [=](const Tensor& v) { variable.assign(v); }});
  }
  for (const auto& [name, value] : items.values) {
    out.push_back({.key = "variables/" + name,
                   .spec = value.get().spec(),
                   .get = value.get,
                   .set = value.set,
                   .any_rows = value.any_rows});
  }
}

// Returns all values to save. If two optimizers have the same slot of a variable, "@<name>" is
// appended to the key of the second one.
std::vector<Entry> entries_to_save(const CheckpointItems& items) {
  std::vector<Entry> out = model_entries(items);
  std::ranges::move(embedding_entries(items), std::back_inserter(out));
  std::set<std::string> keys;
  for (const Entry& entry : out) {
    if (!keys.insert(entry.key).second) {
      throw ValueError("Checkpoint.write: two values of the model have the key ", entry.key,
                       "; rename one of their layers");
    }
  }
  const std::vector<Trained> trained = trained_variables(items);
  for (const auto& [name, optimizer] : items.optimizers) {
    for (const Trained& t : trained) {
      if (optimizer->slots(t.variable).empty()) continue;
      const Optimizer& own = optimizer->optimizer_of(t.variable);
      const std::vector<Slot>& slots = own.slot_specs();
      for (size_t s = 0; s < slots.size(); ++s) {
        if (!slot_shape(own.rule(), s, t.variable)) continue;
        std::string key = t.key + "/" + slots[s].name;
        if (!keys.insert(key).second) key += "@" + name;
        out.push_back(slot_entry(key, name, optimizer, t.variable, s));
      }
    }
  }
  add_counters(items, out);
  return out;
}

using Index = std::map<std::string, CheckpointReader::Stored>;  // by key

// Returns the key of an optimizer's slot in the file, which records the owners of slots. Returns an
// empty string if the optimizer does not restore this slot. A key that is not in the file is
// reported as missing.
std::string slot_key(const CheckpointItems& items, const Index& index, const std::string& optimizer,
                     const std::string& key, bool has_slots) {
  std::string own = absl::StrCat(key, "@", optimizer);
  if (index.contains(own)) return own;
  const auto found = index.find(key);
  const bool free = found == index.end() || found->second.optimizer.empty();
  const bool was_its = found != index.end() && found->second.optimizer == optimizer;
  if (items.optimizers.size() == 1 || was_its) return key;
  if (!has_slots) return {};
  return free ? key : own;
}

// Returns true if all slots of a rule have values in the file.
bool has_slots(const Index& index, const std::string& key, const UpdateRule& rule) {
  return std::ranges::all_of(rule.slots(), [&](const Slot& slot) {
    return index.contains(absl::StrCat(key, "/", slot.name));
  });
}

// Gives a table with dynamic ids the slots of its optimizer: of the only one, or of the one with
// the most slots among those that the file has all slots of.
void build_keyed_slots(const CheckpointItems& items, const Index& index, const Trained& table) {
  OptimizerHandle const* chosen = nullptr;
  size_t most = 0;
  for (const auto& [_, optimizer] : items.optimizers) {
    const UpdateRule& rule = optimizer->optimizer_of(table.variable).rule();
    const bool fits = items.optimizers.size() == 1 || has_slots(index, table.key, rule);
    if (!fits || rule.slots().size() <= most) continue;
    chosen = &optimizer;
    most = rule.slots().size();
  }
  if (chosen != nullptr) (*chosen)->build({table.variable});
}

// Returns true if the file lacks a slot because no step had used it yet: the optimizer had made no
// step, or it had made steps but only for other variables.
bool is_unused_slot(const CheckpointReader& file, const CheckpointItems& items,
                    const Entry& entry) {
  std::string optimizer = entry.optimizer;
  if (optimizer.empty() && entry.is_slot && items.optimizers.size() == 1) {
    optimizer = items.optimizers.begin()->first;  // the slot of a table with dynamic ids
  }
  if (optimizer.empty()) return false;
  const std::string iteration = absl::StrCat("optimizers/", optimizer, "/iteration");
  if (!file.index().contains(iteration)) return false;
  if (file.read(iteration).item<int64_t>() == 0) return true;
  const auto slot_of = [](std::string_view key) {
    return key.substr(key.rfind('/') + 1, key.find('@') - key.rfind('/') - 1);
  };
  return std::ranges::any_of(file.index(), [&](const auto& stored) {
    return stored.second.optimizer == optimizer && slot_of(stored.first) == slot_of(entry.key);
  });
}

// Returns at most ten keys, and the number of the others.
std::string listed(const std::vector<std::string>& keys) {
  constexpr size_t kMost = 10;
  const std::vector<std::string> first(keys.begin(),
                                       keys.begin() + std::min<ptrdiff_t>(kMost, std::ssize(keys)));
  return absl::StrCat(
      absl::StrJoin(first, ", "),
      keys.size() > kMost ? absl::StrCat(" and ", keys.size() - kMost, " more") : "");
}

void check_complete(const RestoreStatus& status) {
  if (status.missing.empty() && status.unused.empty()) return;
  std::string message = absl::StrCat("Checkpoint.restore: ", status.path);
  if (!status.missing.empty()) {
    absl::StrAppend(&message, " has no value for [", listed(status.missing), "]");
  }
  if (!status.unused.empty()) {
    absl::StrAppend(&message, status.missing.empty() ? "" : ", and",
                    " has values that nothing uses [", listed(status.unused), "]");
  }
  throw ValueError(message,
                   "; restore into the same model, optimizers and variables, or set "
                   "RestoreOptions::partial to restore what both have");
}

std::vector<Entry> slots_to_restore(const CheckpointItems& items, const Index& index) {
  std::vector<Entry> out;
  const std::vector<Trained> trained = trained_variables(items);
  for (const auto& [name, optimizer] : items.optimizers) {
    for (const Trained& t : trained) {
      const bool has_slots = !optimizer->slots(t.variable).empty();
      const Optimizer& own = optimizer->optimizer_of(t.variable);
      const std::vector<Slot>& slots = own.slot_specs();
      for (size_t s = 0; s < slots.size(); ++s) {
        if (!slot_shape(own.rule(), s, t.variable)) continue;
        const std::string key =
            slot_key(items, index, name, absl::StrCat(t.key, "/", slots[s].name), has_slots);
        if (key.empty() || (t.may_lack_slots && !has_slots && !index.contains(key))) continue;
        out.push_back(slot_entry(key, name, optimizer, t.variable, s));
      }
    }
  }
  return out;
}

void check_spec(const std::string& path, const Entry& entry, const TensorSpec& found) {
  const bool ignores_rows =
      entry.any_rows && found.shape.rank() > 0 && found.shape.rank() == entry.spec.shape.rank();
  const Shape wanted = ignores_rows ? entry.spec.shape.with(0, found.shape[0]) : entry.spec.shape;
  if (found.shape != wanted || found.dtype != entry.spec.dtype) {
    throw ValueError("Checkpoint.restore: ", entry.key, " must be ", entry.spec.dtype,
                     entry.spec.shape, ", but ", path, " has ", found.dtype, found.shape);
  }
}

// Returns the keys of the tables with dynamic ids for which the file has a static table.
std::vector<std::string> static_tables(const std::vector<Entry>& entries, const Index& index) {
  constexpr std::string_view kState = "/state";
  std::vector<std::string> out;
  for (const Entry& entry : entries) {
    if (!entry.any_rows || !entry.key.ends_with(kState)) continue;
    std::string table = entry.key.substr(0, entry.key.size() - kState.size());
    if (!index.contains(entry.key) && !index.contains(table + "/keys") && index.contains(table)) {
      out.push_back(std::move(table));
    }
  }
  return out;
}

// Returns true for the fallback rows of a table with dynamic ids, and for a slot of theirs.
bool is_fallback(const std::vector<Entry>& entries, const Entry& entry) {
  constexpr std::string_view kFallback = "/fallback";
  const size_t at = entry.key.rfind(kFallback);
  if (!entry.restore || at == std::string::npos) return false;
  const std::string table = entry.key.substr(0, at);
  const std::string rest = entry.key.substr(at + kFallback.size());
  return (rest.empty() || rest[0] == '/') &&
         std::ranges::any_of(entries, [&](const Entry& e) { return e.key == table + "/state"; });
}

// Lists an entry whose saved rows are not used because the table has another number of them.
void list_unless_equal_number(RestoreStatus& status, const Entry& entry, const TensorSpec& found) {
  if (entry.spec.shape[0] == found.shape[0]) return;
  (entry.spec.shape[0] > 0 ? status.initialized : status.unused).push_back(entry.key);
}

// Reads collectively, so that an error in one process stops all of them; setting a value may be
// collective too.
void assign(const CheckpointReader& file, const Entry& entry) {
  Tensor value;
  distribute::run_collectively(distribute::processes(), "Checkpoint.restore", [&] {
    if (!entry.rows) {
      value = file.read(entry.key);
      return;
    }
    file.read_rows(entry.key, entry.rows->first, entry.rows->end,
                   [&](int64_t begin, const Tensor& rows) {
                     entry.rows->write(begin, begin + rows.dim(0), rows.data<float>().data());
                   });
  });
  if (!entry.rows) entry.set(value);
}

// Passes a part of a table with dynamic ids to the table, which checks its parts.
void prepare(const CheckpointReader& file, const Entry& entry) {
  const StateEntry::Saved value = {.spec = file.index().at(entry.key).spec,
                                   .place = file.path() + ", " + entry.key,
                                   .read = [&file, key = entry.key](int64_t begin, int64_t end) {
                                     return file.read(key, begin, end);
                                   }};
  distribute::run_collectively(distribute::processes(), "Checkpoint.restore",
                               [&] { entry.restore->prepare(value); });
}

// Prepares the restoration of a table with dynamic ids from the rows and slots of a static table.
// An empty state means that there are no other parts (dynamic_entries.h).
void prepare_from_static(const Entry& state) {
  const StateEntry::Saved none = {
      .spec = state.spec, .read = [](int64_t, int64_t) { return Tensor::scalar(std::string()); }};
  distribute::run_collectively(distribute::processes(), "Checkpoint.restore",
                               [&] { state.restore->prepare(none); });
}

// Makes the parts of a table with dynamic ids the table, if the entry is its last part.
void replace_table(const Entry& entry) {
  if (!entry.restore->replace) return;
  distribute::run_collectively(distribute::processes(), "Checkpoint.restore",
                               [&] { entry.restore->replace(); });
  entry.restore->finish();
}

}  // namespace

void RestoreStatus::assert_consumed() const {
  if (missing.empty() && unused.empty() && initialized.empty()) return;
  throw ValueError("RestoreStatus.assert_consumed: ", path, " has no value for [",
                   absl::StrJoin(missing, ", "), "] and has unused values [",
                   absl::StrJoin(unused, ", "), "]",
                   initialized.empty() ? "" : "; initialized because their number differs: ",
                   absl::StrJoin(initialized, ", "));
}

Checkpoint::Checkpoint(CheckpointItems items) : items_(std::move(items)) {}

void Checkpoint::write(const std::string& path, int64_t step) const {
  require_no_replica("Checkpoint.write");
  if (items_.model) require_built("Checkpoint.write", **items_.model);
  for (const auto& [name, tables] : items_.embeddings) {
    if (tables->built()) continue;
    throw RuntimeError("Checkpoint.write: the embedding '", name,
                       "' is not built; call its build() first");
  }
  const std::vector<Entry> entries = entries_to_save(items_);
  std::vector<CheckpointValue> values;
  for (const Entry& e : entries) {
    values.push_back(
        {.key = e.key, .spec = e.spec, .optimizer = e.optimizer, .get = e.get, .rows = e.rows});
  }
  write_checkpoint(path, step, values);
}

RestoreStatus Checkpoint::restore(const std::string& path, const RestoreOptions& options) const {
  require_no_replica("Checkpoint.restore");
  if (items_.model) require_built("Checkpoint.restore", **items_.model);
  std::optional<CheckpointReader> opened;
  distribute::run_collectively(distribute::processes(), "Checkpoint.restore",
                               [&] { opened.emplace(path); });
  const CheckpointReader& file = *opened;
  Index index = file.index();
  for (const Trained& t : trained_variables(items_)) {
    if (VariableStorage(t.variable).keyed_rows() != nullptr) build_keyed_slots(items_, index, t);
  }
  std::vector<Entry> entries = model_entries(items_);
  std::ranges::move(embedding_entries(items_), std::back_inserter(entries));
  std::ranges::move(slots_to_restore(items_, index), std::back_inserter(entries));
  add_counters(items_, entries);

  RestoreStatus status = {.path = path, .step = file.step()}, fallbacks;
  std::vector<std::string> missing_weights;
  std::vector<const Entry*> assignments, warm_starts;
  const std::vector<std::string> from_static = static_tables(entries, index);
  for (const Entry& entry : entries) {
    const auto found = index.find(entry.key);
    if (found == index.end()) {
      const auto is_part_of = [&](const std::string& table) {
        return entry.any_rows && entry.key.starts_with(table + "/");
      };
      if (std::ranges::any_of(from_static, is_part_of)) {
        if (entry.key.ends_with("/state")) warm_starts.push_back(&entry);
        continue;
      }
      if (is_unused_slot(file, items_, entry)) continue;
      status.missing.push_back(entry.key);
      if (entry.required) missing_weights.push_back(entry.key);
      continue;
    }
    if (!entry.any_rows && index.contains(entry.key + "/keys") &&
        index.contains(entry.key + "/state")) {
      throw ValueError("Checkpoint.restore: ", entry.key, " is a table with a vocabulary, but ",
                       path, " has a table with dynamic ids; set TableConfig::dynamic");
    }
    check_spec(path, entry, found->second.spec);
    if (is_fallback(entries, entry)) list_unless_equal_number(fallbacks, entry, found->second.spec);
    assignments.push_back(&entry);
    index.erase(found);
  }
  if (!missing_weights.empty() && !options.allow_missing_weights) {
    throw ValueError("Checkpoint.restore: ", path, " has no value for the weights ",
                     absl::StrJoin(missing_weights, ", "),
                     "; set allow_missing_weights to keep their values");
  }
  for (const auto& [key, stored] : index) status.unused.push_back(key);
  if (!options.partial && !options.allow_missing_weights) check_complete(status);
  status.initialized = std::move(fallbacks.initialized);
  std::ranges::move(fallbacks.unused, std::back_inserter(status.unused));
  // Tables with dynamic ids are checked before anything changes.
  for (const Entry* entry : assignments) {
    if (entry->restore) prepare(file, *entry);
  }
  for (const Entry* entry : warm_starts) prepare_from_static(*entry);
  for (const Entry* entry : assignments) {
    entry->restore ? replace_table(*entry) : assign(file, *entry);
  }
  for (const Entry* entry : warm_starts) replace_table(*entry);
  return status;
}

}  // namespace keel

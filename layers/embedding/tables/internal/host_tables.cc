#include <keel/layers/embedding/tables/internal/host_tables.h>

#include <keel/framework/base/internal/memory_error.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/optimizers/embedding/bounds_and_slots.h>

namespace keel {
namespace {

std::string entry_name(const Table& table, const std::string& slot) {
  return slot.empty() ? table->name : table->name + "/" + slot;
}

Shape shape_of(const Table& table) { return {table->vocabulary_size, table->dim}; }

}  // namespace

bool HostTables::built() const {
  const std::lock_guard lock(mutex_);
  return built_;
}

// Creates a variable. A restored value replaces the initial value; then the initializer does not
// run.
Variable HostTables::made(const std::string& name, const Shape& shape,
                          const std::variant<Initializer, Tensor>& start, VariableOptions options) {
  Tensor value;
  if (const auto restored = restored_.find(name); restored != restored_.end()) {
    value = restored->second;
  } else if (const auto* tensor = std::get_if<Tensor>(&start)) {
    value = *tensor;
  } else {
    value =
        allocate_for("TPUEmbedding: table '" + name + "'", shape, bytes_for(shape, sizeof(float)),
                     [&] { return std::get<Initializer>(start)(shape); });
  }
  options.name = name;
  return Variable(value, std::move(options));
}

std::vector<Variable> HostTables::trainable_variables() const {
  const std::lock_guard lock(mutex_);
  std::vector<Variable> out;
  for (const Variable& table : parameters_) {
    if (table.trainable()) out.push_back(table);
  }
  return out;
}

void HostTables::build() {
  const std::lock_guard lock(mutex_);
  if (built_) return;
  std::vector<Variable> parameters;
  std::vector<std::map<std::string, Variable>> slots;
  std::vector<std::shared_ptr<KeyedVariable>> keyed;
  for (const TableSet::Entry& entry : tables_.tables) {
    const Table& table = entry.own;
    keyed.emplace_back();
    if (table->dynamic) {
      // Its optimizer gives the rows their slots in the first step.
      auto [variable, rows] = KeyedVariable::create(*table);
      parameters.push_back(std::move(variable));
      keyed.back() = std::move(rows);
      slots.emplace_back();
      continue;
    }
    parameters.push_back(made(
        table->name, shape_of(table), table_initializer(*table),
        {.trainable = table->trainable, .rows = {.l2 = table->l2, .max_norm = table->max_norm}}));
    std::map<std::string, Variable>& of_table = slots.emplace_back();
    const std::vector<Slot> slots_of_table = slots_of(*table);
    if (!table->optimizer || !table->trainable) continue;
    const SlotVariables starts =
        create_slots(*table->optimizer, {.name = table->name, .shape = shape_of(table)});
    for (const Slot& slot : slots_of_table) {
      of_table.emplace(slot.name,
                       made(entry_name(table, slot.name), slot_shape(slot, shape_of(table)),
                            starts.at(slot.name), {.trainable = false}));
    }
  }
  // Assign only after every variable exists: a build that throws leaves the object unbuilt.
  parameters_ = std::move(parameters);
  slots_ = std::move(slots);
  keyed_ = std::move(keyed);
  restored_.clear();
  built_ = true;
}

const Variable& HostTables::variable(size_t table, const std::string& slot) const {
  return slot.empty() ? parameters_.at(table) : slots_.at(table).at(slot);
}

StateEntry HostTables::entry(const Table& table, size_t index, const std::string& slot,
                             const Shape& shape) {
  const std::string name = entry_name(table, slot);
  const auto self = shared_from_this();
  return {.name = name,
          .spec = {.shape = shape},
          .kind = slot.empty() ? StateEntry::Kind::kWeight : StateEntry::Kind::kSlot,
          .trainable = slot.empty() && table->trainable,
          .get =
              [self, index, slot, name] {
                if (!self->built())
                  throw RuntimeError("Embedding table '", name,
                                     "': the layer is not built; call it once first");
                return self->variable(index, slot).read();
              },
          .set =
              [self, index, slot, name, shape](const Tensor& value) {
                if (value.shape() != shape || value.dtype() != DType::kFloat32) {
                  throw ValueError("Embedding table '", name, "': must be float32 ", shape,
                                   ", received ", value.dtype(), " ", value.shape());
                }
                const std::lock_guard lock(self->mutex_);
                if (self->built_) {
                  self->variable(index, slot).assign(value);
                } else {
                  // Not built yet: the value becomes the initial value.
                  self->restored_.insert_or_assign(name, value);
                }
              },
          .variable_id = built() ? variable(index, slot).id() : 0};
}

std::vector<StateEntry> HostTables::state_entries() {
  std::vector<StateEntry> out;
  for (size_t t = 0; t < tables_.tables.size(); ++t) {
    const Table& table = tables_.tables[t].own;
    if (table->dynamic) continue;  // see dynamic_entry()
    out.push_back(entry(table, t, "", shape_of(table)));
    for (const Slot& slot : slots_of(*table)) {
      out.push_back(entry(table, t, slot.name, slot_shape(slot, shape_of(table))));
    }
  }
  return out;
}

}  // namespace keel

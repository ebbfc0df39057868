#include <absl/strings/str_join.h>
#include <algorithm>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/bounds_and_slots.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel {
namespace {

void check_created(const SlotVariables& made, const TableVariable& table,
                   const std::vector<Slot>& slots) {
  std::vector<std::string> names;
  for (const Slot& slot : slots) names.push_back(slot.name);
  std::vector<std::string> received;
  for (const auto& [name, start] : made) received.push_back(name);
  const bool all =
      std::ranges::all_of(names, [&](const auto& name) { return made.contains(name); });
  if (!all || made.size() != names.size()) {
    throw ValueError("slot_variable_creation_fn: must return the slots [",
                     absl::StrJoin(names, ", "), "] for table '", table.name, "', received [",
                     absl::StrJoin(received, ", "), "]");
  }
  for (const Slot& slot : slots) {
    const auto* tensor = std::get_if<Tensor>(&made.at(slot.name));
    if (tensor == nullptr) continue;
    const Shape shape = slot_shape(slot, table.shape);
    if (!*tensor || tensor->shape() != shape || tensor->dtype() != table.dtype) {
      throw ValueError("slot_variable_creation_fn: slot '", slot.name, "' of table '", table.name,
                       "' must be a ", table.dtype, " tensor of shape ", shape, ", received ",
                       *tensor ? str(tensor->dtype(), " ", tensor->shape()) : "an empty tensor");
    }
  }
}

}  // namespace

Shape slot_shape(const Slot& slot, const Shape& table) {
  return slot.per_row ? Shape{table[0], 1} : table;
}

SlotVariables create_slots(const TableOptimizerState& optimizer, const TableVariable& table) {
  if (optimizer.required_dim && table.shape[-1] != *optimizer.required_dim) {
    throw ValueError(optimizer.class_name, ": the dim of table '", table.name, "' must be ",
                     *optimizer.required_dim, ", received ", table.shape[-1]);
  }
  std::vector<std::string> names;
  for (const Slot& slot : optimizer.rule->slots()) names.push_back(slot.name);
  if (optimizer.slot_variable_creation_fn) {
    SlotVariables made =
        optimizer.slot_variable_creation_fn(table, names, optimizer.slot_initializers);
    check_created(made, table, optimizer.rule->slots());
    return made;
  }
  SlotVariables out;
  for (size_t i = 0; i < names.size(); ++i) {
    out.insert_or_assign(names[i], optimizer.slot_initializers[i]);
  }
  return out;
}

}  // namespace keel

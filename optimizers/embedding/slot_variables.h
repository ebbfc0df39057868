// Slot variables of embedding tables, as a user may make them.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include <keel/framework/base/shared_function.h>
#include <keel/framework/initializers.h>
#include <keel/framework/tensor.h>

namespace keel {

struct TableOptimizerState;

struct TableVariable {
  std::string name;
  Shape shape;  // [vocabulary_size, dim]
  DType dtype = DType::kFloat32;
};

// By slot name, what the slot starts from. An initializer can make any part of it; a tensor has the
// table's shape and cannot be cut into shards, so engines under an accelerator strategy refuse it.
using SlotVariables = std::map<std::string, std::variant<Initializer, Tensor>>;

// Called once for each table when it is built, with the names of the slots and the initializer each
// would have. Replaces all of them: must return exactly these names.
using SlotVariableCreationFn = SharedFunction<SlotVariables(
    const TableVariable& table, const std::vector<std::string>& slot_names,
    const std::vector<Initializer>& initializers)>;

// What the slots of `table` start from: what the optimizer's slot_variable_creation_fn returns, or
// else its own initializers. Call it once for each table, when it is built.
// ValueError if the function returns other names than the slots', or a tensor that has not the
// table's shape and dtype, and for a table whose width the optimizer cannot have.
SlotVariables create_slots(const TableOptimizerState& optimizer, const TableVariable& table);

}  // namespace keel

// Slot variables of embedding tables, which users may create themselves.
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

// Describes the table whose slots are created.
struct TableVariable {
  std::string name;
  Shape shape;  // [vocabulary_size, dim]
  DType dtype = DType::kFloat32;
};

// Maps the name of each slot to its initial value. An initializer can compute any shard of it. A
// tensor has the shape of the whole table and cannot be sharded, so engines under an accelerator
// strategy reject it.
using SlotVariables = std::map<std::string, std::variant<Initializer, Tensor>>;

// Called once for each table when the table is built, with the names of the slots and their default
// initializers. Replaces all of them; the function must return exactly these names.
using SlotVariableCreationFn = SharedFunction<SlotVariables(
    const TableVariable& table, const std::vector<std::string>& slot_names,
    const std::vector<Initializer>& initializers)>;

// Returns the initial values of the slots of `table`: the result of the optimizer's
// slot_variable_creation_fn if it is set, otherwise the optimizer's initializers. Call it once for
// each table, when the table is built. Throws ValueError if the function returns names other than
// those of the slots, or a tensor without the table's shape and dtype, and if the optimizer does
// not support the width of the table.
SlotVariables create_slots(const TableOptimizerState& optimizer, const TableVariable& table);

}  // namespace keel

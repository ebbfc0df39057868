// The options of lookup kernels that a TableConfig names.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/update_rule.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Convert the name of a combiner of lookup kernels and TableConfig::storage_dtype. Throw ValueError
// for an unknown name, and combiner_from_name() for "max".
kernels::Combiner combiner_from_name(const std::string& name);
kernels::StorageType storage_from_name(const std::string& name);
// Returns the combiner of the table's lookups. Those of a table with the combiner "max" look up
// position by position, which no combiner affects (PositionPool); their combiner is kSum. Throws
// ValueError for an unknown name.
kernels::Combiner lookup_combiner(const TableConfig& table);

// Returns the optimizer of a table; for a table that is not trained, one without slots and with
// learning rate 0. A table that is trained must have an optimizer.
const TableOptimizerState& optimizer_of(const TableConfig& table);
// Returns the slots of a table; none without an optimizer.
std::vector<Slot> slots_of(const TableConfig& table);

// Returns the position of a table with dynamic ids. Throws ValueError for a table with a vocabulary
// or of another object; `owner` names this one.
int find_dynamic(const TableSet& tables, const Table& table, const std::string& owner);

// Throws NotImplementedError, naming `caller` and the table, if a table has dynamic ids.
void reject_dynamic(const TableSet& tables, const std::string& caller);

}  // namespace keel

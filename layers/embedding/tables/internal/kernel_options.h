// The options of lookup kernels that a TableConfig names.
#pragma once

#include <string>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Convert TableConfig::combiner and TableConfig::storage_dtype. Throw ValueError for an unknown
// name.
kernels::Combiner combiner_from_name(const std::string& name);
kernels::StorageType storage_from_name(const std::string& name);

// Returns the position of a table with dynamic ids. Throws ValueError for a table with a vocabulary
// or of another object; `owner` names this one.
int find_dynamic(const TableSet& tables, const Table& table, const std::string& owner);

// Throws NotImplementedError, naming `caller` and the table, if a table has dynamic ids.
void reject_dynamic(const TableSet& tables, const std::string& caller);

}  // namespace keel

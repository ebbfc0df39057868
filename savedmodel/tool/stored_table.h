// Tables for unbounded ids in files of models, weights and checkpoints.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/training/model.h>
#include <keel/savedmodel/tool/stored_values.h>

namespace keel::tool {

// One table as it is stored.
struct StoredTable {
  std::string name;  // "tables/items", or its path in a file of weights or its key in a checkpoint
  // Returns what is stored: ids in any order, and empty tensors for parts that are not stored.
  std::function<DynamicTableState()> get;
  // Options of the table; unset if the file does not hold them.
  std::optional<DynamicVocabulary> options = {};
  // The part of a checkpoint with clock and counters, as JSON; empty in other files.
  std::string state_text = {};
  bool has_times = false;  // the file holds the times of ids
};

// Returns the tables of a model.
std::vector<StoredTable> tables_of(const Model& model);
// Takes the tables of a file out of its values.
std::vector<StoredTable> take_tables(StoredValues& values);

// Prints the tables: key type, rows, options, counters and the most frequent ids.
void print_dynamic_tables(const std::vector<StoredTable>& tables);
// Returns the table with this name, or with a name that contains it between '/'; null if there is
// none. Throws ValueError if there are several.
const StoredTable* table_named(const std::vector<StoredTable>& tables, const std::string& name);
// Prints what a table knows about an id. Throws ValueError if a table of integers gets no integer.
void print_id(const StoredTable& table, const std::string& id);

// Returns one line for each difference of two lists of tables. Rows are compared by id; values may
// differ by `atol`.
std::vector<std::string> table_differences(const std::vector<StoredTable>& a,
                                           const std::vector<StoredTable>& b, double atol);

}  // namespace keel::tool

// Tables for unbounded ids in model files: four datasets in a group with the name of the table.
//
//   keys      int64 or string [n], ascending
//   rows      float32 [n, dim]
//   count     int64 [n]: occurrences of each id
//   fallback  float32 [k, dim]: the fallback rows
#pragma once

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/min_count.h>

namespace keel {

// The names of the datasets, in the order in which they are written.
inline constexpr std::array<const char*, 4> kDynamicParts = {"keys", "rows", "count", "fallback"};

// A table of a layer and its name within the layer.
struct NamedDynamicTable {
  std::string layer;  // name of the layer
  std::string name;   // name of the table
  DynamicTable table;
};

// Returns the tables of a layer, without those of its sublayers.
std::vector<NamedDynamicTable> dynamic_tables_of(const Layer& layer);
// Returns the tables of a model, each once.
std::vector<NamedDynamicTable> all_dynamic_tables(const Layer& model);
// Throws ValueError, naming `caller`, for a minimum of a table that the model does not have.
void check_min_count(const std::string& caller, const Model& model, const MinCount& min_count);

// Returns the state of a table without rows whose count is below `min_count`.
DynamicTableState frequent_rows(const DynamicTable& table, int64_t min_count);

// Returns the values of the datasets, in the order of kDynamicParts. All of them read one copy of
// the table, which the first one makes and the last one frees.
std::vector<std::function<Tensor()>> dynamic_parts(const NamedDynamicTable& table,
                                                   const MinCount& min_count);

// Reads a table from the datasets with these paths, in the order of kDynamicParts, and checks it.
// The result has times of 0 and no pending ids; restore() makes it the table. Throws ValueError,
// naming both sides, for another key type or dim and for more rows than fit, and IoError, naming
// file and dataset, for values that are missing, of wrong sizes, out of range or not ascending.
DynamicTableState read_dynamic_table(const Hdf5File& file, const std::vector<std::string>& datasets,
                                     const NamedDynamicTable& table);

}  // namespace keel

// Tables and features as files keep them: what the configs of embedding layers have in common.
#pragma once

#include <vector>

#include <keel/framework/config/config.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// A list of tables, with the names and optimizers in force.
Config encode_tables(const TableSet& tables);
// Tables that shared an optimizer share one again, so that one step counter drives its schedule.
// ValueError as make_table says, and for keys that are not known.
std::vector<Table> decode_tables(const Config& config);

// A structure as {"feature": ...}, {"list": [...]}, {"tuple": [...]} or {"dict": {...}}: JSON alone
// knows no tuples and could not tell a leaf from a dict. Features name tables by position.
Config encode_features(const Nest<FeatureConfig>& features, const TableSet& tables);
// ValueError for a table that is not there, and for keys that are not known.
Nest<FeatureConfig> decode_features(const Config& config, const std::vector<Table>& tables);

}  // namespace keel

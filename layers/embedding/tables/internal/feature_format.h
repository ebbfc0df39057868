// Serialization of tables and features, shared by the configs of the embedding layers.
#pragma once

#include <vector>

#include <keel/framework/config/config.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Encodes the tables as a list, with their effective names and optimizers.
Config encode_tables(const TableSet& tables);
// Decodes a list of tables. Tables that shared an optimizer share one again, so that one step
// counter drives its schedule. Throws ValueError under the conditions of make_table and for unknown
// keys.
std::vector<Table> decode_tables(const Config& config);

// Encodes a structure as {"feature": ...}, {"list": [...]}, {"tuple": [...]} or {"dict": {...}}.
// The explicit tags are needed because JSON has no tuples and cannot distinguish a leaf from a
// dict. Features refer to tables by position.
Config encode_features(const Nest<FeatureConfig>& features, const TableSet& tables);
// Decodes a structure of features. Throws ValueError for a table position that is out of range and
// for unknown keys.
Nest<FeatureConfig> decode_features(const Config& config, const std::vector<Table>& tables);

}  // namespace keel

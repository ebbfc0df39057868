// What layers report about tables with dynamic ids: entries of checkpoints, and notices of
// training.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/table_statistics.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/layers/layer_types.h>

namespace keel {

// Returns the entries of a table: "<table>/keys", "<table>" (the rows), its slots, which are named
// `slots`, "<table>/count", "<table>/last", "<table>/born", "<table>/shards",
// "<table>/pending/keys", "<table>/pending/count", "<table>/pending/last", "<table>/sketch",
// "<table>/fallback", its slots and "<table>/state". Rows are in ascending order of (key shard,
// key). The last entry, the state, restores the table from all that were set before it. If it is
// set to an empty text, the rows and slots are those of a static table: row i becomes the row of id
// i. Throws ValueError for string ids and if the rows exceed the capacity.
//
// `now` is the table at this moment, which gives the sizes. The entries get the table from
// `access`. If processes share the table, each has the rows of its own ids in every entry
// (StateEntry::Rows). Collective.
std::vector<StateEntry> dynamic_entries(const std::string& table,
                                        const std::vector<std::string>& slots,
                                        const distribute::KeyedTable& now,
                                        const std::function<distribute::KeyedTable*()>& access);

// Returns the notice of a table for the user, which starts with `caller`: its size, the share of
// occurrences that were not admitted, and the ids that were evicted and refused.
std::string dynamic_notice(const std::string& caller, const DynamicTableStatistics& statistics);

}  // namespace keel

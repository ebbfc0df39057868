// The phases of an update of several tables for unbounded ids. With several processes, the
// decisions of all tables share the messages of a round.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <keel/distribute/embedding/internal/keyed_table.h>

namespace keel::distribute {

using KeyedLookups = std::vector<std::shared_ptr<KeyedLookup>>;

// Plans the updates of tables for their lookups. Throws CollectiveError, in all processes and
// without a change, if new keys do not fit into a table. Collective over processes.
void plan_updates(std::span<KeyedTable* const> tables, std::span<const KeyedLookups> lookups);
// Evicts rows and ends the updates. All tables end theirs, even if a callback of one of them
// throws. Collective over processes.
void finish_updates(std::span<KeyedTable* const> tables);
// Runs a round for the tables that take part in it. Collective over processes.
void run_round(std::span<KeyedTable* const> tables, KeyedRound round);

}  // namespace keel::distribute

// KeyedBatchLookup: looks up the keys of tables for unbounded ids for one replica of an
// EmbeddingEngine, and tells their owners which of them an update counts.
#pragma once

#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/distribute/embedding/internal/engine_tables.h>

namespace keel::distribute {

// Keeps its buffers from lookup to lookup.
class KeyedBatchLookup {
 public:
  explicit KeyedBatchLookup(const EngineTables& tables) : tables_(tables) {}

  // Looks up the keys of a ticket and replaces them by row numbers. `pending` is the number of
  // updates that run before the one that may follow. No replica may change the tables meanwhile.
  // Collective with several processes.
  void run(Communicator& communicator, EmbeddingEngine::Ticket& ticket, bool training,
           size_t pending);

 private:
  // Returns true if an update of the table may follow.
  bool trains(bool training, size_t table) const { return training && tables_.is_updated(table); }
  void ask_owners(Communicator& communicator, EmbeddingEngine::Ticket& ticket, bool training,
                  size_t pending, const std::vector<std::vector<FeatureBatch>>& features);

  const EngineTables& tables_;
  std::vector<MessageWriter> requests_, replies_;  // by process; by rank
};

// Tells the owners of keys how often they occur in the lookups of a ticket. Returns, by rank of
// other processes and by table, what they have told this replica. Collective.
std::vector<std::vector<std::shared_ptr<KeyedLookup>>> exchange_uses(
    Communicator& communicator, const EngineTables& tables, const EmbeddingEngine::Ticket& ticket,
    std::string_view label);

}  // namespace keel::distribute

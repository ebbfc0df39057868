#include <keel/distribute/embedding/internal/keyed_batch_lookup.h>

#include <keel/distribute/internal/placement.h>
#include <keel/framework/base/parallel.h>

namespace keel::distribute {
namespace {

// Returns the messages by rank. That of a process goes to one of its ranks. Ranks of one process
// choose different ranks, which balances the work.
std::vector<Bytes> to_ranks(const Communicator& communicator,
                            std::span<const MessageWriter> by_process) {
  const Placement& placement = communicator.placement();
  std::vector<Bytes> out(communicator.size());
  for (int p = 0; p < placement.processes(); ++p) {
    if (p == placement.process) continue;
    const int there = placement.first[p + 1] - placement.first[p];
    out[placement.first[p] + communicator.rank() % there] = by_process[p].bytes();
  }
  return out;
}

void restart(std::vector<MessageWriter>& messages, int count) {
  messages.resize(count);
  for (MessageWriter& message : messages) message.clear();
}

}  // namespace

void KeyedBatchLookup::run(Communicator& communicator, EmbeddingEngine::Ticket& ticket,
                           bool training, size_t pending) {
  if (!tables_.has_keyed()) return;
  const bool alone = communicator.placement().processes() == 1;
  ticket.keyed.resize(tables_.size());
  std::vector<std::vector<FeatureBatch>> features(tables_.size());
  parallel_for(static_cast<int64_t>(tables_.size()), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) {
      const KeyedTable* const table = tables_.keyed(t);
      if (table == nullptr) continue;
      features[t] = tables_.batches_of(ticket, t);
      const int64_t update = table->updates() + static_cast<int64_t>(pending);
      ticket.keyed[t] = table->begin_lookup(features[t], trains(training, t), update);
      if (alone) table->finish_lookup(*ticket.keyed[t], features[t], {});
    }
  });
  if (!alone) ask_owners(communicator, ticket, training, pending, features);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_.keyed(t) == nullptr || trains(training, t)) continue;
    tables_.keyed(t)->count_inference(*ticket.keyed[t]);
  }
  tables_.take_rows(ticket);
}

void KeyedBatchLookup::ask_owners(Communicator& communicator, EmbeddingEngine::Ticket& ticket,
                                  bool training, size_t pending,
                                  const std::vector<std::vector<FeatureBatch>>& features) {
  const Placement& placement = communicator.placement();
  restart(requests_, placement.processes());
  restart(replies_, communicator.size());
  const auto for_each = [&](const auto& fn) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      if (tables_.keyed(t) != nullptr) fn(*tables_.keyed(t), t);
    }
  };
  for_each([&](const KeyedTable& table, size_t t) {
    table.write_requests(*ticket.keyed[t], requests_);
  });
  const std::vector<Bytes> requests =
      communicator.all_to_all(to_ranks(communicator, requests_), tables_.label());
  for (int r = 0; r < communicator.size(); ++r) {
    if (requests[r].empty()) continue;
    MessageReader request(requests[r]);
    for_each([&](const KeyedTable& table, size_t t) {
      table.answer(request, trains(training, t), table.updates() + static_cast<int64_t>(pending),
                   replies_[r]);
    });
  }
  std::vector<Bytes> send;
  for (const MessageWriter& reply : replies_) send.push_back(reply.bytes());
  const std::vector<Bytes> answers = communicator.all_to_all(send, "rows of dynamic tables");
  std::vector<MessageReader> by_process(placement.processes());
  for (int r = 0; r < communicator.size(); ++r) {
    if (!answers[r].empty()) by_process[placement.process_of(r)] = MessageReader(answers[r]);
  }
  for_each([&](const KeyedTable& table, size_t t) {
    table.finish_lookup(*ticket.keyed[t], features[t], by_process);
  });
}

std::vector<std::vector<std::shared_ptr<KeyedLookup>>> exchange_uses(
    Communicator& communicator, const EngineTables& tables, const EmbeddingEngine::Ticket& ticket,
    std::string_view label) {
  std::vector<MessageWriter> messages(communicator.placement().processes());
  for (size_t t = 0; t < tables.size(); ++t) {
    if (tables.updated_keyed(t) != nullptr) tables.keyed(t)->write_uses(*ticket.keyed[t], messages);
  }
  const std::vector<Bytes> received =
      communicator.all_to_all(to_ranks(communicator, messages), label);
  std::vector<std::vector<std::shared_ptr<KeyedLookup>>> out(communicator.size());
  for (int r = 0; r < communicator.size(); ++r) {
    if (received[r].empty()) continue;
    MessageReader message(received[r]);
    out[r].resize(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      if (tables.updated_keyed(t) != nullptr) out[r][t] = tables.keyed(t)->read_uses(message);
    }
  }
  // The caller frees the messages, so wait until no rank reads them any more.
  communicator.local_barrier("ids received");
  return out;
}

}  // namespace keel::distribute

#include <keel/distribute/embedding/internal/keyed_rounds.h>

#include <exception>

#include <keel/framework/base/parallel.h>

namespace keel::distribute {
namespace {

const char* label_of(KeyedRound round) {
  switch (round) {
    case KeyedRound::kPlan:
      return "room for new ids";
    case KeyedRound::kChoose:
      return "choice of new ids";
    case KeyedRound::kSizes:
      return "sizes of dynamic tables";
    case KeyedRound::kEvict:
      break;
  }
  return "choice of evicted ids";
}

}  // namespace

void run_round(std::span<KeyedTable* const> tables, KeyedRound round) {
  std::vector<KeyedTable*> taking_part;
  for (KeyedTable* const table : tables) {
    if (table->takes_part(round)) taking_part.push_back(table);
  }
  if (taking_part.empty()) return;
  MessageWriter mine;
  for (const KeyedTable* const table : taking_part) table->write(round, mine);
  const auto messages = taking_part.front()->options().peers.all_gather(label_of(round), mine);
  std::vector<MessageReader> readers = readers_of(messages);
  for (KeyedTable* const table : taking_part) table->read(round, readers);
}

void plan_updates(std::span<KeyedTable* const> tables, std::span<const KeyedLookups> lookups) {
  parallel_for(std::ssize(tables), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) tables[t]->prepare_update(lookups[t]);
  });
  run_round(tables, KeyedRound::kPlan);
  run_round(tables, KeyedRound::kChoose);
}

void finish_updates(std::span<KeyedTable* const> tables) {
  parallel_for(std::ssize(tables), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) tables[t]->begin_finish();
  });
  run_round(tables, KeyedRound::kSizes);
  run_round(tables, KeyedRound::kEvict);
  std::exception_ptr error;
  for (KeyedTable* const table : tables) {
    try {
      table->end_finish();
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace keel::distribute

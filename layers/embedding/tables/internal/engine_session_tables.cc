// The part of EngineSession that reads and writes tables outside of steps.
#include <algorithm>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/distribute/internal/gather_tensors.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/tables/internal/dynamic_entries.h>
#include <keel/layers/embedding/tables/internal/engine_session_state.h>

namespace keel {
namespace {

using distribute::EmbeddingEngine;
using distribute::EngineTable;

constexpr char kTablesCaller[] = "TPUEmbedding";

// Returns true if this part of both tables (0: the weights, else a slot) has the same name and
// shape.
bool has_same_part(const EngineTable& a, const EngineTable& b, int part) {
  if (a.name != b.name || a.rows != b.rows || a.dim != b.dim) return false;
  const auto slot = [part](const EngineTable& table) {
    const std::vector<Slot> slots =
        table.update.rule == nullptr ? std::vector<Slot>{} : table.update.rule->slots();
    const auto position = static_cast<size_t>(part - 1);
    return position < slots.size() ? slots[position].name : "";
  };
  return part == 0 || (!slot(a).empty() && slot(a) == slot(b));
}

}  // namespace

std::shared_ptr<EmbeddingEngine> EngineSession::State::drained_engine() const {
  if (strategy_lifetime.expired()) return nullptr;
  std::shared_ptr<EmbeddingEngine> live = distribute::active_engine(strategy);
  if (live != nullptr && live->has_pending()) {
    strategy.run([&] { live->drain(strategy.communicator()); });
  }
  return live;
}

std::pair<std::shared_ptr<EmbeddingEngine>, int> EngineSession::State::drained_table(
    int table, int part) const {
  const std::string& name = tables.tables.at(table).own->name;
  std::shared_ptr<EmbeddingEngine> live = drained_engine();
  if (live == nullptr) {
    throw RuntimeError(kTablesCaller, ": table '", name,
                       "' is not in an engine: its strategy has been destroyed, or the accelerator "
                       "was initialized again; create the object again");
  }
  if (live == engine) return {live, table};
  const auto& there = live->tables();
  for (size_t t = 0; t < there.size(); ++t) {
    if (has_same_part(there[t], engine->tables()[table], part)) return {live, static_cast<int>(t)};
  }
  throw RuntimeError(kTablesCaller, ": the current engine of the accelerator has no '",
                     entry_name(table, part), "' of the same shape");
}

distribute::KeyedTable& EngineSession::keyed_table(int table, bool drain) const {
  if (!drain) return *state_->engine->keyed_table(table);
  const auto [engine, index] = state_->drained_table(table, 0);
  return *engine->keyed_table(index);
}

std::optional<StateEntry::Rows> EngineSession::State::row_access(const EngineSession& self,
                                                                 int table, int part) const {
  const distribute::LocalRows& local = engine->local_rows(table);
  if (!local.is_run()) return {};
  const int64_t first = std::min(local.first_row(), rows(table));
  const int64_t end = std::min(local.first_row() + local.count(), rows(table));
  return StateEntry::Rows{
      .first = first,
      .end = end,
      .read =
          [self, table, part](int64_t begin, int64_t stop, float* out) {
            const auto [live, index] = self.state_->drained_table(table, part);
            live->read_rows(index, part, begin, stop, out);
          },
      .write =
          [self, table, part](int64_t begin, int64_t stop, const float* values) {
            const auto [live, index] = self.state_->drained_table(table, part);
            live->write_rows(index, part, begin, stop, values);
          }};
}

Tensor EngineSession::read(int table, int part) const {
  const auto [engine, index] = state_->drained_table(table, part);
  if (const distribute::KeyedTable* const keyed = engine->keyed_table(index)) {
    return keyed->read(part, keyed->keys());
  }
  const int64_t rows = state_->rows(table);
  Tensor out = Tensor::uninitialized({rows, engine->width(index, part)}, DType::kFloat32);
  const int64_t width = out.dim(1);
  float* const values = out.mutable_data<float>().data();
  // The rows that this process holds, and their values one after the other.
  std::vector<int64_t> numbers;
  std::vector<float> local;
  distribute::ProcessGroup& group = state_->strategy.process_group();
  State::for_each_run(engine->local_rows(index), rows, [&](int64_t first, int64_t end) {
    engine->read_rows(index, part, first, end, values + first * width);
    if (group.size() == 1) return;
    for (int64_t row = first; row < end; ++row) numbers.push_back(row);
    local.insert(local.end(), values + first * width, values + end * width);
  });
  if (group.size() == 1) return out;
  // The parts of this process are empty in the result.
  for (const auto& parts : distribute::all_gather(
           group, "TPUEmbedding.retrieve",
           {distribute::as_bytes_of<int64_t>(numbers), distribute::as_bytes_of<float>(local)})) {
    if (parts.empty()) continue;
    const auto theirs = distribute::as_elements<int64_t>(parts[0]);
    const auto from = distribute::as_elements<float>(parts[1]);
    for (size_t i = 0; i < theirs.size(); ++i) {
      std::copy_n(from.data() + static_cast<int64_t>(i) * width, width, values + theirs[i] * width);
    }
  }
  return out;
}

void EngineSession::write(int table, int part, const Tensor& values) const {
  const Shape shape = {state_->rows(table), state_->engine->width(table, part)};
  if (values.shape() != shape || values.dtype() != DType::kFloat32) {
    throw ValueError(kTablesCaller, ": table '", state_->tables.tables[table].own->name,
                     "' must be float32 ", shape, ", received ", values.dtype(), " ",
                     values.shape());
  }
  const auto [engine, index] = state_->drained_table(table, part);
  const auto held = engine;
  State::for_each_run(held->local_rows(index), shape[0],
                      [&, table_index = index](int64_t first, int64_t end) {
                        held->write_rows(table_index, part, first, end,
                                         values.data<float>().data() + first * shape[1]);
                      });
}

std::vector<StateEntry> EngineSession::state_entries() const {
  std::vector<StateEntry> out;
  if (!built()) return out;  // build() would overwrite what is set before it
  // A process without rows of some table reads none of them, but running a pending update is
  // collective. Drain here, where all processes take part.
  if (current_replica_context() == nullptr) state_->drained_engine();
  for (size_t t = 0; t < state_->tables.tables.size(); ++t) {
    const TableConfig& table = *state_->tables.tables[t].own;
    if (table.dynamic) {
      std::vector<std::string> slots;
      for (size_t part = 1; part <= state_->optimizer(t).rule->slots().size(); ++part) {
        slots.push_back(state_->entry_name(t, part));
      }
      const EngineSession self(*this);
      for (StateEntry& entry :
           dynamic_entries(table.name, slots, keyed_table(static_cast<int>(t), false),
                           [self, t] { return &self.keyed_table(static_cast<int>(t)); })) {
        out.push_back(std::move(entry));
      }
      continue;
    }
    const size_t slots = state_->optimizer(t).rule->slots().size();
    for (size_t part = 0; part <= slots; ++part) {
      const auto index = static_cast<int>(t);
      const auto at = static_cast<int>(part);
      const EngineSession self(*this);
      out.push_back(
          {.name = state_->entry_name(t, part),
           .spec = {.shape = {table.vocabulary_size, state_->engine->width(index, at)}},
           .kind = part == 0 ? StateEntry::Kind::kWeight : StateEntry::Kind::kSlot,
           .trainable = part == 0 && table.trainable,
           .get = [self, index, at] { return self.read(index, at); },
           .set = [self, index, at](const Tensor& value) { self.write(index, at, value); },
           .rows = state_->row_access(self, index, at)});
    }
  }
  return out;
}

IdCounts EngineSession::invalid_ids(size_t feature) const {
  const State& s = *state_;
  const IdCounts local = s.counter.counts(feature);
  if (s.strategy_lifetime.expired() || s.strategy.process_group().size() == 1) return local;
  const Tensor counts = Tensor::from<int64_t>({local.dropped, local.replaced}, {2});
  IdCounts all;
  for (const Tensor& t : distribute::gather_tensors(s.strategy.process_group(),
                                                    "TPUEmbedding.id_counts", {&counts, 1})) {
    all.dropped += t.data<int64_t>()[0];
    all.replaced += t.data<int64_t>()[1];
  }
  return all;
}

LookupStatistics EngineSession::statistics(size_t table) const {
  const State& s = *state_;
  const LookupStatistics local = s.lookup_counter.statistics(table);
  if (s.strategy_lifetime.expired() || s.strategy.process_group().size() == 1) return local;
  const Tensor counts = Tensor::from<int64_t>(
      {local.lookups, local.samples, local.ids, local.distinct_ids, local.most_ids,
       local.most_distinct_ids, local.dropped, local.replaced},
      {8});
  LookupStatistics all;
  for (const Tensor& t : distribute::gather_tensors(
           s.strategy.process_group(), "TPUEmbedding.lookup_statistics", {&counts, 1})) {
    const auto n = t.data<int64_t>();
    add_statistics(all, {.lookups = n[0],
                         .samples = n[1],
                         .ids = n[2],
                         .distinct_ids = n[3],
                         .most_ids = n[4],
                         .most_distinct_ids = n[5],
                         .dropped = n[6],
                         .replaced = n[7]});
  }
  return all;
}

}  // namespace keel

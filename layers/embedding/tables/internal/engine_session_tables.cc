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

StateEntry::Rows EngineSession::State::row_access(const EngineSession& self, int table,
                                                  int part) const {
  const auto [first, end] = local_rows(*engine, table, rows(table));
  return {.first = first,
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
  Tensor out = Tensor::uninitialized({rows, engine->tables()[index].dim}, DType::kFloat32);
  const auto [first, end] = state_->local_rows(*engine, index, rows);
  const int64_t dim = out.dim(1);
  const std::span<float> values = out.mutable_data<float>();
  engine->read_rows(index, part, first, end, values.data() + first * dim);
  distribute::ProcessGroup& group = state_->strategy.process_group();
  if (group.size() == 1) return out;
  const std::span<const float> local = values.subspan(first * dim, (end - first) * dim);
  // Copies the parts in rank order: the row ranges of the processes are consecutive. The part of
  // this process is empty in the result and is in place already.
  auto to = values.begin();
  for (const auto& parts :
       distribute::all_gather(group, "TPUEmbedding.retrieve", {std::as_bytes(local)})) {
    if (parts.empty()) {
      to += static_cast<std::ptrdiff_t>(local.size());
    } else {
      to = std::ranges::copy(distribute::as_elements<float>(parts[0]), to).out;
    }
  }
  return out;
}

void EngineSession::write(int table, int part, const Tensor& values) const {
  const Shape shape = {state_->rows(table), state_->tables.tables[table].own->dim};
  if (values.shape() != shape || values.dtype() != DType::kFloat32) {
    throw ValueError(kTablesCaller, ": table '", state_->tables.tables[table].own->name,
                     "' must be float32 ", shape, ", received ", values.dtype(), " ",
                     values.shape());
  }
  const auto [engine, index] = state_->drained_table(table, part);
  const auto [first, end] = state_->local_rows(*engine, index, shape[0]);
  engine->write_rows(index, part, first, end, values.data<float>().data() + first * shape[1]);
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
           .spec = {.shape = {table.vocabulary_size, table.dim}},
           .kind = part == 0 ? StateEntry::Kind::kWeight : StateEntry::Kind::kSlot,
           .trainable = part == 0,
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

}  // namespace keel

#include <keel/layers/embedding/tables/internal/keyed_variable.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/message_stream.h>
#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/tables/internal/dynamic_entries.h>

namespace keel {
namespace {

using distribute::FeatureBatch;
using distribute::KeyedLookup;
using distribute::KeyedTable;
using distribute::Strategy;

constexpr char kApply[] = "apply_gradients";

// At most this many training lookups of each replica wait for an update. Gradients of older ones
// are refused.
constexpr size_t kMostLookups = 128;

size_t most_lookups() {
  const ReplicaContext* const context = current_replica_context();
  return kMostLookups * static_cast<size_t>(context == nullptr ? 1 : context->local_replicas);
}

// A row id of a gradient consists of the ticket of the lookup and the number of the key. This
// number marks a row of zeros, which names the lookup although the gradient has no rows.
constexpr int64_t kTicketUnit = int64_t{1} << 32;
constexpr int64_t kMarker = kTicketUnit - 1;

FeatureBatch batch_of(const FeatureBags& bags) {
  return {.ids = bags.ids, .row_splits = bags.row_splits, .weights = bags.weights};
}

// Replaces the ids of the bags by the numbers of the distinct keys.
void take_numbers(const KeyedLookup& lookup, FeatureBags& bags) {
  const std::vector<uint32_t>& numbers = lookup.numbers[0];
  Tensor ids = Tensor::uninitialized({std::ssize(numbers)}, DType::kInt64);
  std::ranges::copy(numbers, ids.mutable_data<int64_t>().begin());
  bags.ids = std::move(ids);
  bags.row_splits = lookup.features[0].row_splits;
  bags.weights = lookup.features[0].weights;
}

Tensor rows_read(const KeyedTable& table, const KeyedLookup& lookup) {
  const int64_t dim = table.options().dim;
  Tensor out = Tensor::uninitialized({std::ssize(lookup.reads), dim}, DType::kFloat32);
  float* to = out.mutable_data<float>().data();
  for (const int64_t row : lookup.reads) {
    if (row < 0) {
      std::copy_n(&lookup.given_rows[(-1 - row) * dim], dim, to);
    } else {
      table.shard().read(0, row, to);
    }
    to += dim;
  }
  return out;
}

bool spans_processes(const Strategy& strategy) {
  return strategy.num_replicas_in_sync() != strategy.num_local_replicas();
}

distribute::ProcessGroup* processes_of_replicas() {
  const Strategy& strategy = Strategy::current();
  return spans_processes(strategy) ? &strategy.process_group() : nullptr;
}

// The values in which equal tables of several processes do not differ.
struct Summary {
  int64_t updates = 0, row_limit = 0, rows = 0, pending = 0, clock = 0;
  int64_t dim = 0, capacity = 0;
  uint64_t seed = 0, purpose = 0;  // of the stream of initial rows
  bool operator==(const Summary&) const = default;
};

Summary summary_of(const KeyedTable& table) {
  const auto [rows, pending] = table.saved_ranges();
  return {.updates = table.updates(),
          .row_limit = table.row_limit(),
          .rows = rows.total,
          .pending = pending.total,
          .clock = table.clock(),
          .dim = table.options().dim,
          .capacity = table.options().dynamic.capacity,
          .seed = table.stream().seed,
          .purpose = table.stream().purpose};
}

Initializer fallback_initializer(const TableConfig& table) {
  return table.dynamic->not_admitted.initializer.value_or(table_initializer(table));
}

}  // namespace

Tensor inference_rows(const KeyedTable& table, FeatureBags& bags) {
  const FeatureBatch batch = batch_of(bags);
  const auto lookup = table.look_up({&batch, 1}, false, table.updates());
  take_numbers(*lookup, bags);
  return rows_read(table, *lookup);
}

KeyedVariable::KeyedVariable(const TableConfig& table, const Variable& variable)
    : config_(table),
      initial_(table.dim, table_initializer(table), fallback_initializer(table),
               table_initializer(table).next_stream()),
      copies_(processes_of_replicas()),
      table_(made({})),
      variable_(variable) {}

std::pair<Variable, std::shared_ptr<KeyedVariable>> KeyedVariable::create(const TableConfig& table,
                                                                          const std::string& name) {
  Variable variable(Tensor::zeros({0, table.dim}),
                    {.name = name.empty() ? table.name : name,
                     .trainable = table.trainable,
                     .rows = {.l2 = table.l2, .max_norm = table.max_norm}});
  std::shared_ptr<KeyedVariable> out(new KeyedVariable(table, variable));
  VariableStorage(variable).set_deferred_rows(out);
  return {std::move(variable), std::move(out)};
}

std::unique_ptr<KeyedTable> KeyedVariable::made(const std::vector<Slot>& slots) const {
  auto out = KeyedTable::create({.name = config_.name,
                                 .dynamic = *config_.dynamic,
                                 .dim = config_.dim,
                                 .slots = slots,
                                 .copies = copies_});
  out->set_initial_rows(initial_);
  return out;
}

Tensor KeyedVariable::look_up(FeatureBags& bags) {
  // No update follows the lookup of a frozen table.
  const bool training = GradientTape::any_active() && variable().trainable();
  if (!training) return inference_rows(*table_, bags);
  const FeatureBatch batch = batch_of(bags);
  const Lookup lookup = table_->look_up({&batch, 1}, true, table_->updates());
  take_numbers(*lookup, bags);
  int64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = next_ticket_++;
    lookups_.emplace_back(ticket, lookup);
    if (lookups_.size() > most_lookups()) lookups_.pop_front();
  }
  // The value of the variable is only a handle for the tape.
  const Tensor source = variable().read_rows(Tensor::zeros({0}, DType::kInt64));
  return custom_gradient({source}, [&] {
    return WithBackward{
        {rows_read(*table_, *lookup)},
        [self = shared_from_this(), ticket, shape = source.shape()](std::span<const Gradient> dy) {
          return std::vector<Gradient>{self->gradient_of(dy[0], ticket, shape)};
        }};
  })[0];
}

// Translates a gradient of the rows of a lookup to one of the variable.
Gradient KeyedVariable::gradient_of(const Gradient& of_rows, int64_t ticket,
                                    const Shape& shape) const {
  if (!of_rows) return {};
  std::vector<int64_t> ids = {ticket * kTicketUnit + kMarker};
  Tensor values;
  if (of_rows.is_slices()) {
    for (const int64_t id : of_rows.slices().ids.data<int64_t>()) {
      ids.push_back(ticket * kTicketUnit + id);
    }
    values = of_rows.slices().values;
  } else {
    values = of_rows.dense();
    for (int64_t id = 0; id < values.dim(0); ++id) ids.push_back(ticket * kTicketUnit + id);
  }
  Tensor all = Tensor::zeros({std::ssize(ids), config_.dim});
  std::ranges::copy(values.data<float>(), all.mutable_data<float>().begin() + config_.dim);
  const auto count = std::ssize(ids);
  return IndexedSlices{
      .ids = Tensor::from(ids, {count}), .values = std::move(all), .dense_shape = shape};
}

void KeyedVariable::materialize_all() {
  const Tensor keys = table_->keys();
  VariableStorage(variable()).replace_rows(table_->read(0, keys));
}

// The rows move to a table with these slots.
void KeyedVariable::set_slots(const std::vector<Slot>& slots) {
  const auto is_same = [](const Slot& a, const Slot& b) {
    return a.name == b.name && a.initial == b.initial;
  };
  if (std::ranges::equal(slots, table_->options().slots, is_same)) return;
  auto moved = made(slots);
  moved->restore(table_->state());
  moved->take_callbacks(*table_);
  table_ = std::move(moved);
}

// Returns the lookups that gradients name, each once.
std::vector<KeyedVariable::Lookup> KeyedVariable::lookups_named_by(
    const std::vector<IndexedSlices>& gradients) const {
  std::vector<Lookup> out;
  for (const IndexedSlices& gradient : gradients) {
    // The numbers of tickets depend on the timing of the replicas, but not their order within one.
    std::set<int64_t> tickets;
    for (const int64_t id : gradient.ids.data<int64_t>()) tickets.insert(id / kTicketUnit);
    for (const int64_t ticket : tickets) {
      const auto found = std::ranges::find(lookups_, ticket, &std::pair<int64_t, Lookup>::first);
      if (found == lookups_.end()) {
        throw RuntimeError(kApply, ": the gradient of table '", config_.name,
                           "' belongs to a lookup that was applied before or is too old; look up "
                           "again");
      }
      // Replicas that share a gradient share its lookups, which count once.
      if (std::ranges::find(out, found->second) == out.end()) out.push_back(found->second);
    }
  }
  return out;
}

// Returns the lookups of all processes, in the order of the replicas. Collective.
std::vector<KeyedVariable::Lookup> KeyedVariable::with_other_processes(
    const std::vector<Lookup>& own, distribute::ProcessGroup& group) const {
  distribute::MessageWriter mine;
  const Summary summary = summary_of(*table_);
  mine.put(summary);
  mine.put(std::ssize(own));
  for (const Lookup& lookup : own) table_->write_uses(*lookup, {&mine, 1});
  const auto received = all_gather(group, "ids of a table that is a variable", {mine.bytes()});
  std::vector<distribute::MessageReader> messages;
  for (int p = 0; p < group.size(); ++p) {
    messages.emplace_back(p == group.rank() ? mine.bytes() : received[p].at(0));
    if (!(messages.back().get<Summary>() == summary)) {
      throw RuntimeError(kApply, ": table '", config_.name,
                         "' differs between processes; run the same program in all processes");
    }
  }
  std::vector<Lookup> out;
  for (int p = 0; p < group.size(); ++p) {
    distribute::MessageReader& message = messages[p];
    if (p == group.rank()) {
      out.insert(out.end(), own.begin(), own.end());
      continue;
    }
    for (auto n = message.get<int64_t>(); n > 0; --n) out.push_back(table_->read_uses(message));
  }
  return out;
}

void KeyedVariable::plan_update(std::vector<IndexedSlices> gradients) {
  gradients_ = std::move(gradients);
  const Strategy& strategy = Strategy::current();
  planned_.clear();
  if (spans_processes(strategy)) {
    distribute::ProcessGroup& group = strategy.process_group();
    std::vector<Lookup> own;
    run_collectively(group, kApply, [&] { own = lookups_named_by(gradients_); });
    planned_ = with_other_processes(own, group);
  } else {
    planned_ = lookups_named_by(gradients_);
  }
  table_->plan_update(planned_);
}

// Returns the positions of the gradient's rows that contribute, and their row numbers.
std::pair<std::vector<int64_t>, std::vector<int64_t>> KeyedVariable::targets_of(
    const IndexedSlices& gradient) const {
  std::map<int64_t, Lookup> of_ticket(lookups_.begin(), lookups_.end());
  std::pair<std::vector<int64_t>, std::vector<int64_t>> out;
  const auto ids = gradient.ids.data<int64_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t number = ids[i] % kTicketUnit;
    if (number == kMarker) continue;
    const KeyedLookup& lookup = *of_ticket.at(ids[i] / kTicketUnit);
    const int64_t row = (lookup.targets.empty() ? lookup.reads : lookup.targets)[number];
    if (row == 0) continue;  // the gradient is dropped
    out.first.push_back(static_cast<int64_t>(i));
    out.second.push_back(row);
  }
  return out;
}

IndexedSlices KeyedVariable::contributions_of(const IndexedSlices& gradient) const {
  const auto [positions, rows] = targets_of(gradient);
  const int64_t dim = config_.dim;
  const float* const from = gradient.values.data<float>().data();
  std::vector<float> values;
  values.reserve(rows.size() * dim);
  for (const int64_t position : positions) {
    values.insert(values.end(), from + position * dim, from + (position + 1) * dim);
  }
  return {.ids = Tensor::from(rows, {std::ssize(rows)}),
          .values = Tensor::from(values, {std::ssize(rows), dim}),
          .dense_shape = {table_->row_limit(), dim}};
}

// Adding to zeros gives the bits of a dense gradient.
IndexedSlices KeyedVariable::all_rows_of(const IndexedSlices& gradient) const {
  const auto [positions, targets] = targets_of(gradient);
  const int64_t dim = config_.dim;
  const float* const from = gradient.values.data<float>().data();
  std::vector<int64_t> index(table_->row_limit(), -1), rows;
  for (int64_t row = 1; row < table_->row_limit(); ++row) {
    if (!table_->is_row(row)) continue;
    index[row] = std::ssize(rows);
    rows.push_back(row);
  }
  Tensor values = Tensor::zeros({std::ssize(rows), dim});
  const std::span<float> sums = values.mutable_data<float>();
  for (size_t i = 0; i < targets.size(); ++i) {
    float* const to = &sums[index[targets[i]] * dim];
    for (int64_t d = 0; d < dim; ++d) to[d] += from[positions[i] * dim + d];
  }
  return {.ids = Tensor::from(rows, {std::ssize(rows)}),
          .values = std::move(values),
          .dense_shape = {table_->row_limit(), dim}};
}

KeyedRows::Update KeyedVariable::commit_update(bool all_rows) {
  table_->commit_update();
  for (const Lookup& lookup : planned_) {
    if (!lookup->is_foreign) table_->resolve(*lookup);
  }
  const TableRows memory = table_->shard().parts();
  Update out = {.values = memory.values, .row_step = memory.row_step};
  for (const IndexedSlices& gradient : gradients_) {
    out.rows.push_back(all_rows && out.rows.empty() ? all_rows_of(gradient)
                                                    : contributions_of(gradient));
  }
  out.slots.assign(memory.slots, memory.slots + table_->shard().slots());
  return out;
}

void KeyedVariable::finish_update() {
  std::erase_if(lookups_, [&](const auto& entry) {
    return std::ranges::find(planned_, entry.second) != planned_.end();
  });
  planned_.clear();
  gradients_.clear();
  table_->finish_update();
}

std::vector<StateEntry> keyed_entries(const std::string& name,
                                      const std::shared_ptr<KeyedVariable>& keyed) {
  std::vector<std::string> slots;
  for (const Slot& slot : keyed->table().options().slots) slots.push_back(name + "/" + slot.name);
  std::vector<StateEntry> out =
      dynamic_entries(name, slots, keyed->table(), [keyed] { return &keyed->table(); });
  for (StateEntry& entry : out) {
    if (entry.name == name) entry.variable_id = keyed->variable().id();
  }
  return out;
}

}  // namespace keel

#include <keel/distribute/embedding/engine.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <keel/distribute/embedding/engine_internal.h>
#include <keel/distribute/embedding/optimization_parameters_internal.h>
#include <keel/framework/base/internal/memory_error.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/kernels/embedding/id_range.h>

#include "distribute/embedding/tpu_embedding_configuration.pb.h"

namespace keel::distribute {
namespace {

// After this many lookups without an update, no update is expected any more, because the tables may
// be frozen. Grouping ids for it would be wasted.
constexpr int64_t kLookupsBeforeUpdates = 4;

void quantize(const Quantization& q, std::span<float> values) {
  const double quantum = (q.upper - q.lower) / static_cast<double>(q.num_buckets - 1);
  for (float& x : values) {
    const double clipped = std::clamp<double>(x, q.lower, q.upper);
    x = static_cast<float>(std::floor((clipped - q.lower) / quantum + 0.5) * quantum + q.lower);
  }
}

// Returns the label of lookups, a hash of the shapes of the tables and of their optimizers.
// Processes whose tables differ, for example because each derived its vocabularies from its own
// data, must not exchange ids. Processes with different rules or learning rates must not update
// each other's rows. Table names are not included, because numbers in them may differ.
std::string label_of(const EngineConfiguration& configuration) {
  std::string shapes, optimizers;
  for (const EngineTable& t : configuration.tables) {
    shapes += str(t.rows, ' ', t.dim, ' ');
    try {
      optimizers += write_optimization_parameters(t).SerializeAsString();
    } catch (const ValueError&) {  // the rule cannot be serialized
    }
  }
  const std::hash<std::string> hash;
  return str("lookup of ids in tables ", std::hex, hash(shapes), " with optimizers ",
             hash(optimizers));
}

uint64_t key_of(const std::string& name) {
  uint64_t key = 0;
  for (const char c : name) key = kernels::mixed_key(key, static_cast<unsigned char>(c));
  return key;
}

}  // namespace

kernels::Bags bags_of(const FeatureBatch& batch) {
  return {.ids = batch.ids.data<int64_t>().data(),
          .splits = batch.row_splits ? batch.row_splits.data<int64_t>().data() : nullptr,
          .samples = (batch.row_splits ? batch.row_splits.size() - 1 : batch.ids.size()),
          .weights = batch.weights ? batch.weights.data<float>().data() : nullptr};
}

// Returns the table after checking that rows [first, end) are held here.
TableShard& EmbeddingEngine::State::held_with(int table, int64_t first, int64_t end) {
  TableShard& out = held.at(table);
  for (int64_t row = first; row < end && !out.rows().all(); ++row) {
    if (out.rows().contain(row)) continue;
    throw RuntimeError(
        "EmbeddingEngine: row ", row, " of table '", tables()[table].name,
        "' is stored by another process; local_rows() returns the rows of this process");
  }
  return out;
}

void EmbeddingEngine::State::check(const std::vector<FeatureBatch>& features) const {
  if (features.size() != configuration.features.size()) {
    throw ValueError("EmbeddingEngine: received ", features.size(), " features, expected ",
                     configuration.features.size());
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const EngineTable& table = tables()[table_of(f)];
    const auto ids = features[f].ids.data<int64_t>();
    if (kernels::all_in_range(ids, table.rows)) continue;
    const auto bad =
        std::ranges::find_if(ids, [&](int64_t id) { return id < 0 || id >= table.rows; });
    throw ValueError("EmbeddingEngine: feature ", f, ": id ", *bad, " at position ",
                     bad - ids.begin(), " is outside table '", table.name, "' of ", table.rows,
                     " rows");
  }
}

void EmbeddingEngine::State::check(const std::vector<FeatureBatch>& features,
                                   const std::vector<Tensor>& gradients,
                                   const std::vector<TableStep>& steps) const {
  if (gradients.size() != features.size()) {
    throw ValueError("EmbeddingEngine: received ", gradients.size(), " gradients for ",
                     features.size(), " features; pass one for each feature");
  }
  if (steps.size() != tables().size()) {
    throw ValueError("EmbeddingEngine: received ", steps.size(), " steps for ", tables().size(),
                     " tables; pass one for each table");
  }
  for (size_t t = 0; t < steps.size(); ++t) {
    const double rate = steps[t].learning_rate;
    if (std::isfinite(rate) && rate >= 0) continue;
    throw ValueError("EmbeddingEngine: table '", tables()[t].name,
                     "': learning_rate must be finite and not negative, received ", rate);
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const Tensor& gradient = gradients[f];
    if (!gradient) continue;
    if (gradient.dtype() != DType::kFloat32) {
      throw TypeError("EmbeddingEngine: feature ", f, ": its gradient must be float32, received ",
                      gradient.dtype());
    }
    const Shape shape = {bags_of(features[f]).samples, dims[table_of(f)]};
    if (gradient.shape() != shape) {
      throw ValueError("EmbeddingEngine: feature ", f, ": its gradient must have shape ", shape,
                       ", received ", gradient.shape());
    }
  }
}

// Fetches the rows that other processes hold.
void EmbeddingEngine::State::fetch(Communicator& communicator,
                                   const std::vector<FeatureBatch>& features, Scratch& s) const {
  const profile::Scope scope(profile::Phase::kLookup, "fetch rows");
  s.elsewhere.resize(tables().size());
  for (auto& ids : s.elsewhere) ids.clear();
  for (size_t f = 0; f < features.size(); ++f) {
    const LocalRows& rows = held[table_of(f)].rows();
    for (const int64_t id : features[f].ids.data<int64_t>()) {
      if (!rows.contain(id)) s.elsewhere[table_of(f)].push_back(id);
    }
  }
  s.remote.fetch(communicator, held, s.elsewhere, label);
}

std::vector<Tensor> EmbeddingEngine::State::pool(const std::vector<FeatureBatch>& features,
                                                 Scratch& s, Prepared* prepared) const {
  const profile::Scope scope(profile::Phase::kLookup, "pool");
  std::vector<Tensor> out(features.size());
  std::vector<int64_t> next_remote(tables().size(), 0);
  for (size_t f = 0; f < features.size(); ++f) {
    if (prepared != nullptr && prepared->pooled[f] != 0) {
      out[f] = std::move(prepared->values[f]);
      continue;
    }
    const FeatureBatch& batch = features[f];
    const size_t t = table_of(f);
    const TableShard& table = held[t];
    const kernels::Bags bags = bags_of(batch);
    out[f] = Tensor::uninitialized({bags.samples, dims[t]}, DType::kFloat32);
    float* to = out[f].mutable_data<float>().data();
    if (!table.rows().all() || tables()[t].quantization) {
      pool_by_pointer(f, batch, next_remote, s, to);
    } else {
      table.look_up(bags, tables()[t].combiner, to);
    }
  }
  return out;
}

// Pools rows through pointers. The rows are held here, fetched from other processes, or copied
// first because they are quantized or stored as 16-bit floats.
void EmbeddingEngine::State::pool_by_pointer(size_t feature, const FeatureBatch& batch,
                                             std::vector<int64_t>& next_remote, Scratch& s,
                                             float* out) const {
  const size_t t = table_of(feature);
  const TableShard& table = held[t];
  const auto ids = batch.ids.data<int64_t>();
  const auto& quantization = tables()[t].quantization;
  const bool copies = quantization || table.storage() != kernels::StorageType::kFloat32;
  s.copies.resize(copies ? ids.size() * dims[t] : 0);
  float* copy = s.copies.data();
  s.rows.clear();
  for (const int64_t id : ids) {
    const bool here = table.rows().contain(id);
    const float* there = here ? nullptr : s.remote.row(t, next_remote[t]++);
    if (!copies) {
      s.rows.push_back(here ? table.row(id) : there);
      continue;
    }
    here ? table.read(0, id, copy) : static_cast<void>(std::copy_n(there, dims[t], copy));
    s.rows.push_back(copy);
    copy += dims[t];
  }
  if (quantization) quantize(*quantization, s.copies);
  kernels::Bags bags = bags_of(batch);
  if (bags.splits != nullptr) {
    kernels::pool_rows(s.rows.data(), dims[t], bags, tables()[t].combiner, out);
  } else {
    kernels::gather_rows(s.rows.data(), dims[t], bags.samples, out);
  }
}

// A pending update that fails before it writes rows stays pending, so that it is not lost. Once it
// has written rows it is not retried, because it would update these rows twice.
void EmbeddingEngine::State::run_pending(Communicator& communicator) {
  std::vector<Pending>& waiting = pending[communicator.rank() - first_shard];
  while (!waiting.empty()) {
    try {
      // An update whose run has failed begins again. With several processes the job is over
      // instead.
      const bool alone = communicator.placement().processes() == 1;
      if (alone || !waiting.front().has_begun) begin_update(communicator, waiting.front());
      finish_update(communicator, waiting.front());
    } catch (...) {
      if (waiting.front().writes) waiting.erase(waiting.begin());
      throw;
    }
    waiting.erase(waiting.begin());
  }
}

EmbeddingEngine::EmbeddingEngine(const EngineConfiguration& configuration, const LocalShards& local)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.configuration = configuration;
  s.label = label_of(configuration);
  s.first_shard = local.first;
  const int count = local.count < 0 ? shards() - local.first : local.count;
  s.scratch = std::vector<State::Scratch>(count);
  for (State::Scratch& scratch : s.scratch) {
    scratch.updates.resize(configuration.tables.size());
    scratch.patches.resize(configuration.tables.size());
    scratch.pools_ahead.resize(configuration.tables.size(), 1);
  }
  s.pending.resize(count);
  for (std::vector<RowGradientList>& sums : s.sums) sums.resize(shards());
  const int cores = configuration.num_tensor_cores / configuration.num_hosts;
  for (const EngineTable& t : tables()) {
    const std::vector<Slot> slots =
        t.update.rule == nullptr ? std::vector<Slot>{} : t.update.rule->slots();
    s.dims.push_back(t.dim);
    s.table_keys.push_back(key_of(t.name));
    const LocalRows rows(Partition(t.rows, configuration.sharding()), local.first / cores,
                         (local.first + count) / cores);
    const Shape shape = {rows.count(), t.dim};
    const size_t of_weight = t.storage == kernels::StorageType::kFloat32 ? 4 : 2;
    allocate_for(
        "TPUEmbedding: table '" + t.name + "' with " + std::to_string(slots.size()) + " slots",
        shape, bytes_for(shape, static_cast<double>(of_weight + 4 * slots.size())),
        [&] { s.held.emplace_back(t.dim, slots, rows, t.storage); });
  }
}

// Destroys the scratch first: its background threads read the tables.
EmbeddingEngine::~EmbeddingEngine() { state_->scratch.clear(); }

const EngineConfiguration& EmbeddingEngine::configuration() const { return state_->configuration; }

void EmbeddingEngine::initialize(int table, int part, int64_t rows,
                                 const InitializerFunction& initializer,
                                 const RandomStream& stream) {
  drop_prepared();
  state_->held.at(table).initialize(part, rows, initializer, stream);
}

std::pair<int64_t, int64_t> EmbeddingEngine::local_rows(int table) const {
  const LocalRows& rows = state_->held.at(table).rows();
  if (!rows.is_run()) {
    throw NotImplementedError(
        "EmbeddingEngine: tables with mod sharding cannot be read or written when the hosts are in "
        "several processes; use div sharding");
  }
  return {rows.first_row(), rows.first_row() + rows.count()};
}

void EmbeddingEngine::read_rows(int table, int part, int64_t begin, int64_t end, float* out) const {
  const TableShard& held = state_->held_with(table, begin, end);
  for (int64_t row = begin; row < end; ++row, out += held.dim()) held.read(part, row, out);
}

void EmbeddingEngine::write_rows(int table, int part, int64_t begin, int64_t end,
                                 const float* values) {
  drop_prepared();
  TableShard& held = state_->held_with(table, begin, end);
  for (int64_t row = begin; row < end; ++row, values += held.dim()) held.write(part, row, values);
  if (part != 0) return;
  for (State::Scratch& scratch : state_->scratch) scratch.updates[table] = {};
}

Tensor EmbeddingEngine::retrieve(int table, int part) const {
  const EngineTable& t = tables().at(table);
  Tensor out = Tensor::uninitialized({t.rows, t.dim}, DType::kFloat32);
  read_rows(table, part, 0, t.rows, out.mutable_data<float>().data());
  return out;
}

void EmbeddingEngine::load(int table, int part, const Tensor& values) {
  const EngineTable& t = tables().at(table);
  if (values.shape() != Shape{t.rows, t.dim} || values.dtype() != DType::kFloat32) {
    throw ValueError("EmbeddingEngine: table '", t.name, "' must be float32 ", Shape{t.rows, t.dim},
                     ", received ", values.dtype(), " ", values.shape());
  }
  write_rows(table, part, 0, t.rows, values.data<float>().data());
}

EmbeddingEngine::Activations EmbeddingEngine::lookup(Communicator& communicator,
                                                     const std::vector<FeatureBatch>& features,
                                                     bool training) {
  State& s = *state_;
  const profile::Scope scope(profile::Phase::kLookup, "tables");
  if (communicator.size() != shards()) {
    throw RuntimeError("EmbeddingEngine: created for ", shards(),
                       " replicas, but called under a strategy with ", communicator.size(),
                       "; call it under the strategy that created it");
  }
  State::Scratch& scratch = s.scratch[communicator.rank() - s.first_shard];
  const auto prepared = training ? s.take_prepared(features, scratch) : nullptr;
  if (prepared == nullptr) s.check(features);
  // Without pipelining, updates are pending only because they wait for other processes. Apply them
  // before rows are read.
  if (!training || !configuration().pipeline_execution_with_tensor_core) {
    s.run_pending(communicator);
  }
  auto ticket = std::make_shared<Ticket>();
  ticket->features = features;
  if (prepared != nullptr) {
    ticket->groups = std::move(prepared->groups);
  } else if (training && scratch.lookups < kLookupsBeforeUpdates) {
    // Group ids now, while other replicas may still be writing rows. Later it would evict the rows
    // that are about to be read and then updated from the cache.
    ticket->groups = scratch.memory_of_groups();
    s.group(features, ticket->groups);
  }
  communicator.wait_for_arrivals();  // until all replicas have written their rows
  if (communicator.placement().processes() > 1) s.fetch(communicator, features, scratch);
  if (prepared != nullptr) s.refresh(communicator, *prepared, scratch);
  std::vector<Tensor> values = s.pool(features, scratch, prepared.get());
  if (training) {
    ++scratch.lookups;
    s.run_pending(communicator);
    s.begin_first(communicator, scratch);
  }
  return {.values = std::move(values), .ticket = std::move(ticket)};
}

void EmbeddingEngine::apply(Communicator& communicator, std::shared_ptr<Ticket> ticket,
                            std::vector<Tensor> gradients, std::vector<TableStep> steps) {
  if (ticket->used) {
    throw RuntimeError(
        "EmbeddingEngine: the gradient of one lookup was requested twice; a lookup updates its "
        "tables once, so look up again");
  }
  state_->check(ticket->features, gradients, steps);
  ticket->used = true;
  const bool is_pipelined = configuration().pipeline_execution_with_tensor_core;
  if (!is_pipelined) state_->run_pending(communicator);
  State::Pending update = {
      .ticket = std::move(ticket), .gradients = std::move(gradients), .steps = std::move(steps)};
  const int local = communicator.rank() - state_->first_shard;
  State::Scratch& scratch = state_->scratch[local];
  scratch.label = str("update after ", std::exchange(scratch.lookups, 0), " lookups");
  if (is_pipelined) {
    // The barrier detects a replica that skips its update now instead of in the next lookup.
    communicator.barrier(scratch.label);
    state_->pending[local].push_back(std::move(update));
    return;
  }
  state_->begin_update(communicator, update);
  if (communicator.placement().processes() > 1) {
    // The sums of other processes arrive while the dense variables are updated.
    state_->pending[local].push_back(std::move(update));
  } else {
    state_->finish_update(communicator, update);
  }
}

void EmbeddingEngine::drain(Communicator& communicator) { state_->run_pending(communicator); }

bool EmbeddingEngine::has_pending() const {
  return std::ranges::any_of(state_->pending, [](const auto& p) { return !p.empty(); });
}

void EmbeddingEngine::forget_uneven_pending() {
  drop_prepared();
  int64_t most = 0;
  for (const State::Scratch& scratch : state_->scratch) {
    most = std::max(most, scratch.updates_done);
  }
  for (State::Scratch& scratch : state_->scratch) {
    scratch.lookups = 0;
    scratch.updates_done = most;
  }
  const auto& pending = state_->pending;
  const size_t first = pending.front().size();
  if (std::ranges::all_of(pending, [&](const auto& p) { return p.size() == first; })) return;
  for (auto& p : state_->pending) p.clear();
}

}  // namespace keel::distribute

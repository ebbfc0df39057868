#include <keel/distribute/embedding/engine.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <utility>

#include <keel/distribute/embedding/internal/batch_lookup.h>
#include <keel/distribute/embedding/internal/batch_prefetcher.h>
#include <keel/distribute/embedding/internal/engine_tables.h>
#include <keel/distribute/embedding/internal/keyed_batch_lookup.h>
#include <keel/distribute/embedding/internal/row_updater.h>
#include <keel/distribute/internal/placement.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/update_rule.h>

namespace keel::distribute {
namespace {

// After this many lookups without an update, no update is expected any more, because the tables may
// be frozen. Grouping ids for it would be wasted.
constexpr int64_t kLookupsBeforeUpdates = 4;

}  // namespace

// The work of one replica.
struct EmbeddingEngine::Replica {
  Replica(EngineTables& tables, GradientSums& sums)
      : updater(tables, sums, buffers),
        lookup(tables),
        keyed_lookup(tables),
        prefetcher(tables, updater, buffers) {}

  // Applies the pending updates of this replica.
  void apply_pending(Communicator& communicator) {
    if (updater.pending() == 0) return;
    prefetcher.stop_pooling();
    updater.apply_pending(communicator);
  }

  GroupBuffers buffers;
  RowUpdater updater;
  BatchLookup lookup;
  KeyedBatchLookup keyed_lookup;
  BatchPrefetcher prefetcher;
  // Number of lookups since the last update. Within one process lookups do not synchronize, so the
  // label of the update checks that all replicas have made the same number.
  int64_t lookups = 0;
};

struct EmbeddingEngine::State {
  State(const EngineConfiguration& configuration, int first, int shards, ProcessGroup* group)
      : tables(configuration, first, shards, group),
        sums(configuration.num_tensor_cores),
        first_shard(first) {
    for (int r = 0; r < shards; ++r) {
      replicas.push_back(std::make_unique<Replica>(tables, sums));
    }
  }
  Replica& replica(const Communicator& communicator) {
    return *replicas[communicator.rank() - first_shard];
  }
  void drop_prefetched() {
    for (auto& replica : replicas) replica->prefetcher.drop_all();
  }

  EngineTables tables;
  GradientSums sums;
  const int first_shard;
  // By local replica. Last, because their background threads read the tables.
  std::vector<std::unique_ptr<Replica>> replicas;
};

EmbeddingEngine::EmbeddingEngine(const EngineConfiguration& configuration, const LocalShards& local)
    : state_(std::make_unique<State>(
          configuration, local.first,
          local.count < 0 ? configuration.num_tensor_cores - local.first : local.count,
          local.group)) {}

EmbeddingEngine::~EmbeddingEngine() = default;

const EngineConfiguration& EmbeddingEngine::configuration() const {
  return state_->tables.configuration();
}

void EmbeddingEngine::initialize(int table, int part, int64_t rows,
                                 const InitializerFunction& initializer,
                                 const RandomStream& stream) {
  state_->drop_prefetched();
  state_->tables.shard_with(table, 0, 0).initialize(part, rows, initializer, stream);
}

int64_t EmbeddingEngine::width(int table, int part) const {
  return state_->tables.shard(static_cast<size_t>(table)).width(part);
}

const LocalRows& EmbeddingEngine::local_rows(int table) const {
  check_static(table);
  return state_->tables.shard_with(table, 0, 0).rows();
}

void EmbeddingEngine::check_static(int table) const {
  if (state_->tables.keyed(table) == nullptr) return;
  throw NotImplementedError("EmbeddingEngine: table '", tables()[table].name,
                            "' has dynamic ids and no numbered rows; use DynamicTable");
}

KeyedTable* EmbeddingEngine::keyed_table(int table) const { return state_->tables.keyed(table); }

void EmbeddingEngine::read_rows(int table, int part, int64_t begin, int64_t end, float* out) const {
  check_static(table);
  const TableShard& shard = state_->tables.shard_with(table, begin, end);
  for (int64_t row = begin; row < end; ++row, out += shard.width(part)) {
    shard.read(part, row, out);
  }
}

void EmbeddingEngine::write_rows(int table, int part, int64_t begin, int64_t end,
                                 const float* values) {
  check_static(table);
  state_->drop_prefetched();
  TableShard& shard = state_->tables.shard_with(table, begin, end);
  for (int64_t row = begin; row < end; ++row, values += shard.width(part)) {
    shard.write(part, row, values);
  }
  if (part != 0) return;
  for (auto& replica : state_->replicas) replica->updater.restart_numbering(table);
}

Tensor EmbeddingEngine::retrieve(int table, int part) const {
  const EngineTable& t = tables().at(table);
  Tensor out = Tensor::uninitialized({t.rows, width(table, part)}, DType::kFloat32);
  read_rows(table, part, 0, t.rows, out.mutable_data<float>().data());
  return out;
}

void EmbeddingEngine::load(int table, int part, const Tensor& values) {
  const EngineTable& t = tables().at(table);
  const Shape shape = {t.rows, width(table, part)};
  if (values.shape() != shape || values.dtype() != DType::kFloat32) {
    throw ValueError("EmbeddingEngine: table '", t.name, "' must be float32 ", shape, ", received ",
                     values.dtype(), " ", values.shape());
  }
  write_rows(table, part, 0, t.rows, values.data<float>().data());
}

EmbeddingEngine::Activations EmbeddingEngine::lookup(Communicator& communicator,
                                                     const std::vector<FeatureBatch>& features,
                                                     bool training) {
  const profile::Scope scope(profile::Phase::kLookup, "tables");
  if (communicator.size() != shards()) {
    throw RuntimeError("EmbeddingEngine: created for ", shards(),
                       " replicas, but called under a strategy with ", communicator.size(),
                       "; call it under the strategy that created it");
  }
  const EngineTables& tables = state_->tables;
  Replica& replica = state_->replica(communicator);
  const auto prefetched = training ? replica.prefetcher.take(features) : nullptr;
  if (prefetched == nullptr) tables.check(features);
  // Without pipelining, updates are pending only because they wait for other processes. Apply them
  // before rows are read.
  if (!training || !configuration().pipeline_execution_with_tensor_core) {
    replica.apply_pending(communicator);
  }
  auto ticket = std::make_shared<Ticket>();
  ticket->features = features;
  if (prefetched != nullptr) {
    ticket->groups = std::move(prefetched->groups);
  } else if (training && replica.lookups < kLookupsBeforeUpdates) {
    // Group ids now, while other replicas may still be writing rows. Later it would evict the rows
    // that are about to be read and then updated from the cache.
    ticket->groups = replica.buffers.take();
    tables.group_ids(features, ticket->groups);
  }
  communicator.wait_for_arrivals();  // until all replicas have written their rows
  std::vector<Tensor> values;
  if (prefetched != nullptr) values = replica.prefetcher.take_values(communicator, *prefetched);
  replica.keyed_lookup.run(communicator, *ticket, training, replica.updater.pending());
  values = replica.lookup.run(communicator, ticket->features, ticket->keyed, std::move(values));
  if (training) {
    ++replica.lookups;
    replica.apply_pending(communicator);
    replica.prefetcher.start(communicator);
  }
  return {.values = std::move(values), .ticket = std::move(ticket)};
}

void EmbeddingEngine::prefetch(Communicator& communicator,
                               const std::vector<FeatureBatch>& features) {
  if (communicator.size() != shards()) return;
  try {
    state_->tables.check(features);
  } catch (const Error&) {
    return;
  }
  BatchPrefetcher& prefetcher = state_->replica(communicator).prefetcher;
  prefetcher.add(features);
  prefetcher.start(communicator);
}

void EmbeddingEngine::apply(Communicator& communicator, std::shared_ptr<Ticket> ticket,
                            std::vector<Tensor> gradients, std::vector<TableStep> steps) {
  if (ticket->used) {
    throw RuntimeError(
        "EmbeddingEngine: the gradient of one lookup was requested twice; a lookup updates its "
        "tables once, so look up again");
  }
  state_->tables.check(ticket->features, gradients, steps);
  ticket->used = true;
  Replica& replica = state_->replica(communicator);
  RowUpdater& updater = replica.updater;
  const bool is_pipelined = configuration().pipeline_execution_with_tensor_core;
  if (!is_pipelined) replica.apply_pending(communicator);
  updater.set_label(absl::StrCat("update after ", std::exchange(replica.lookups, 0), " lookups"));
  PendingUpdate update = {
      .ticket = std::move(ticket), .gradients = std::move(gradients), .steps = std::move(steps)};
  if (is_pipelined) {
    // The barrier detects a replica that skips its update now instead of in the next lookup.
    communicator.barrier(updater.label());
    updater.enqueue(std::move(update));
    return;
  }
  replica.prefetcher.stop_pooling();
  updater.begin(communicator, update);
  if (communicator.placement().processes() > 1 && !state_->tables.has_keyed()) {
    // The sums of other processes arrive while the dense variables are updated. Tables for
    // unbounded ids end their update here, because it may call functions of the program.
    updater.enqueue(std::move(update));
  } else {
    updater.collect(communicator, update);
    updater.update_rows(communicator, update);
  }
}

void EmbeddingEngine::drain(Communicator& communicator) {
  state_->replica(communicator).apply_pending(communicator);
}

bool EmbeddingEngine::has_pending() const {
  return std::ranges::any_of(state_->replicas,
                             [](const auto& replica) { return replica->updater.pending() > 0; });
}

void EmbeddingEngine::recover_from_failed_run() {
  state_->drop_prefetched();
  const auto& replicas = state_->replicas;
  int64_t most = 0;
  for (const auto& replica : replicas) most = std::max(most, replica->updater.updates_done());
  for (const auto& replica : replicas) {
    replica->lookups = 0;
    replica->updater.set_updates_done(most);
  }
  const size_t first = replicas.front()->updater.pending();
  const bool is_even = std::ranges::all_of(
      replicas, [&](const auto& replica) { return replica->updater.pending() == first; });
  if (is_even) return;
  for (const auto& replica : replicas) replica->updater.drop_pending();
}

}  // namespace keel::distribute

#include <keel/layers/embedding/mid_level/tpu_embedding_v2.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>

#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/layers/embedding/distributed/internal/id_limits.h>
#include <keel/layers/embedding/mid_level/internal/engine_tables.h>
#include <keel/layers/embedding/mid_level/internal/output_shapes.h>
#include <keel/layers/embedding/tables/internal/engine_session.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>

namespace keel::tpu {
namespace {

constexpr char kV2Caller[] = "TPUEmbeddingV2";
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
using LimitsByName = std::optional<std::map<std::string, int64_t>>;

const Nest<FeatureConfig>& under_strategy(const Nest<FeatureConfig>& features) {
  const distribute::Strategy& now = distribute::Strategy::current();
  if (!now.is_tpu()) {
    throw RuntimeError(kV2Caller, ": must be constructed in the scope of a TPUStrategy, received ",
                       now.name(), "; outside of one, use TPUEmbeddingForServing");
  }
  return features;
}

void check_names(const char* field, const LimitsByName& limits, const TableSet& tables) {
  if (!limits) return;
  for (const auto& [name, limit] : *limits) {
    const auto is_it = [&](const TableSet::Entry& entry) { return entry.own->name == name; };
    if (std::ranges::none_of(tables.tables, is_it)) {
      throw ValueError(kV2Caller, ": ", field, " names the unknown table '", name, "'");
    }
    if (limit < 1) {
      throw ValueError(kV2Caller, ": ", field, " of table '", name, "' must be positive, received ",
                       limit);
    }
  }
}

int64_t limit_of(const LimitsByName& limits, const std::string& name) {
  if (!limits) return kNoLimit;
  const auto it = limits->find(name);
  return it == limits->end() ? kNoLimit : it->second;
}

// Returns the number of ids of an input, with those that an IdPolicy drops.
int64_t count_ids(const TensorLike& input) { return input.values().size(); }

}  // namespace

struct PreservedResult::State {
  const void* owner = nullptr;
  int replica = 0;
  std::vector<Shape> shapes;  // of the activations
  std::shared_ptr<EngineSession::Ticket> ticket;
  bool applied = false;
};

class TPUEmbeddingV2::Accelerator {
 public:
  Accelerator(const TableSet& tables, const Nest<FeatureConfig>& features, bool pipelined,
              const SparseCoreEmbeddingConfig& config)
      : config_(config),
        tables_(std::make_shared<EngineTables>(
            EngineSession(tables, features, {.pipeline_execution_with_tensor_core = pipelined}))),
        candidates_(features),
        calls_(strategy_.num_local_replicas()) {
    check_names("max_ids_per_table", config.max_ids_per_table, tables);
    check_names("max_unique_ids_per_table", config.max_unique_ids_per_table, tables);
    if (config.max_ids_per_chip_per_sample < 1) {
      throw ValueError(kV2Caller, ": max_ids_per_chip_per_sample must be positive, received ",
                       config.max_ids_per_chip_per_sample);
    }
    const IdLimitPolicy policy =
        config.allow_id_dropping ? IdLimitPolicy::kDrop : IdLimitPolicy::kError;
    for (const TableSet::Entry& entry : tables.tables) {
      const std::string& name = entry.own->name;
      limiters_.emplace_back(
          name,
          IdLimits{.max_ids_per_partition = limit_of(config.max_ids_per_table, name),
                   .max_unique_ids_per_partition = limit_of(config.max_unique_ids_per_table, name)},
          policy, strategy_.num_replicas_in_sync(), false, kV2Caller);
      dropped_.push_back(0);
    }
  }

  const SparseCoreEmbeddingConfig& config() const { return config_; }
  const std::shared_ptr<EngineTables>& tables() const { return tables_; }
  EngineSession& session() { return tables_->session(); }
  const OutputShapes& candidates() const { return candidates_; }

  const ReplicaContext& replica(const char* call) {
    const ReplicaContext* const context = current_replica_context();
    if (context == nullptr) {
      throw RuntimeError(kV2Caller, ".", call,
                         ": must be called in a replica, inside Strategy::run");
    }
    session().check_strategy();
    return *context;
  }

  // Builds for these shapes unless the object is built.
  void build(const std::optional<std::vector<Shape>>& shapes) {
    const std::lock_guard lock(mutex_);
    if (tables_->built()) return;
    distribute::require_no_active_engine(strategy_, kV2Caller);
    OutputShapes settled = candidates_;
    if (shapes) {
      settled.check(*shapes);
      settled.update(*shapes);
    }
    output_shapes_ = settled.fully_defined();
    const NoGradient pause;
    tables_->build(output_shapes_);
    settled_.emplace(settled);
  }

  EngineSession::Lookup look_up(const ReplicaContext& replica, const Tensors& features,
                                const FeatureWeights& weights) {
    assert_same_structure(session().features(), features);
    if (weights) assert_same_structure(session().features(), *weights);
    const std::vector<Shape> shapes = candidates_.of_inputs(flatten(features));
    build(shapes);
    settled_->check(shapes);
    Limited limited = within_limits(features, weights);
    const EngineSession::Batch batch =
        session().encode(limited.features, limited.weights, output_shapes_);
    agree(replica, "embedding_lookup");
    EngineSession::Lookup found = session().lookup(batch, true);
    return found;
  }

  void apply(const ReplicaContext& replica, const std::shared_ptr<EngineSession::Ticket>& ticket,
             std::vector<Tensor> gradients) {
    agree(replica, "apply_gradients");
    session().apply(ticket, std::move(gradients));
  }

  IdStatistics statistics(size_t table) const {
    IdStatistics out = limiters_[table].statistics();
    const std::lock_guard lock(mutex_);
    out.dropped_ids += dropped_[table];
    return out;
  }

 private:
  struct Limited {
    Tensors features;
    FeatureWeights weights;
  };

  // Synchronizes the replicas before they enter the engine: calls that differ throw in all of them.
  void agree(const ReplicaContext& replica, const char* call) {
    const int64_t number = calls_[replica.local_replica]++;
    strategy_.communicator().barrier(absl::StrCat(kV2Caller, ".", call, ", call ", number));
  }

  // Applies the limits to one replica's batch. A batch within them is not changed.
  Limited within_limits(const Tensors& features, const FeatureWeights& weights) {
    std::vector<TensorLike> inputs = flatten(features);
    auto of_inputs =
        weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(inputs.size());
    bool changed = false;
    for (size_t t = 0; t < limiters_.size(); ++t) {
      changed = limit_table(t, inputs, of_inputs) || changed;
    }
    if (!changed) return {features, weights};
    return {map_structure(pack_sequence_as(session().features(), inputs),
                          [](const TensorLike& x) -> TensorLike { return x; }),
            pack_sequence_as(session().features(), of_inputs)};
  }

  // Returns the positions of a table's features.
  std::vector<size_t> features_of(size_t table) {
    std::vector<size_t> out;
    const std::vector<FeatureConfig> configs = flatten(session().features());
    for (size_t f = 0; f < configs.size(); ++f) {
      if (session().tables().find(configs[f].table) == static_cast<int>(table)) out.push_back(f);
    }
    return out;
  }

  bool limit_table(size_t table, std::vector<TensorLike>& inputs,
                   std::vector<std::optional<TensorLike>>& weights) {
    const TableConfig& config = *session().tables().tables[table].own;
    const std::vector<size_t> features = features_of(table);
    int64_t samples = 0, ids = 0;
    for (const size_t f : features) {
      samples += output_shapes_[f].size();
      ids += count_ids(inputs[f]);
    }
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    const int64_t each = config_.max_ids_per_chip_per_sample;
    const int64_t most = samples > 0 && each > kMost / samples ? kMost : each * samples;
    const bool has_limits = limit_of(config_.max_ids_per_table, config.name) != kNoLimit ||
                            limit_of(config_.max_unique_ids_per_table, config.name) != kNoLimit;
    if (ids > most && !config_.allow_id_dropping) {
      throw ValueError(kV2Caller, ": table '", config.name, "': a batch has ", ids, " ids for ",
                       samples, " samples, but max_ids_per_chip_per_sample is ",
                       config_.max_ids_per_chip_per_sample, "; raise it or set allow_id_dropping");
    }
    if (!has_limits && ids <= most) return false;
    std::vector<IdRows> rows;
    for (const size_t f : features) {
      rows.push_back(
          to_id_rows(session().paths()[f], inputs[f], weights[f],
                     {.vocabulary_size = config.vocabulary_size, .combiner = config.combiner}));
    }
    std::vector<IdRows*> all;
    for (IdRows& of_feature : rows) all.push_back(&of_feature);
    const auto count = [&] {
      int64_t sum = 0;
      for (const IdRows& of_feature : rows) sum += of_feature.ids.size();
      return sum;
    };
    const int64_t before = count();
    IdLimiter of_chip(config.name,
                      {.max_ids_per_partition = most, .max_unique_ids_per_partition = kNoLimit},
                      IdLimitPolicy::kDrop, 1, false, kV2Caller);
    of_chip.apply(all);
    const int64_t within = count();
    limiters_[table].apply(all);
    if (within < before) {
      const std::lock_guard lock(mutex_);
      dropped_[table] += before - within;
    }
    if (count() == before) return false;
    for (size_t i = 0; i < features.size(); ++i) {
      inputs[features[i]] = RaggedTensor{rows[i].ids, rows[i].row_splits};
      if (rows[i].weights) {
        weights[features[i]] = RaggedTensor{rows[i].weights, rows[i].row_splits};
      }
    }
    return true;
  }

  const SparseCoreEmbeddingConfig config_;
  distribute::Strategy& strategy_ = distribute::Strategy::current();
  const std::shared_ptr<EngineTables> tables_;
  const OutputShapes candidates_;
  mutable std::mutex mutex_;  // held while building; guards dropped_
  std::optional<OutputShapes> settled_;
  std::vector<Shape> output_shapes_;  // by feature, set by build
  std::deque<IdLimiter> limiters_;    // by table
  std::vector<int64_t> dropped_;      // by table, for the limit per sample
  std::vector<int64_t> calls_;        // of each local replica
};

TPUEmbeddingV2::TPUEmbeddingV2(const Nest<FeatureConfig>& feature_config,
                               const EmbeddingOptimizer& optimizer,
                               bool pipeline_execution_with_tensor_core,
                               const SparseCoreEmbeddingConfig& sparse_core_embedding_config)
    : EmbeddingBase(kV2Caller, under_strategy(feature_config), optimizer, false),
      accelerator_(std::make_unique<Accelerator>(table_set(), feature_config,
                                                 pipeline_execution_with_tensor_core,
                                                 sparse_core_embedding_config)) {}

TPUEmbeddingV2::~TPUEmbeddingV2() = default;

void TPUEmbeddingV2::build(const std::optional<InputShapes>& per_replica_input_shapes) {
  if (!per_replica_input_shapes) return accelerator_->build({});
  accelerator_->build(accelerator_->candidates().of_input_shapes(*per_replica_input_shapes));
}

bool TPUEmbeddingV2::built() const { return accelerator_->tables()->built(); }

EmbeddingResult TPUEmbeddingV2::embedding_lookup(const Tensors& features,
                                                 const FeatureWeights& weights) {
  const ReplicaContext& replica = accelerator_->replica("embedding_lookup");
  EngineSession::Lookup found = accelerator_->look_up(replica, features, weights);
  EmbeddingResult out;
  out.preserved.state_ = std::make_shared<PreservedResult::State>();
  PreservedResult::State& state = *out.preserved.state_;
  state.owner = accelerator_.get();
  state.replica = replica.replica;
  for (const Tensor& activation : found.activations) state.shapes.push_back(activation.shape());
  state.ticket = std::move(found.ticket);
  out.activations = map_structure(pack_sequence_as(feature_config(), found.activations),
                                  [](const Tensor& t) -> TensorLike { return t; });
  return out;
}

void TPUEmbeddingV2::apply_gradients(const Nest<Gradient>& gradients,
                                     const PreservedResult& preserved) {
  const ReplicaContext& replica = accelerator_->replica("apply_gradients");
  const auto fail = [](const char* what) {
    throw RuntimeError(kV2Caller, ".apply_gradients: ", what,
                       "; pass the second result of this replica's lookup, once");
  };
  PreservedResult::State* const state = preserved.state_.get();
  if (state == nullptr) fail("the preserved result belongs to no lookup");
  if (state->owner != accelerator_.get() || state->replica != replica.replica) {
    fail("the preserved result belongs to another object or replica");
  }
  if (state->applied) fail("the gradients of this lookup have been applied");
  assert_same_structure(feature_config(), gradients);
  std::vector<Tensor> dense;
  const std::vector<std::string> paths = flatten_paths(feature_config());
  for (const Gradient& gradient : flatten(gradients)) {
    const size_t f = dense.size();
    if (gradient && gradient.is_slices()) {
      throw ValueError(kV2Caller, ".apply_gradients: feature '", paths[f],
                       "' requires a dense gradient or none, received IndexedSlices");
    }
    dense.push_back(gradient ? gradient.dense() : Tensor());
    const Tensor& own = dense.back();
    if (own && (own.shape() != state->shapes[f] || own.dtype() != DType::kFloat32)) {
      throw ValueError(kV2Caller, ".apply_gradients: feature '", paths[f],
                       "' requires a float32 gradient of shape ", state->shapes[f], ", received ",
                       own.dtype(), " ", own.shape());
    }
  }
  state->applied = true;
  accelerator_->apply(replica, state->ticket, std::move(dense));
}

EmbeddingTables TPUEmbeddingV2::embedding_tables() {
  throw RuntimeError(kV2Caller,
                     ".embedding_tables: the tables are not variables; use table_values()");
}

std::map<std::string, Tensor> TPUEmbeddingV2::table_values() const {
  if (!built()) throw RuntimeError(kV2Caller, ".table_values: call build or look up a batch first");
  std::map<std::string, Tensor> out;
  int i = 0;
  for (const TableSet::Entry& entry : table_set().tables) {
    out.emplace(entry.own->name, accelerator_->session().read(i++, 0));
  }
  return out;
}

std::map<std::string, IdStatistics> TPUEmbeddingV2::id_statistics() const {
  std::map<std::string, IdStatistics> out;
  size_t i = 0;
  for (const TableSet::Entry& entry : table_set().tables) {
    out.emplace(entry.own->name, accelerator_->statistics(i++));
  }
  return out;
}

void TPUEmbeddingV2::count_lookups(bool count) {
  accelerator_->session().set_counts_lookups(count);
}

LookupStatistics TPUEmbeddingV2::statistics(size_t table) const {
  return accelerator_->session().statistics(table);
}

const SparseCoreEmbeddingConfig& TPUEmbeddingV2::sparse_core_embedding_config() const {
  return accelerator_->config();
}

std::shared_ptr<TrackedTables> TPUEmbeddingV2::tracked() const { return accelerator_->tables(); }

}  // namespace keel::tpu

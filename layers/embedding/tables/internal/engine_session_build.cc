// The part of EngineSession that creates its engine.
#include <algorithm>
#include <numeric>

#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/tables/internal/engine_session_state.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/optimizers/embedding/bounds_and_slots.h>

namespace keel {
namespace {

using distribute::EmbeddingEngine;
using distribute::EngineConfiguration;
using distribute::EngineTable;

constexpr char kBuildCaller[] = "TPUEmbedding";

// Returns true if both tables share a learning rate: the same function, or the schedule of one
// optimizer object.
bool is_same_rate(const TableOptimizerState& a, const TableOptimizerState& b) {
  if (calls_user_code(a) || calls_user_code(b)) return rate_source(a) == rate_source(b);
  return a.source != nullptr && a.source == b.source;
}

// Sets the batch size per tensor core to the greatest common divisor of the features' activation
// rows, and the num_features of each table to its activation rows per example of that batch. Leaves
// both unset if a dimension is unknown.
void count_features(EngineConfiguration& configuration) {
  int64_t batch = 0;
  for (const distribute::EngineFeature& f : configuration.features) {
    if (!f.input_shape.fully_defined()) return;
    batch = std::gcd(batch, f.input_shape.size());
  }
  if (batch == 0) return;
  configuration.batch_size_per_tensor_core = batch;
  for (const distribute::EngineFeature& f : configuration.features) {
    configuration.tables[f.table_id].num_features += f.input_shape.size() / batch;
  }
}

}  // namespace

EngineConfiguration EngineSession::State::configuration(
    const std::vector<Shape>& output_shapes) const {
  EngineConfiguration out = {
      .tables = {},
      .features = {},
      .num_hosts = strategy.num_hosts(),
      .num_tensor_cores = strategy.num_replicas_in_sync(),
      .sharding_strategy = options.sharding_strategy,
      .pipeline_execution_with_tensor_core = options.pipeline_execution_with_tensor_core,
      .profile_data_directory = options.profile_data_directory};
  const std::vector<std::optional<size_t>> rates = first_of_same_rate();
  int tags = 0;
  for (size_t t = 0; t < tables.tables.size(); ++t) {
    const TableConfig& config = *tables.tables[t].own;
    // A small table is padded so that every host owns at least one row.
    EngineTable& table = out.tables.emplace_back(EngineTable{
        .name = config.name,
        .rows = config.dynamic ? config.dynamic->capacity
                               : std::max<int64_t>(config.vocabulary_size, out.num_hosts),
        .dim = config.dim,
        .combiner = lookup_combiner(config),
        .update = config.trainable ? row_update(optimizer(t)) : distribute::RowUpdate{},
        .low_dimensional_packing = optimizer(t).low_dimensional_packing_status,
        .storage = storage_from_name(config.storage_dtype),
        .dynamic = config.dynamic});
    if (config.trainable) {
      table.update.global_clipnorm_group = static_cast<int>(first_of_same_optimizer(t));
      table.update.l2 = config.l2;
      table.update.max_norm = config.max_norm;
    }
    if (rates[t]) {
      table.learning_rate_tag = *rates[t] == t ? tags++ : *out.tables[*rates[t]].learning_rate_tag;
    } else if (config.trainable) {
      table.learning_rate = config.optimizer.current_learning_rate();
    }
    if (const auto& q = config.quantization_config) {
      table.quantization = distribute::Quantization{
          .num_buckets = q->num_buckets, .lower = q->lower, .upper = q->upper};
    }
  }
  for (size_t f = 0; f < configs.size(); ++f) {
    out.features.push_back({.name = configs[f].name,
                            .table_id = tables.find(configs[f].table),
                            .input_shape = output_shapes.at(f)});
  }
  count_features(out);
  return out;
}

size_t EngineSession::State::first_of_same_optimizer(size_t table) const {
  const auto same = [&](const TableSet::Entry& entry) {
    return entry.own->trainable && entry.own->optimizer == tables.tables[table].own->optimizer;
  };
  return std::ranges::find_if(tables.tables, same) - tables.tables.begin();
}

std::vector<std::optional<size_t>> EngineSession::State::first_of_same_rate() const {
  std::vector<std::optional<size_t>> out;
  for (size_t t = 0; t < tables.tables.size(); ++t) {
    out.emplace_back();
    if (rate_source(optimizer(t)).number()) continue;
    size_t first = 0;
    while (first < t && !is_same_rate(optimizer(first), optimizer(t))) ++first;
    out.back() = first;
  }
  return out;
}

std::vector<std::vector<Initializer>> EngineSession::State::slot_initializers() const {
  std::vector<std::vector<Initializer>> out;
  for (size_t t = 0; t < tables.tables.size(); ++t) {
    const TableConfig& table = *tables.tables[t].own;
    // Every row of a table for unbounded ids starts alike.
    const int64_t rows = table.dynamic ? 1 : table.vocabulary_size;
    const SlotVariables starts =
        create_slots(optimizer(t), {.name = table.name, .shape = {rows, table.dim}});
    std::vector<Initializer>& of_table = out.emplace_back();
    if (!optimizer(t).slot_variable_creation_fn && !optimizer(t).custom) continue;
    for (const Slot& slot : optimizer(t).rule->slots()) {
      const auto* initializer = std::get_if<Initializer>(&starts.at(slot.name));
      if (initializer == nullptr) {
        throw ValueError(kBuildCaller, ": slot '", slot.name, "' of table '", table.name,
                         "' requires an initializer, because each shard computes its own rows; "
                         "received a tensor from slot_variable_creation_fn");
      }
      of_table.push_back(*initializer);
    }
  }
  return out;
}

std::string EngineSession::State::entry_name(size_t table, size_t part) const {
  const std::string& name = tables.tables[table].own->name;
  if (part == 0) return name;
  // Uses the Keras optimizer's slot names, so that files are the same whether an engine or
  // variables hold the table.
  const TableOptimizerState& o = optimizer(table);
  return name + "/" +
         (o.source_slot_names.empty() ? o.rule->slots()[part - 1].name
                                      : o.source_slot_names[part - 1]);
}

namespace {

// Sets what the rows of a table for unbounded ids start with.
void initialize_keyed(distribute::KeyedTable& made, const TableConfig& table,
                      const std::vector<Initializer>& slots) {
  std::vector<float> initial_slots;
  for (const Initializer& slot : slots) {
    const std::string name = slot.function().class_name();
    if (name != "Zeros" && name != "Ones" && name != "Constant") {
      throw NotImplementedError(kBuildCaller, ": table '", table.name,
                                "' has dynamic ids and requires constant initial slots, received ",
                                name, " from slot_variable_creation_fn");
    }
    initial_slots.push_back(slot({1}).item<float>());
  }
  if (!initial_slots.empty()) made.shard().set_initial_slots(std::move(initial_slots));
  const Initializer initializer = table_initializer(table);
  made.set_initial_rows({table.dim, initializer,
                         table.dynamic->not_admitted.initializer.value_or(initializer),
                         initializer.next_stream()});
}

}  // namespace

// Draws from the same random streams as variables of these tables, so that both kinds of storage
// start with the same values.
void EngineSession::State::initialize(EmbeddingEngine& made,
                                      const std::vector<std::vector<Initializer>>& slots,
                                      const std::map<std::string, Tensor>& restored) const {
  for (size_t t = 0; t < tables.tables.size(); ++t) {
    const auto table = static_cast<int>(t);
    if (distribute::KeyedTable* const keyed = made.keyed_table(table)) {
      initialize_keyed(*keyed, *tables.tables[t].own, slots[t]);
      continue;
    }
    for (size_t part = 0; part <= optimizer(t).rule->slots().size(); ++part) {
      const auto index = static_cast<int>(part);
      const auto value = restored.find(entry_name(t, part));
      if (value != restored.end()) {
        const float* const values = value->second.data<float>().data();
        for_each_run(made.local_rows(table), rows(table), [&](int64_t first, int64_t end) {
          made.write_rows(table, index, first, end, values + first * value->second.dim(1));
        });
      } else if (part == 0 || !slots[t].empty()) {
        const Initializer initializer =
            part == 0 ? table_initializer(*tables.tables[t].own) : slots[t][part - 1];
        made.initialize(table, index, rows(table), initializer.function(),
                        initializer.next_stream());
      }
    }
  }
}

EngineSession::EngineSession(const TableSet& tables, const Nest<FeatureConfig>& features,
                             EngineSessionOptions options)
    : state_(new State{.tables = tables,
                       .features = features,
                       .options = std::move(options),
                       .strategy = distribute::Strategy::current(),
                       .strategy_lifetime = distribute::Strategy::current().lifetime(),
                       .configs = flatten(features),
                       .paths = flatten_paths(features),
                       .counter = InvalidIdCounter(flatten_paths(features).size()),
                       .lookup_counter = LookupCounter(tables.tables.size()),
                       .warned = std::vector<std::atomic<bool>>(flatten_paths(features).size())}) {
  state_->counts_lookups = state_->options.counts_lookups;
  state_->prefetched.resize(state_->strategy.num_local_replicas());
  for (const TableSet::Entry& entry : tables.tables) {
    if (entry.own->trainable && !entry.own->optimizer) {
      throw ValueError(
          kBuildCaller, ": table '", entry.own->name,
          "' requires an optimizer under a TPUStrategy, received none; set TableConfig::optimizer");
    }
  }
}

EngineSession::~EngineSession() = default;

void EngineSession::build(const std::vector<Shape>& output_shapes,
                          const std::map<std::string, Tensor>& restored) {
  State& s = *state_;
  distribute::require_no_active_engine(s.strategy, kBuildCaller);
  const auto slots = s.slot_initializers();
  s.record = distribute::serialize(s.configuration(output_shapes));
  // Create the engine from the parsed record, so that it only depends on the record. A record
  // cannot hold a custom rule, which is therefore set afterwards.
  EngineConfiguration configuration = distribute::parse_engine_configuration(s.record);
  for (size_t t = 0; t < s.tables.tables.size(); ++t) {
    if (s.optimizer(t).custom) configuration.tables[t].update.rule = s.optimizer(t).rule;
    // Nor does it hold initializers.
    configuration.tables[t].dynamic = s.tables.tables[t].own->dynamic;
  }
  auto engine = std::make_shared<EmbeddingEngine>(
      configuration, EmbeddingEngine::LocalShards{.first = s.strategy.first_local_replica(),
                                                  .count = s.strategy.num_local_replicas(),
                                                  .group = &s.strategy.process_group()});
  s.initialize(*engine, slots, restored);
  distribute::set_active_engine(s.strategy, engine, kBuildCaller);
  s.engine = std::move(engine);
  s.built = true;
}

bool EngineSession::built() const { return state_->built; }
const std::string& EngineSession::record() const { return state_->record; }

void EngineSession::check_strategy() const {
  const distribute::Strategy& now = distribute::Strategy::current();
  const State& s = *state_;
  if (s.strategy_lifetime.expired() || &now != &s.strategy) {
    throw RuntimeError(
        kBuildCaller,
        ": the object was created under a TPUStrategy and is called under another strategy, ",
        now.name(), " of ", now.num_replicas_in_sync(),
        " replicas; to look up outside its own strategy, pass serving_config or "
        "load a saved model");
  }
  check_active();
}

void EngineSession::check_active() const {
  const State& s = *state_;
  if (s.strategy_lifetime.expired()) {
    throw RuntimeError(kBuildCaller,
                       ": the strategy under which the object was created has been destroyed; keep "
                       "it alive while the object is used");
  }
  if (s.built && distribute::active_engine(s.strategy) != s.engine) {
    throw RuntimeError(
        kBuildCaller,
        ": the tables no longer exist, because the accelerator was initialized again; "
        "create the object after initializing the accelerator");
  }
}

const TableSet& EngineSession::tables() const { return state_->tables; }
const Nest<FeatureConfig>& EngineSession::features() const { return state_->features; }
const std::vector<std::string>& EngineSession::paths() const { return state_->paths; }

}  // namespace keel

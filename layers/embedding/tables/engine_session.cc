#include <keel/layers/embedding/tables/engine_session.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <numeric>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/internal/gather_tensors.h>
#include <keel/distribute/tpu/tpu_system.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/embedding/tables/bags.h>
#include <keel/layers/embedding/tables/internal/prefetch_queue.h>
#include <keel/optimizers/embedding/slot_variables.h>

namespace keel {
namespace {

using distribute::EmbeddingEngine;
using distribute::EngineConfiguration;
using distribute::EngineTable;
using distribute::TableStep;

constexpr char kCaller[] = "TPUEmbedding";

const LearningRate& rate_source(const TableOptimizerState& optimizer) {
  return optimizer.source == nullptr ? optimizer.learning_rate
                                     : optimizer.source->learning_rate_source();
}

bool calls_user_code(const TableOptimizerState& optimizer) {
  return rate_source(optimizer).callable() != nullptr;
}

// Returns true if both tables share a learning rate: the same function, or the schedule of one
// optimizer object.
bool is_same_rate(const TableOptimizerState& a, const TableOptimizerState& b) {
  if (calls_user_code(a) || calls_user_code(b)) return rate_source(a) == rate_source(b);
  return a.source != nullptr && a.source == b.source;
}

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

void check_gradient(const std::string& path, const Tensor& gradient, const Shape& shape) {
  if (gradient.dtype() != DType::kFloat32) {
    throw TypeError(kCaller, ": feature '", path, "': the gradient must be float32, received ",
                    gradient.dtype());
  }
  if (gradient.shape() != shape) {
    throw ValueError(kCaller, ": feature '", path, "': the gradient must have shape ", shape,
                     ", received ", gradient.shape());
  }
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

struct EngineSession::State {
  const TableSet tables;
  const Nest<FeatureConfig> features;
  const EngineSessionOptions options;
  distribute::Strategy& strategy;
  const std::weak_ptr<const void> strategy_lifetime;
  const std::vector<FeatureConfig> configs;  // by feature
  const std::vector<std::string> paths;      // by feature
  InvalidIdCounter tally;
  std::vector<std::atomic<bool>> warned;             // by feature: a missing gradient was reported
  std::vector<PrefetchQueue<Batch>> announced = {};  // by local replica
  std::string record = {};
  std::shared_ptr<EmbeddingEngine> engine = nullptr;
  // Set last, because replicas may read it while another one builds.
  std::atomic<bool> built = false;

  const TableOptimizerState& optimizer(size_t table) const {
    return *tables.tables[table].own->optimizer;
  }
  int64_t rows(int table) const { return tables.tables[table].own->vocabulary_size; }
  EngineConfiguration configuration(const std::vector<Shape>& output_shapes) const;
  // By table: the first table with which it shares a learning rate; unset for constant rates.
  std::vector<std::optional<size_t>> first_of_same_rate() const;
  // By table: the initializers of the slots; empty if the optimizer's own initial values apply.
  std::vector<std::vector<Initializer>> slot_initializers() const;
  void initialize(EmbeddingEngine& made, const std::vector<std::vector<Initializer>>& slots,
                  const std::map<std::string, Tensor>& restored) const;
  std::string entry_name(size_t table, size_t part) const;
  std::vector<TableStep> steps(distribute::Communicator& communicator) const;
  // Returns the strategy's live engine, which another object may have built, after it has run its
  // pending updates; null if there is none.
  std::shared_ptr<EmbeddingEngine> live_without_pending() const;
  // Returns that engine and the position in it of the table that matches this session's table and
  // has this part. Throws RuntimeError if there is none.
  std::pair<std::shared_ptr<EmbeddingEngine>, int> drained(int table, int part) const;
  // Returns the range of rows that this process holds, limited to the first `rows` rows: the engine
  // may have padded the table.
  std::pair<int64_t, int64_t> local_rows(const EmbeddingEngine& made, int table,
                                         int64_t rows) const {
    const auto [first, end] = made.local_rows(table);
    return {std::min(first, rows), std::min(end, rows)};
  }
  StateEntry::Rows row_access(const EngineSession& self, int table, int part) const;
  template <class BagsOf>
  Batch encode(const Tensors& inputs, const FeatureWeights& weights, const BagsOf& fn);
};

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
    EngineTable& table = out.tables.emplace_back(
        EngineTable{.name = config.name,
                    .rows = std::max<int64_t>(config.vocabulary_size, out.num_hosts),
                    .dim = config.dim,
                    .combiner = combiner_from_name(config.combiner),
                    .update = row_update(optimizer(t)),
                    .low_dimensional_packing = optimizer(t).low_dimensional_packing_status,
                    .storage = storage_from_name(config.storage_dtype)});
    if (rates[t]) {
      table.learning_rate_tag = *rates[t] == t ? tags++ : *out.tables[*rates[t]].learning_rate_tag;
    } else {
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
    const SlotVariables starts = create_slots(
        optimizer(t), {.name = table.name, .shape = {table.vocabulary_size, table.dim}});
    std::vector<Initializer>& of_table = out.emplace_back();
    if (!optimizer(t).slot_variable_creation_fn && !optimizer(t).custom) continue;
    for (const Slot& slot : optimizer(t).rule->slots()) {
      const auto* initializer = std::get_if<Initializer>(&starts.at(slot.name));
      if (initializer == nullptr) {
        throw ValueError(kCaller, ": slot '", slot.name, "' of table '", table.name,
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

// Draws from the same random streams as variables of these tables, so that both kinds of storage
// start with the same values.
void EngineSession::State::initialize(EmbeddingEngine& made,
                                      const std::vector<std::vector<Initializer>>& slots,
                                      const std::map<std::string, Tensor>& restored) const {
  for (size_t t = 0; t < tables.tables.size(); ++t) {
    const auto table = static_cast<int>(t);
    for (size_t part = 0; part <= optimizer(t).rule->slots().size(); ++part) {
      const auto index = static_cast<int>(part);
      const auto value = restored.find(entry_name(t, part));
      if (value != restored.end()) {
        const auto [first, end] = local_rows(made, table, rows(table));
        made.write_rows(table, index, first, end,
                        value->second.data<float>().data() + first * value->second.dim(1));
      } else if (part == 0 || !slots[t].empty()) {
        const Initializer initializer =
            part == 0 ? table_initializer(*tables.tables[t].own) : slots[t][part - 1];
        made.initialize(table, index, rows(table), initializer.function(),
                        initializer.next_stream());
      }
    }
  }
}

// Returns the learning rates and hyperparameters of this step. A rate function is user code and may
// not be pure: only rank 0 calls it, once per step, and broadcasts the result.
std::vector<TableStep> EngineSession::State::steps(distribute::Communicator& communicator) const {
  const size_t count = tables.tables.size();
  std::vector<double> numbers;
  bool broadcasts = false;
  for (size_t t = 0; t < count; ++t) {
    broadcasts =
        broadcasts || calls_user_code(optimizer(t)) || !optimizer(t).hyperparameters.empty();
  }
  if (!broadcasts || communicator.rank() == 0) {
    std::map<int, double> known;  // by tag
    for (size_t t = 0; t < count; ++t) {
      const std::optional<int> tag = engine->tables()[t].learning_rate_tag;
      const auto found = tag ? known.find(*tag) : known.end();
      numbers.push_back(found != known.end()
                            ? found->second
                            : tables.tables[t].own->optimizer.current_learning_rate());
      // A rate shared by several tables is evaluated once per step.
      if (tag) known.emplace(*tag, numbers.back());
      for (const LearningRate& h : optimizer(t).hyperparameters) numbers.push_back(h(0));
    }
  }
  if (broadcasts) {
    const std::vector<distribute::Bytes> send(communicator.size(),
                                              distribute::as_bytes_of<double>(numbers));
    const auto first =
        distribute::as_elements<double>(communicator.all_to_all(send, "learning rates")[0]);
    const std::vector<double> received(first.begin(), first.end());
    // Every replica must copy the numbers before rank 0 overwrites the buffer that it sent.
    communicator.local_barrier("learning rates read");
    numbers = received;
  }
  std::vector<TableStep> out;
  auto next = numbers.begin();
  for (size_t t = 0; t < count; ++t) {
    const auto& source = optimizer(t).source;
    TableStep& step = out.emplace_back(TableStep{
        .learning_rate = *next++, .iteration = source == nullptr ? 0 : source->iterations()});
    const auto end = next + static_cast<std::ptrdiff_t>(optimizer(t).hyperparameters.size());
    step.hyperparameters.assign(next, end);
    next = end;
  }
  return out;
}

std::shared_ptr<EmbeddingEngine> EngineSession::State::live_without_pending() const {
  if (strategy_lifetime.expired()) return nullptr;
  std::shared_ptr<EmbeddingEngine> live = distribute::live_engine(strategy);
  if (live != nullptr && live->has_pending()) {
    strategy.run([&] { live->drain(strategy.communicator()); });
  }
  return live;
}

std::pair<std::shared_ptr<EmbeddingEngine>, int> EngineSession::State::drained(int table,
                                                                               int part) const {
  const std::string& name = tables.tables.at(table).own->name;
  std::shared_ptr<EmbeddingEngine> live = live_without_pending();
  if (live == nullptr) {
    throw RuntimeError(kCaller, ": table '", name,
                       "' is not in an engine: its strategy has been destroyed, or the accelerator "
                       "was initialized again; create the object again");
  }
  if (live == engine) return {live, table};
  const auto& there = live->tables();
  for (size_t t = 0; t < there.size(); ++t) {
    if (has_same_part(there[t], engine->tables()[table], part)) return {live, static_cast<int>(t)};
  }
  throw RuntimeError(kCaller, ": the current engine of the accelerator has no '",
                     entry_name(table, part), "' of the same shape");
}

StateEntry::Rows EngineSession::State::row_access(const EngineSession& self, int table,
                                                  int part) const {
  const auto [first, end] = local_rows(*engine, table, rows(table));
  return {.first = first,
          .end = end,
          .read =
              [self, table, part](int64_t begin, int64_t stop, float* out) {
                const auto [live, index] = self.state_->drained(table, part);
                live->read_rows(index, part, begin, stop, out);
              },
          .write =
              [self, table, part](int64_t begin, int64_t stop, const float* values) {
                const auto [live, index] = self.state_->drained(table, part);
                live->write_rows(index, part, begin, stop, values);
              }};
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
                       .tally = InvalidIdCounter(flatten_paths(features).size()),
                       .warned = std::vector<std::atomic<bool>>(flatten_paths(features).size())}) {
  state_->announced.resize(state_->strategy.num_local_replicas());
  for (const TableSet::Entry& entry : tables.tables) {
    if (!entry.own->optimizer) {
      throw ValueError(
          kCaller, ": table '", entry.own->name,
          "' requires an optimizer under a TPUStrategy, received none; set TableConfig::optimizer");
    }
  }
}

EngineSession::~EngineSession() = default;

void EngineSession::build(const std::vector<Shape>& output_shapes,
                          const std::map<std::string, Tensor>& restored) {
  State& s = *state_;
  distribute::require_no_live_engine(s.strategy, kCaller);
  const auto slots = s.slot_initializers();
  s.record = distribute::serialize(s.configuration(output_shapes));
  // Create the engine from the parsed record, so that it only depends on the record. A record
  // cannot hold a custom rule, which is therefore set afterwards.
  EngineConfiguration configuration = distribute::parse_engine_configuration(s.record);
  for (size_t t = 0; t < s.tables.tables.size(); ++t) {
    if (s.optimizer(t).custom) configuration.tables[t].update.rule = s.optimizer(t).rule;
  }
  auto engine = std::make_shared<EmbeddingEngine>(
      configuration, EmbeddingEngine::LocalShards{.first = s.strategy.first_local_replica(),
                                                  .count = s.strategy.num_local_replicas()});
  s.initialize(*engine, slots, restored);
  distribute::set_live_engine(s.strategy, engine, kCaller);
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
        kCaller,
        ": the object was created under a TPUStrategy and is called under another strategy, ",
        now.name(), " of ", now.num_replicas_in_sync(),
        " replicas; to look up outside its own strategy, pass serving_config or "
        "load a saved model");
  }
  check_live();
}

void EngineSession::check_live() const {
  const State& s = *state_;
  if (s.strategy_lifetime.expired()) {
    throw RuntimeError(kCaller,
                       ": the strategy under which the object was created has been destroyed; keep "
                       "it alive while the object is used");
  }
  if (s.built && distribute::live_engine(s.strategy) != s.engine) {
    throw RuntimeError(
        kCaller,
        ": the tables no longer exist, because the accelerator was initialized again; "
        "create the object after initializing the accelerator");
  }
}

// Encodes all features; fn(feature, ids, weights) returns the bags of one.
template <class BagsOf>
EngineSession::Batch EngineSession::State::encode(const Tensors& inputs,
                                                  const FeatureWeights& weights, const BagsOf& fn) {
  assert_same_structure(features, inputs);
  if (weights) assert_same_structure(features, *weights);
  const std::vector<TensorLike> ids = flatten(inputs);
  const auto flat_weights =
      weights ? flatten(*weights) : std::vector<std::optional<TensorLike>>(ids.size());
  Batch out;
  for (size_t f = 0; f < ids.size(); ++f) {
    FeatureBags bags = fn(f, ids[f], flat_weights[f]);
    out.invalid_ids.push_back(bags.invalid_ids);
    out.shapes.push_back(bags.output_shape + Shape{configs[f].table->dim});
    out.features.push_back({.ids = std::move(bags.ids),
                            .row_splits = std::move(bags.row_splits),
                            .weights = std::move(bags.weights)});
  }
  return out;
}

EngineSession::Batch EngineSession::encode(const Tensors& features, const FeatureWeights& weights) {
  const State& s = *state_;
  Batch out =
      state_->encode(features, weights, [&](size_t f, const TensorLike& ids, const auto& of_ids) {
        return to_bags(s.paths[f], s.configs[f], ids, of_ids, IdRule::kStrict, true);
      });
  check_equal_rows(s.paths, s.configs, out.shapes);
  return out;
}

EngineSession::Batch EngineSession::encode(const Tensors& features, const FeatureWeights& weights,
                                           const std::vector<Shape>& output_shapes) {
  const State& s = *state_;
  return state_->encode(
      features, weights, [&](size_t f, const TensorLike& ids, const auto& of_ids) {
        FeatureConfig config = s.configs[f];
        const bool steps = config.max_sequence_length > 0 && !config.output_shape;
        if (ids.layout() != Layout::kRagged && config.output_shape) {
          config.output_shape.reset();
          config.max_sequence_length = 0;
        } else if (ids.layout() == Layout::kRagged && !steps) {
          config.output_shape = output_shapes[f];
        }
        FeatureBags bags = to_bags(s.paths[f], config, ids, of_ids, IdRule::kStrict, true);
        if (bags.output_shape.size() != output_shapes[f].size()) {
          throw ValueError(kCaller, ": feature '", s.paths[f], "': the output shape is ",
                           output_shapes[f], ", but the ids give ", bags.output_shape);
        }
        bags.output_shape = output_shapes[f];
        return bags;
      });
}

void EngineSession::prefetch(const Tensors& features, const FeatureWeights& weights) {
  State& s = *state_;
  const ReplicaContext* const replica = current_replica_context();
  if (replica == nullptr)
    throw RuntimeError(kCaller,
                       ".prefetch: called outside a replica; call it inside Strategy::run");
  if (!s.built || num_workers() == 1) return;
  try {
    Batch batch = encode(features, weights);
    s.engine->prefetch(s.strategy.communicator(), batch.features);
    s.announced[replica->local_replica].add(BatchKey(features, weights), std::move(batch));
  } catch (const Error&) {  // the lookup of this batch reports the error
  }
}

EngineSession::Batch EngineSession::encode_or_take(const Tensors& features,
                                                   const FeatureWeights& weights, bool training) {
  const ReplicaContext* const replica = current_replica_context();
  if (training && replica != nullptr) {
    auto& announced = state_->announced[replica->local_replica];
    if (!announced.empty()) {
      if (auto batch = announced.take(BatchKey(features, weights))) return *std::move(batch);
    }
  }
  return encode(features, weights);
}

EngineSession::Lookup EngineSession::look_up(const Batch& batch, bool training) {
  State& s = *state_;
  EmbeddingEngine::Activations found =
      s.engine->lookup(s.strategy.communicator(), batch.features, training);
  for (size_t f = 0; f < batch.shapes.size(); ++f) {
    found.values[f] = found.values[f].reshaped(batch.shapes[f]);
  }
  // Count only after the lookup has succeeded.
  s.tally.add(batch.invalid_ids);
  auto ticket = std::make_shared<Ticket>(
      Ticket{.of_engine = std::move(found.ticket), .shapes = batch.shapes});
  return {.activations = std::move(found.values), .ticket = std::move(ticket)};
}

void EngineSession::apply(const std::shared_ptr<Ticket>& ticket, std::vector<Tensor> gradients) {
  State& s = *state_;
  if (gradients.size() != ticket->shapes.size()) {
    throw ValueError(kCaller, ": received ", gradients.size(), " gradients for ",
                     ticket->shapes.size(), " features; pass one for each feature");
  }
  for (size_t f = 0; f < gradients.size(); ++f) {
    if (gradients[f]) check_gradient(s.paths[f], gradients[f], ticket->shapes[f]);
  }
  for (size_t f = 0; f < gradients.size(); ++f) {
    const int64_t dim = s.configs[f].table->dim;
    if (gradients[f]) {
      gradients[f] = gradients[f].reshaped({gradients[f].size() / dim, dim});
    } else if (!s.warned[f].exchange(true)) {
      std::cerr << str(kCaller, ": the loss does not depend on feature '", s.paths[f],
                       "'; its rows are updated with zero gradients\n");
    }
  }
  distribute::Communicator& communicator = s.strategy.communicator();
  s.engine->apply(communicator, ticket->of_engine, std::move(gradients), s.steps(communicator));
}

Tensor EngineSession::read(int table, int part) const {
  const auto [engine, index] = state_->drained(table, part);
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
    throw ValueError(kCaller, ": table '", state_->tables.tables[table].own->name,
                     "' must be float32 ", shape, ", received ", values.dtype(), " ",
                     values.shape());
  }
  const auto [engine, index] = state_->drained(table, part);
  const auto [first, end] = state_->local_rows(*engine, index, shape[0]);
  engine->write_rows(index, part, first, end, values.data<float>().data() + first * shape[1]);
}

std::vector<StateEntry> EngineSession::state_entries() const {
  std::vector<StateEntry> out;
  if (!built()) return out;  // build() would overwrite what is set before it
  // A process without rows of some table reads none of them, but running a pending update is
  // collective. Drain here, where all processes take part.
  if (current_replica_context() == nullptr) state_->live_without_pending();
  for (size_t t = 0; t < state_->tables.tables.size(); ++t) {
    const TableConfig& table = *state_->tables.tables[t].own;
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

const TableSet& EngineSession::tables() const { return state_->tables; }
const Nest<FeatureConfig>& EngineSession::features() const { return state_->features; }
const std::vector<std::string>& EngineSession::paths() const { return state_->paths; }

IdCounts EngineSession::invalid_ids(size_t feature) const {
  const State& s = *state_;
  const IdCounts local = s.tally.counts(feature);
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

#include <keel/layers/embedding/v1/tpu_embedding_v1.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/embedding/tables/internal/engine_session.h>
#include <keel/layers/embedding/v1/internal/enqueue_data.h>
#include <keel/layers/embedding/v1/internal/lookup_statistics.h>
#include <keel/optimizers/embedding/tpu_parameters.h>

namespace keel::tpu::v1 {
namespace {

constexpr char kCaller[] = "tpu.v1.TPUEmbedding";

using Options = TPUEmbeddingOptions;

void check_strategy(const Options& options, const distribute::Strategy& strategy) {
  if (!strategy.is_tpu()) {
    throw ValueError(kCaller, ": must be constructed in the scope of a TPUStrategy, received ",
                     strategy.name());
  }
  const int cores = strategy.num_replicas_in_sync();
  if (options.batch_size < 1 || options.batch_size % cores != 0) {
    throw ValueError(kCaller, ": batch_size must be a positive multiple of ", cores,
                     " cores, received ", options.batch_size);
  }
}

void check_dicts(const Options& options) {
  if (options.partition_strategy != "div" && options.partition_strategy != "mod") {
    throw ValueError(kCaller, ": partition_strategy must be 'div' or 'mod', received '",
                     options.partition_strategy, "'");
  }
  for (const auto& [key, feature] : options.feature_to_config_dict) {
    if (!options.table_to_config_dict.contains(feature->table_id)) {
      throw ValueError(kCaller, ": feature '", key, "' refers to the unknown table '",
                       feature->table_id, "'; add it to table_to_config_dict");
    }
  }
  for (const auto& entry : options.table_to_config_dict) {
    const bool used = std::ranges::any_of(options.feature_to_config_dict, [&](const auto& feature) {
      return feature.second->table_id == entry.first;
    });
    if (!used)
      throw ValueError(kCaller, ": no feature uses table '", entry.first,
                       "'; remove the table or add a feature");
  }
}

void check_optimizers(const Options& options) {
  const EmbeddingOptimizer& global = options.optimization_parameters;
  if (options.mode == Mode::kInference) {
    if (global) throw ValueError(kCaller, ": optimization_parameters must be unset for inference");
    return;
  }
  if (global && !is_v1_parameters(global)) {
    throw ValueError(kCaller,
                     ": optimization_parameters must be of a class such as AdagradParameters, ",
                     "received ", global->class_name);
  }
  for (const auto& [name, table] : options.table_to_config_dict) {
    const EmbeddingOptimizer& own = table->optimization_parameters;
    if (!own && !global) {
      throw ValueError(kCaller,
                       ": training requires optimization_parameters, received none for table '",
                       name, "'");
    }
    const std::optional<int64_t> dim = (own ? own : global)->required_dim;
    if (dim && *dim != table->dimension) {
      throw ValueError(kCaller, ": table '", name, "' must have dimension ", *dim, " for ",
                       (own ? own : global)->class_name, ", received ", table->dimension);
    }
  }
}

}  // namespace

struct TPUEmbedding::State {
  // The batches in flight of one core of this process.
  struct Core {
    std::deque<EngineSession::Batch> enqueued = {};
    std::deque<std::shared_ptr<EngineSession::Ticket>> looked_up = {};
    std::map<std::string, Tensor> trapped = {};  // gradients of activations, by feature
  };

  explicit State(Options given)
      : options(std::move(given)), strategy(distribute::Strategy::current()) {}

  void lay_out();
  void choose_partition();
  void make_session();
  EmbeddingOptimizer optimizer_of(const TableConfig& table);
  std::vector<ProfileKey> profile_keys() const;
  EngineSession::Batch encode(const CoreEnqueueData& data);
  void profile(const std::vector<EngineSession::Batch>& batches);
  Core& core();  // returns that of the calling replica
  EngineSession::Batch take_batch(Core& core);
  std::map<std::string, Tensor> by_feature(std::vector<Tensor> values) const;
  const TableConfig& table_of(const std::string& feature) const {
    return options.table_to_config_dict.at(options.feature_to_config_dict.at(feature)->table_id);
  }
  Shape activation_shape(const std::string& feature) const;

  const Options options;
  distribute::Strategy& strategy;
  std::string partition_strategy = {};
  std::vector<std::string> tables = {};  // sorted
  std::map<std::string, std::vector<FeaturePosition>> places = {};
  std::vector<std::string> features = {};  // sorted: the session's order
  std::vector<LearningRateFn> rate_fns = {};
  std::vector<LearningRate> rates = {};  // rate_fns evaluated at `step`
  std::shared_ptr<std::atomic<int64_t>> step = std::make_shared<std::atomic<int64_t>>(0);
  std::optional<EngineSession> session = {};
  std::mutex mutex;          // guards `enqueued` of all cores
  uint64_t failed_runs = 0;  // failed runs of the strategy, at the last enqueue
  std::vector<Core> cores = {};
  std::vector<Variable> dummies = {};  // by table
  std::optional<LookupProfiler> profiler = {};
};

// Assigns the positions of the features in the activations of their tables, in order of feature
// names.
void TPUEmbedding::State::lay_out() {
  for (const auto& entry : options.table_to_config_dict) tables.push_back(entry.first);
  for (const auto& [key, feature] : options.feature_to_config_dict) {
    features.push_back(key);
    std::vector<FeaturePosition>& row = places[feature->table_id];
    const int64_t begin = row.empty() ? 0 : row.back().begin + row.back().count;
    row.push_back({.feature = key,
                   .begin = begin,
                   .count = std::max<int64_t>(1, feature->max_sequence_length)});
  }
}

std::vector<ProfileKey> TPUEmbedding::State::profile_keys() const {
  std::vector<ProfileKey> out;
  for (const std::string& name : tables) {
    const TableConfig& table = options.table_to_config_dict.at(name);
    const FeaturePosition& last = places.at(name).back();
    out.push_back({.table_name = name,
                   .num_features = last.begin + last.count,
                   .vocabulary_size = table->vocabulary_size,
                   .dimension = table->dimension,
                   .sharding_strategy = options.partition_strategy,
                   .task_count = strategy.num_hosts()});
  }
  return out;
}

void TPUEmbedding::State::choose_partition() {
  partition_strategy = options.partition_strategy;
  const std::string& directory = options.profile_data_directory;
  if (directory.empty()) return;
  const std::vector<ProfileKey> keys = profile_keys();
  // The first process chooses for all. Other processes could read older statistics while it writes.
  distribute::ProcessGroup& group = strategy.process_group();
  constexpr const char* kLabel = "partition strategy of statistics";
  distribute::run_collectively(group, kLabel, [&] {
    if (group.rank() != 0) return;
    partition_strategy = choose_sharding_strategy(directory, keys, partition_strategy);
  });
  partition_strategy = distribute::gather_texts(group, kLabel, partition_strategy)[0];
  if (options.mode == Mode::kTraining) {
    profiler.emplace(keys, strategy.num_replicas_in_sync() / strategy.num_hosts(),
                     options.profiler);
  }
}

// Returns the effective parameters of a table with its effective learning rate.
EmbeddingOptimizer TPUEmbedding::State::optimizer_of(const TableConfig& table) {
  if (options.mode == Mode::kInference) {
    // Inference never updates the tables, but an engine requires an optimizer.
    return StochasticGradientDescentParameters{.learning_rate = 1.0};
  }
  const EmbeddingOptimizer& parameters = table->optimization_parameters
                                             ? table->optimization_parameters
                                             : options.optimization_parameters;
  if (table->learning_rate.value_or(0) != 0) {
    return parameters.with_learning_rate(*table->learning_rate);
  }
  if (!table->learning_rate_fn) return parameters;
  const auto known = std::ranges::find(rate_fns, table->learning_rate_fn);
  const auto tag = known - rate_fns.begin();
  if (known == rate_fns.end()) {
    rate_fns.push_back(table->learning_rate_fn);
    rates.emplace_back([fn = table->learning_rate_fn, now = step] { return fn(*now); });
  }
  return parameters.with_learning_rate(rates[tag]);
}

void TPUEmbedding::State::make_session() {
  TableSet set;
  std::map<std::string, Table> made;
  for (const std::string& name : tables) {
    const TableConfig& config = options.table_to_config_dict.at(name);
    const Table table = make_table({.vocabulary_size = config->vocabulary_size,
                                    .dim = config->dimension,
                                    .initializer = config->initializer,
                                    .optimizer = optimizer_of(config),
                                    .combiner = config->combiner.value_or("sum"),
                                    .name = name});
    made[name] = table;
    set.tables.push_back({.original = table, .own = table});
    dummies.push_back(Variable::virtual_trainable("tpu_embedding_dummy_table_variable_" + name));
  }
  Nest<keel::FeatureConfig>::Dict nest;
  for (const auto& [key, feature] : options.feature_to_config_dict) {
    nest.emplace(key, keel::FeatureConfig{.table = made.at(feature->table_id),
                                          .max_sequence_length = feature->max_sequence_length,
                                          .name = key});
  }
  session.emplace(
      set, Nest<keel::FeatureConfig>(std::move(nest)),
      EngineSessionOptions{
          .pipeline_execution_with_tensor_core = options.pipeline_execution_with_tensor_core,
          .sharding_strategy = partition_strategy == "mod" ? distribute::ShardingStrategy::kMod
                                                           : distribute::ShardingStrategy::kDiv,
          .profile_data_directory = options.profile_data_directory});
  cores.resize(strategy.num_local_replicas());
}

Shape TPUEmbedding::State::activation_shape(const std::string& feature) const {
  const int64_t batch = options.batch_size / strategy.num_replicas_in_sync();
  const int64_t length = options.feature_to_config_dict.at(feature)->max_sequence_length;
  const int64_t dim = table_of(feature)->dimension;
  return length > 0 ? Shape{batch, length, dim} : Shape{batch, dim};
}

EngineSession::Batch TPUEmbedding::State::encode(const CoreEnqueueData& data) {
  if (data.size() != features.size()) {
    throw ValueError(kCaller, ": the data of a core must have ", features.size(),
                     " features, received ", data.size());
  }
  Tensors::Dict ids;
  Nest<std::optional<TensorLike>>::Dict weights;
  for (const std::string& key : features) {
    const auto it = data.find(key);
    if (it == data.end())
      throw ValueError(kCaller, ": the data of a core has no feature '", key,
                       "'; pass data for each feature");
    const std::string caller = absl::StrCat(kCaller, ": feature '", key, "'");
    const Shape shape = activation_shape(key);
    const auto* sparse = std::get_if<EnqueueData>(&it->second);
    const EmbeddingInput input =
        sparse != nullptr
            ? embedding_input_of(caller, *sparse, shape[0], shape.rank() == 3)
            : embedding_input_of(caller, std::get<RaggedEnqueueData>(it->second), shape[0]);
    ids.emplace(key, input.ids);
    weights.emplace(key, input.weights);
  }
  return session->encode(ids, Nest<std::optional<TensorLike>>(std::move(weights)));
}

// Records the looked-up ids of the batches, as rows of examples.
void TPUEmbedding::State::profile(const std::vector<EngineSession::Batch>& batches) {
  if (!profiler) return;
  const int64_t batch_size = options.batch_size / strategy.num_replicas_in_sync();
  for (const EngineSession::Batch& batch : batches) {
    std::map<std::string, std::vector<TensorLike>> by_table;
    for (size_t f = 0; f < features.size(); ++f) {
      const distribute::FeatureBatch& found = batch.features[f];
      // A sequence has several samples for each example. Without splits, each sample is one id.
      const bool split = static_cast<bool>(found.row_splits);
      const int64_t samples = split ? found.row_splits.size() - 1 : found.ids.size();
      const int64_t steps = samples / batch_size;
      Tensor splits = Tensor::uninitialized({batch_size + 1}, DType::kInt64);
      const std::span<int64_t> to = splits.mutable_data<int64_t>();
      for (int64_t row = 0; row <= batch_size; ++row) {
        to[row] = split ? found.row_splits.data<int64_t>()[row * steps] : row * steps;
      }
      by_table[options.feature_to_config_dict.at(features[f])->table_id].push_back(
          RaggedTensor{found.ids, splits});
    }
    std::vector<std::vector<TensorLike>> sorted;
    for (const std::string& name : tables) sorted.push_back(by_table.at(name));
    profiler->record(sorted, batch_size);
  }
}

TPUEmbedding::State::Core& TPUEmbedding::State::core() {
  const ReplicaContext* replica = current_replica_context();
  if (replica == nullptr || &distribute::Strategy::current() != &strategy) {
    throw RuntimeError(kCaller,
                       ": must be called in a replica of its strategy, inside Strategy::run");
  }
  return cores.at(replica->local_replica);
}

EngineSession::Batch TPUEmbedding::State::take_batch(Core& core) {
  const std::lock_guard lock(mutex);
  if (core.enqueued.empty()) {
    throw RuntimeError(kCaller,
                       ".get_activations: no batch is enqueued; call generate_enqueue first");
  }
  EngineSession::Batch out = std::move(core.enqueued.front());
  core.enqueued.pop_front();
  return out;
}

std::map<std::string, Tensor> TPUEmbedding::State::by_feature(std::vector<Tensor> values) const {
  std::map<std::string, Tensor> out;
  for (size_t f = 0; f < features.size(); ++f) out.emplace(features[f], std::move(values[f]));
  return out;
}

TPUEmbedding::TPUEmbedding(TPUEmbeddingOptions options)
    : state_(std::make_shared<State>(std::move(options))) {
  State& s = *state_;
  check_dicts(s.options);
  check_strategy(s.options, s.strategy);
  check_optimizers(s.options);
  s.lay_out();
  s.choose_partition();
  s.make_session();
}

int TPUEmbedding::num_hosts() const { return state_->strategy.num_hosts(); }
int TPUEmbedding::num_cores() const { return state_->strategy.num_replicas_in_sync(); }
int64_t TPUEmbedding::batch_size_per_core() const {
  return state_->options.batch_size / num_cores();
}
const std::vector<std::string>& TPUEmbedding::tables() const { return state_->tables; }
const std::vector<TPUEmbedding::FeaturePosition>& TPUEmbedding::features_of(
    const std::string& table) const {
  const auto it = state_->places.find(table);
  if (it == state_->places.end()) {
    throw ValueError(kCaller, ": unknown table '", table, "'; pass the name of one of its tables");
  }
  return it->second;
}
int64_t TPUEmbedding::num_features(const std::string& table) const {
  const FeaturePosition& last = features_of(table).back();
  return last.begin + last.count;
}

std::vector<TPUEmbedding::VariablePart> TPUEmbedding::variable_parts(
    const std::string& table) const {
  features_of(table);
  const int64_t rows = state_->options.table_to_config_dict.at(table)->vocabulary_size;
  const int64_t hosts = num_hosts();
  std::vector<VariablePart> out;
  for (int64_t h = 0; h < hosts; ++h) {
    if (h < rows) {
      out.push_back({.name = absl::StrCat(table, "/part_", h),
                     .rows = rows / hosts + (h < rows % hosts ? 1 : 0)});
    } else {
      out.push_back({.name = absl::StrCat("dummy_", h, "_", table), .rows = 1, .dummy = true});
    }
  }
  return out;
}

const std::string& TPUEmbedding::partition_strategy() const { return state_->partition_strategy; }
const std::vector<LearningRateFn>& TPUEmbedding::learning_rate_fns() const {
  return state_->rate_fns;
}

void TPUEmbedding::build() {
  std::vector<Shape> shapes;
  for (const std::string& key : state_->features) {
    shapes.push_back(state_->activation_shape(key).drop_last());
  }
  state_->session->build(shapes);
}

void TPUEmbedding::generate_enqueue(const std::vector<CoreEnqueueData>& cores) {
  State& s = *state_;
  if (cores.size() != s.cores.size()) {
    throw ValueError(kCaller, ".generate_enqueue: requires data for each of ", s.cores.size(),
                     " cores, received ", cores.size());
  }
  // Encode the data of all cores before enqueuing any, so that an error enqueues nothing.
  const auto n = static_cast<int64_t>(cores.size());
  std::vector<EngineSession::Batch> batches(cores.size());
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t core = begin; core < end; ++core) batches[core] = s.encode(cores[core]);
  });
  s.profile(batches);
  const std::lock_guard lock(s.mutex);
  if (s.failed_runs != s.strategy.failed_runs()) {
    // In the failed run, some cores may have dequeued a batch that others have not.
    for (State::Core& core : s.cores) core = {};
    s.failed_runs = s.strategy.failed_runs();
  }
  for (size_t core = 0; core < batches.size(); ++core) {
    s.cores[core].enqueued.push_back(std::move(batches[core]));
  }
}

TPUEmbedding::Activations TPUEmbedding::get_activations() {
  State& s = *state_;
  State::Core& core = s.core();
  s.session->check_strategy();
  if (!s.session->built())
    throw RuntimeError(kCaller, ".get_activations: the object is not built; call build first");
  const EngineSession::Batch batch = s.take_batch(core);
  const bool training = s.options.mode == Mode::kTraining;
  EngineSession::Lookup found = s.session->lookup(batch, training);
  if (training) core.looked_up.push_back(std::move(found.ticket));
  return s.by_feature(std::move(found.activations));
}

std::map<std::string, Tensor> TPUEmbedding::get_activation_blocks() {
  const Activations activations = get_activations();
  std::map<std::string, Tensor> out;
  for (const std::string& table : state_->tables) {
    std::vector<Tensor> parts;
    for (const FeaturePosition& place : features_of(table)) {
      const Tensor& x = activations.at(place.feature);
      parts.push_back(x.rank() == 2 ? x.reshaped(x.shape().inserted(1, 1)) : x);
    }
    out.emplace(table, ops::concat(parts, 1));
  }
  return out;
}

void TPUEmbedding::generate_send_gradients(const Activations& gradients,
                                           std::optional<int64_t> step) {
  State& s = *state_;
  constexpr const char* kSend = "tpu.v1.TPUEmbedding.generate_send_gradients";
  if (s.options.mode != Mode::kTraining)
    throw RuntimeError(kSend, ": is for training only; construct the object with Mode::kTraining");
  if (!s.rate_fns.empty() && !step) {
    throw ValueError(kSend, ": learning rates that are functions require a step; pass `step`");
  }
  State::Core& core = s.core();
  std::vector<Tensor> flat;
  for (const std::string& key : s.features) {
    const auto it = gradients.find(key);
    if (it == gradients.end() || !it->second) {
      throw ValueError(kSend, ": feature '", key,
                       "' has no gradient; pass a gradient for each feature");
    }
    if (it->second.shape() != s.activation_shape(key)) {
      throw ValueError(kSend, ": the gradient of feature '", key, "' must have shape ",
                       s.activation_shape(key), ", received ", it->second.shape());
    }
    if (it->second.dtype() != DType::kFloat32) {
      throw TypeError(kSend, ": the gradient of feature '", key, "' must be float32, received ",
                      it->second.dtype());
    }
    flat.push_back(it->second);
  }
  if (gradients.size() != flat.size()) {
    throw ValueError(
        kSend, ": received gradients of unknown features; pass gradients for its features only");
  }
  if (core.looked_up.empty())
    throw RuntimeError(kSend, ": no batch was looked up; call get_activations first");
  const std::shared_ptr<EngineSession::Ticket> ticket = std::move(core.looked_up.front());
  core.looked_up.pop_front();
  // Only the first core evaluates the learning rate functions, so only it sets the step.
  if (step && current_replica_context()->replica == 0) *s.step = *step;
  s.session->apply(ticket, std::move(flat));
}

const std::vector<Variable>& TPUEmbedding::dummy_table_variables() const { return state_->dummies; }

TPUEmbedding::Activations TPUEmbedding::hook_dummy_table_variables(const Activations& activations) {
  State& s = *state_;
  s.core().trapped.clear();
  Activations out;
  for (size_t t = 0; t < s.tables.size(); ++t) {
    const std::vector<FeaturePosition>& places = features_of(s.tables[t]);
    // The backward function captures the gradients of the table's activations and returns a
    // placeholder for that of the dummy variable.
    const std::vector<Tensor> hooked = custom_gradient({s.dummies[t].read()}, [&] {
      std::vector<Tensor> values;
      for (const FeaturePosition& place : places) values.push_back(activations.at(place.feature));
      return WithBackward{std::move(values), [state = state_, places](auto gradients) {
                            for (size_t i = 0; i < places.size(); ++i) {
                              if (!gradients[i]) continue;
                              state->core().trapped[places[i].feature] = gradients[i].dense();
                            }
                            return std::vector<Gradient>{Tensor::zeros({1})};
                          }};
    });
    for (size_t i = 0; i < places.size(); ++i) out.emplace(places[i].feature, hooked[i]);
  }
  return out;
}

TPUEmbedding::Activations TPUEmbedding::get_gradients_through_dummies() {
  State& s = *state_;
  Activations out = std::move(s.core().trapped);
  s.core().trapped.clear();
  for (const std::string& key : s.features) {
    if (!out.contains(key)) {
      throw ValueError(kCaller,
                       ".get_gradients_through_dummies: the loss does not depend on feature '", key,
                       "', or no tape computed the gradients of dummy_table_variables(); call it "
                       "with the tape of the step");
    }
  }
  return out;
}

std::vector<StateEntry> TPUEmbedding::state_entries(
    const std::map<std::string, std::string>& variable_names) const {
  std::vector<StateEntry> out = state_->session->state_entries();
  size_t i = 0;
  for (size_t t = 0; i < out.size(); ++t) {
    const EmbeddingOptimizer& optimizer = state_->session->tables().tables[t].own->optimizer;
    const std::string& variable = variable_names.at(state_->tables[t]);
    out[i++].name = variable;
    for (const std::string& slot : slot_names(optimizer, variable)) out[i++].name = slot;
  }
  return out;
}

int TPUEmbedding::save_profiles() const {
  // The examples of the first process are a sufficient sample.
  if (!state_->profiler || state_->strategy.first_local_replica() != 0) return 0;
  return state_->profiler->save(state_->options.profile_data_directory);
}

}  // namespace keel::tpu::v1

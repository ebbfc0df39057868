#include <keel/layers/embedding/mid_level/tpu_embedding.h>

#include <absl/strings/str_cat.h>
#include <atomic>
#include <deque>
#include <functional>
#include <iostream>

#include <keel/autodiff/control_flow.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/framework/base/function_ref.h>
#include <keel/layers/embedding/mid_level/internal/call_order.h>
#include <keel/layers/embedding/mid_level/internal/core_of_device.h>
#include <keel/layers/embedding/mid_level/internal/engine_tables.h>
#include <keel/layers/embedding/mid_level/internal/output_shapes.h>
#include <keel/layers/embedding/tables/internal/engine_session.h>
#include <keel/layers/embedding/tables/internal/host_tables.h>

namespace keel::tpu {
namespace {

constexpr char kCaller[] = "TPUEmbedding";
using Weights = Nest<std::optional<TensorLike>>;

// Returns the core that holds a component of the input; unset if the host holds all of them.
std::optional<Device> core_of(const TensorLike& input) {
  std::vector<Tensor> parts = {input.values()};
  if (input.layout() == Layout::kSparse) parts.push_back(input.sparse().indices);
  if (input.layout() == Layout::kRagged) parts.push_back(input.ragged().row_splits);
  for (const Tensor& part : parts) {
    if (!part.device().is_host()) return part.device();
  }
  return {};
}

// A tensor created in a replica was computed on its core. It is neither an argument of the step nor
// a host input.
void check_devices(const std::vector<std::string>& paths, const std::vector<TensorLike>& inputs,
                   bool in_step) {
  for (size_t f = 0; f < inputs.size(); ++f) {
    const std::optional<Device> core = core_of(inputs[f]);
    if (!core) continue;
    if (in_step) {
      throw ValueError(kCaller, ".enqueue: feature '", paths[f],
                       "' must be a direct argument of the step function, received a tensor that "
                       "was computed from one, on ",
                       core->name());
    }
    throw ValueError(kCaller, ".enqueue: feature '", paths[f],
                     "' must be on the host, received a tensor on ", core->name());
  }
}

// Synchronizes the replicas before they enter the engine, because a replica that failed or made
// another call would leave the others blocked there. The label includes the batch, so calls that
// differ throw in all replicas.
void agree(distribute::Communicator& communicator, const char* call, const CallOrder::Taken& taken,
           const CallName& name) {
  communicator.barrier(absl::StrCat(kCaller, ".", call, " of batch ", taken.batch, " for ",
                                    taken.training ? "training" : "inference",
                                    name ? " named " + *name : ""));
}

std::vector<Tensor> checked_gradients(const Nest<Gradient>& gradients,
                                      const std::vector<std::string>& paths,
                                      const std::vector<Shape>& shapes) {
  std::vector<Tensor> out;
  for (const Gradient& gradient : flatten(gradients)) {
    const std::string& path = paths[out.size()];
    const Shape& shape = shapes[out.size()];
    if (!gradient) {
      out.emplace_back();
      continue;
    }
    if (gradient.is_slices()) {
      throw ValueError(kCaller, ".apply_gradients: feature '", path,
                       "' requires a dense gradient or none, received IndexedSlices");
    }
    out.push_back(gradient.dense());
    if (out.back().shape() != shape || out.back().dtype() != DType::kFloat32) {
      throw ValueError(kCaller, ".apply_gradients: feature '", path,
                       "' requires a float32 gradient of shape ", shape, ", received ",
                       out.back().dtype(), " ", out.back().shape());
    }
  }
  return out;
}

// The batches in flight of one replica.
struct PendingBatches {
  struct InFlight {
    EngineSession::Batch batch;                     // until dequeued
    std::shared_ptr<EngineSession::Ticket> ticket;  // from then on
  };
  std::mutex mutex;  // guards the members below: a host thread may enqueue while a step runs
  CallOrder order;
  std::map<CallOrder::Serial, InFlight> in_flight;
  uint64_t failed_runs = 0;  // failed runs of the strategy, when last called

  void drop_failed(const distribute::Strategy& strategy) {
    if (failed_runs == strategy.failed_runs()) return;
    failed_runs = strategy.failed_runs();
    order.clear();
    in_flight.clear();
  }
  void drop(const CallOrder::Taken& taken, bool warns) {
    for (const CallOrder::Serial batch : taken.dropped) in_flight.erase(batch);
    if (taken.unused_training && warns) {
      std::cerr << kCaller
                << ".dequeue: the previous batch was enqueued for training, but apply_gradients "
                   "was not called; it is treated as inference\n";
    }
  }
};

}  // namespace

class TPUEmbedding::Accelerator {
 public:
  Accelerator(const TableSet& tables, const Nest<FeatureConfig>& features, bool pipelined)
      : tables_(std::make_shared<EngineTables>(
            EngineSession(tables, features, {.pipeline_execution_with_tensor_core = pipelined}))),
        candidates_(features),
        batches_(strategy_.num_local_replicas()) {}

  const std::shared_ptr<EngineTables>& tables() const { return tables_; }
  EngineSession& session() { return tables_->session(); }
  const OutputShapes& candidates() const { return candidates_; }
  const std::vector<Shape>& activation_shapes() const { return activation_shapes_; }
  distribute::Strategy& strategy() { return strategy_; }

  // Returns the calling replica. Throws RuntimeError, naming `call`, outside the strategy's
  // replicas.
  const ReplicaContext& replica(const char* call);

  // Calls `candidates_of_call` and builds, unless the object is built. Replicas may call it
  // concurrently.
  void build(FunctionRef<std::optional<std::vector<Shape>>()> candidates_of_call);
  // Checks in the documented order, builds if necessary, and encodes. `in_step`: a replica calls
  // it.
  EngineSession::Batch prepare(const Tensors& features, const FeatureWeights& weights,
                               bool in_step);
  void enqueue(int local_replica, EngineSession::Batch batch, bool training, const CallName& name);
  std::vector<Tensor> dequeue(const ReplicaContext& replica, const CallName& name);
  void apply_gradients(const ReplicaContext& replica, std::vector<Tensor> gradients,
                       const CallName& name);
  int local_replica_of(const std::string& device) const;
  void verify_shapes(bool verify) { verify_shapes_ = verify; }

 private:
  distribute::Strategy& strategy_ = distribute::Strategy::current();
  const std::shared_ptr<EngineTables> tables_;
  std::mutex build_mutex_;  // held while building
  const OutputShapes candidates_;
  std::optional<OutputShapes> resolved_shapes_;           // set by build, like the next two
  std::vector<Shape> output_shapes_, activation_shapes_;  // by feature
  std::atomic<bool> verify_shapes_ = true;
  std::deque<PendingBatches> batches_;  // by local replica
};

const ReplicaContext& TPUEmbedding::Accelerator::replica(const char* call) {
  const ReplicaContext* context = current_replica_context();
  if (context == nullptr) {
    throw RuntimeError(kCaller, ".", call, ": must be called in a replica, inside Strategy::run");
  }
  session().check_strategy();
  return *context;
}

void TPUEmbedding::Accelerator::build(
    FunctionRef<std::optional<std::vector<Shape>>()> candidates_of_call) {
  const std::lock_guard lock(build_mutex_);
  if (tables_->built()) return;
  distribute::require_no_active_engine(strategy_, kCaller);
  const std::optional<std::vector<Shape>> candidates = candidates_of_call();
  OutputShapes shapes = candidates_;
  if (candidates) {
    shapes.check(*candidates);
    shapes.update(*candidates);
  }
  output_shapes_ = shapes.fully_defined();
  activation_shapes_.clear();
  size_t f = 0;
  for (const FeatureConfig& config : flatten(session().features())) {
    activation_shapes_.push_back(output_shapes_[f++] + Shape{config.table->dim});
  }
  const NoGradient pause;
  tables_->build(output_shapes_);
  resolved_shapes_.emplace(shapes);
}

EngineSession::Batch TPUEmbedding::Accelerator::prepare(const Tensors& features,
                                                        const FeatureWeights& weights,
                                                        bool in_step) {
  assert_same_structure(session().features(), features);
  const std::vector<TensorLike> inputs = flatten(features);
  if (verify_shapes_) {
    std::vector<Shape> shapes = candidates_.of_inputs(inputs);
    build([&] { return shapes; });
    resolved_shapes_->check(shapes);
  } else if (!tables_->built()) {
    throw ValueError(
        kCaller,
        ".enqueue: the object is not built and shape verification is off; call build first");
  }
  if (weights) assert_same_structure(session().features(), *weights);
  check_devices(session().paths(), inputs, in_step);
  return session().encode(features, weights, output_shapes_);
}

void TPUEmbedding::Accelerator::enqueue(int local_replica, EngineSession::Batch batch,
                                        bool training, const CallName& name) {
  const ReplicaContext* context = current_replica_context();
  PendingBatches& batches = batches_.at(local_replica);
  const std::lock_guard lock(batches.mutex);
  batches.drop_failed(strategy_);
  const CallOrder::Taken taken =
      batches.order.enqueue(context == nullptr ? 0 : context->run, training, name);
  batches.drop(taken, false);
  batches.in_flight[taken.batch].batch = std::move(batch);
}

std::vector<Tensor> TPUEmbedding::Accelerator::dequeue(const ReplicaContext& replica,
                                                       const CallName& name) {
  PendingBatches& batches = batches_.at(replica.local_replica);
  CallOrder::Taken taken;
  EngineSession::Batch batch;
  {
    const std::lock_guard lock(batches.mutex);
    batches.drop_failed(strategy_);
    taken = batches.order.dequeue(replica.run, name);
    batches.drop(taken, replica.replica == 0);
    std::swap(batch, batches.in_flight.at(taken.batch).batch);
  }
  agree(strategy_.communicator(), "dequeue", taken, name);
  EngineSession::Lookup found = session().lookup(batch, taken.training);
  if (taken.training || name) {
    const std::lock_guard lock(batches.mutex);
    batches.in_flight.at(taken.batch).ticket = std::move(found.ticket);
  }
  return std::move(found.activations);
}

void TPUEmbedding::Accelerator::apply_gradients(const ReplicaContext& replica,
                                                std::vector<Tensor> gradients,
                                                const CallName& name) {
  PendingBatches& batches = batches_.at(replica.local_replica);
  CallOrder::Taken taken;
  std::shared_ptr<EngineSession::Ticket> ticket;
  {
    const std::lock_guard lock(batches.mutex);
    batches.drop_failed(strategy_);
    taken = batches.order.apply_gradients(replica.run, name);
    ticket = batches.in_flight.extract(taken.batch).mapped().ticket;
    batches.drop(taken, false);
  }
  agree(strategy_.communicator(), "apply_gradients", taken, name);
  session().apply(ticket, std::move(gradients));
}

int TPUEmbedding::Accelerator::local_replica_of(const std::string& device) const {
  const int hosts = strategy_.num_hosts();
  const int core = core_of_device(
      device, {.hosts = hosts, .cores_of_each = strategy_.num_replicas_in_sync() / hosts});
  const int local = core - strategy_.first_local_replica();
  if (local < 0 || local >= strategy_.num_local_replicas()) {
    throw ValueError(kCaller, ".enqueue: ", device,
                     " belongs to another process; enqueue for the cores of this process");
  }
  return local;
}

TPUEmbedding::TPUEmbedding(const Nest<FeatureConfig>& feature_config,
                           const EmbeddingOptimizer& optimizer,
                           bool pipeline_execution_with_tensor_core)
    : EmbeddingBase(kCaller, feature_config, optimizer, !distribute::Strategy::current().is_tpu()) {
  if (distribute::Strategy::current().is_tpu()) {
    accelerator_ = std::make_unique<Accelerator>(table_set(), feature_config,
                                                 pipeline_execution_with_tensor_core);
  }
}

TPUEmbedding::~TPUEmbedding() = default;

TPUEmbedding::Accelerator& TPUEmbedding::accelerator(const char* call) const {
  if (accelerator_ == nullptr) {
    throw RuntimeError(
        kCaller, ".", call,
        ": requires an object created in the scope of a TPUStrategy, received one created outside");
  }
  return *accelerator_;
}

bool TPUEmbedding::built() const {
  return accelerator_ == nullptr ? EmbeddingBase::built() : accelerator_->tables()->built();
}

void TPUEmbedding::build(const std::optional<InputShapes>& per_replica_input_shapes,
                         std::optional<int64_t> per_replica_batch_size) {
  if (accelerator_ == nullptr) {
    const NoGradient pause;
    host_tables().build();
    return;
  }
  accelerator_->build([&]() -> std::optional<std::vector<Shape>> {
    const OutputShapes& known = accelerator_->candidates();
    if (per_replica_input_shapes) return known.of_input_shapes(*per_replica_input_shapes);
    if (!per_replica_batch_size) return {};
    std::cerr << kCaller
              << ".build: passing a batch size is deprecated; pass the shapes of the inputs\n";
    return known.of_batch_size(*per_replica_batch_size);
  });
}

void TPUEmbedding::build(int64_t per_replica_batch_size) { build({}, per_replica_batch_size); }

void TPUEmbedding::enqueue(const Tensors& features, const EnqueueOptions& options) {
  Accelerator& a = accelerator("enqueue");
  if (current_replica_context() != nullptr) {
    const ReplicaContext& replica = a.replica("enqueue");
    if (ControlFlowScope::active()) {
      throw RuntimeError(kCaller,
                         ".enqueue: must be called in the step function itself, not in a "
                         "function of ops::cond or ops::while_loop");
    }
    if (!options.device.empty()) {
      throw ValueError(kCaller, ".enqueue: a step enqueues for its own core, received device '",
                       options.device, "'; leave the device unset");
    }
    a.enqueue(replica.local_replica, a.prepare(features, options.weights, true), options.training,
              options.name);
    return;
  }
  a.session().check_active();
  if (options.device.empty() && a.strategy().num_replicas_in_sync() > 1) {
    throw ValueError(
        kCaller,
        ".enqueue: outside a step, pass per-replica values or set the device, received neither");
  }
  const int local_replica = options.device.empty() ? 0 : a.local_replica_of(options.device);
  a.enqueue(local_replica, a.prepare(features, options.weights, false), options.training,
            options.name);
}

void TPUEmbedding::enqueue(const distribute::PerReplica<Tensors>& features,
                           const EnqueueForAllOptions& options) {
  Accelerator& a = accelerator("enqueue");
  a.session().check_active();
  if (current_replica_context() != nullptr) {
    throw RuntimeError(kCaller,
                       ".enqueue: received per-replica values inside a replica; pass the features "
                       "of this replica only");
  }
  const int replicas = a.strategy().num_local_replicas();
  const auto check_size = [&](int size) {
    if (size != replicas) {
      throw ValueError(kCaller, ".enqueue: requires the features and weights of ", replicas,
                       " replicas, received ", size);
    }
  };
  check_size(features.size());
  if (options.weights) check_size(options.weights->size());
  // Encode the batches of all replicas before enqueuing any, so that an error enqueues nothing.
  std::vector<EngineSession::Batch> batches;
  for (int r = 0; r < replicas; ++r) {
    const FeatureWeights weights =
        options.weights ? FeatureWeights((*options.weights)[r]) : std::nullopt;
    batches.push_back(a.prepare(features[r], weights, false));
  }
  for (int r = 0; r < replicas; ++r) {
    a.enqueue(r, std::move(batches[r]), options.training, options.name);
  }
}

void TPUEmbedding::set_verify_output_shapes_on_enqueue(bool verify) {
  accelerator("set_verify_output_shapes_on_enqueue").verify_shapes(verify);
}

Tensors TPUEmbedding::dequeue(const CallName& name) {
  Accelerator& a = accelerator("dequeue");
  if (!built()) {
    throw RuntimeError(kCaller, ".dequeue: the object is not built; call enqueue or build first");
  }
  const std::vector<Tensor> activations = a.dequeue(a.replica("dequeue"), name);
  return map_structure(pack_sequence_as(feature_config(), activations),
                       [](const Tensor& t) -> TensorLike { return t; });
}

void TPUEmbedding::apply_gradients(const Nest<Gradient>& gradients, const CallName& name) {
  Accelerator& a = accelerator("apply_gradients");
  if (!built()) {
    throw RuntimeError(kCaller,
                       ".apply_gradients: the object is not built; call enqueue or build first");
  }
  assert_same_structure(feature_config(), gradients);
  std::vector<Tensor> checked =
      checked_gradients(gradients, a.session().paths(), a.activation_shapes());
  a.apply_gradients(a.replica("apply_gradients"), std::move(checked), name);
}

EmbeddingTables TPUEmbedding::embedding_tables() {
  if (accelerator_ == nullptr) return EmbeddingBase::embedding_tables();
  throw RuntimeError(
      kCaller,
      ".embedding_tables: under a TPUStrategy the tables are stored in the engine; write a "
      "checkpoint and restore it into an object created outside the strategy");
}

const std::string& TPUEmbedding::record() const {
  Accelerator& a = accelerator("record");
  if (!built())
    throw RuntimeError(kCaller, ".record: the object is not built; call enqueue or build first");
  return a.session().record();
}

std::vector<std::pair<std::string, IdCounts>> TPUEmbedding::id_counts() const {
  Accelerator& a = accelerator("id_counts");
  std::vector<std::pair<std::string, IdCounts>> out;
  for (const std::string& path : a.session().paths()) {
    out.emplace_back(path, a.session().invalid_ids(out.size()));
  }
  return out;
}

void TPUEmbedding::count_lookups(bool count) {
  accelerator("set_collect_statistics").session().set_counts_lookups(count);
}

LookupStatistics TPUEmbedding::statistics(size_t table) const {
  return accelerator("lookup_statistics").session().statistics(table);
}

DynamicTable::Access TPUEmbedding::dynamic_access(int table) const {
  if (accelerator_ == nullptr) return EmbeddingBase::dynamic_access(table);
  return [tables = accelerator_->tables(), table](bool drain) -> distribute::KeyedTable& {
    return tables->session().keyed_table(table, drain);
  };
}

std::shared_ptr<TrackedTables> TPUEmbedding::tracked() const {
  if (accelerator_ == nullptr) return EmbeddingBase::tracked();
  return accelerator_->tables();
}

}  // namespace keel::tpu

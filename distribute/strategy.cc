#include "distribute/strategy.h"

#include "autodiff/ops.h"
#include "autodiff/replica_context.h"
#include "autodiff/tape.h"
#include "autodiff/tree_sum.h"

namespace keel::distribute {
namespace {

thread_local Strategy* current_strategy = nullptr;

void check(const InputOptions& options) {
  if (options.experimental_fetch_to_device || options.experimental_place_dataset_on_device) {
    throw ValueError(
        "InputOptions: experimental_fetch_to_device and experimental_place_dataset_on_device must "
        "be false; there is no device memory to place inputs on");
  }
  if (options.experimental_per_replica_buffer_size < 0) {
    throw ValueError(
        "InputOptions: experimental_per_replica_buffer_size must not be negative, "
        "received ",
        options.experimental_per_replica_buffer_size);
  }
}

data::Dataset ahead(const data::Dataset& dataset, int64_t batches) {
  return batches > 0 ? dataset.prefetch(batches) : dataset;
}

PerReplica<Tensors> split_rows(const Tensors& batch, int replicas) {
  const int64_t rows = row_count(batch);
  std::vector<Tensors> parts;
  int64_t begin = 0;
  for (int r = 0; r < replicas; ++r) {
    const int64_t end = begin + rows / replicas + (r < rows % replicas ? 1 : 0);
    parts.push_back(replicas == 1 ? batch : slice_rows(batch, begin, end));
    begin = end;
  }
  return PerReplica<Tensors>(std::move(parts));
}

}  // namespace

Strategy::Scope::Scope(Strategy& strategy)
    : previous_(current_strategy), variables_(strategy.num_local_replicas()) {
  current_strategy = &strategy;
}

Strategy::Scope::~Scope() { current_strategy = previous_; }

Strategy& Strategy::current() {
  if (current_strategy != nullptr) return *current_strategy;
  static CPUStrategy default_strategy;
  return default_strategy;
}

void Strategy::check_replicas(int received) const {
  if (received != num_local_replicas()) {
    throw RuntimeError("Strategy: values for ", received, " replicas, the strategy runs ",
                       num_local_replicas());
  }
}

Tensor Strategy::reduce(ReduceOp op, const PerReplica<Tensor>& value) const {
  check_replicas(value.size());
  const NoGradient pause;
  const Tensor sum = tree_sum(value.values());
  return op == ReduceOp::kSum ? sum : ops::scale(sum, 1.0 / value.size());
}

DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset,
                                                             const InputOptions& options) {
  check(options);
  const int replicas = num_local_replicas();
  const data::Dataset source = ahead(dataset, options.experimental_per_replica_buffer_size);
  return DistributedDataset(
      [source, replicas]() -> DistributedDataset::Next {
        std::shared_ptr<data::Iterator> it = source.iterator();
        return [it, replicas]() -> std::optional<PerReplica<Tensors>> {
          std::optional<Tensors> batch = it->next();
          if (!batch) return {};
          return split_rows(*batch, replicas);
        };
      },
      dataset.cardinality());
}

DistributedDataset Strategy::distribute_datasets_from_function(
    const std::function<data::Dataset(const InputContext&)>& fn, const InputOptions& options) {
  check(options);
  const int replicas = num_local_replicas();
  const bool per_replica =
      options.experimental_replication_mode == InputReplicationMode::kPerReplica;
  const int pipelines = per_replica ? replicas : num_hosts();
  std::vector<data::Dataset> sources;
  int64_t cardinality = 0;
  for (int p = 0; p < pipelines; ++p) {
    const data::Dataset dataset = fn({.num_input_pipelines = pipelines,
                                      .input_pipeline_id = p,
                                      .num_replicas_in_sync = num_replicas_in_sync()});
    const int64_t served = replicas / pipelines;  // replicas that this pipeline feeds
    const int64_t batches = dataset.cardinality();
    // The longest pipeline decides; one that never ends is longer than any.
    if (batches == data::kInfinite || cardinality == data::kInfinite) {
      cardinality = data::kInfinite;
    } else if (batches == data::kUnknownCardinality || cardinality == data::kUnknownCardinality) {
      cardinality = data::kUnknownCardinality;
    } else {
      cardinality = std::max(cardinality, (batches + served - 1) / served);
    }
    sources.push_back(ahead(dataset, options.experimental_per_replica_buffer_size * served));
  }
  return DistributedDataset(
      [sources, replicas, pipelines]() -> DistributedDataset::Next {
        std::vector<std::shared_ptr<data::Iterator>> iterators;
        for (const data::Dataset& source : sources) iterators.push_back(source.iterator());
        // A pipeline that ends early leaves its replicas without rows, as a short last batch does.
        auto seen = std::make_shared<std::optional<Tensors>>();
        return [iterators, replicas, pipelines, seen]() -> std::optional<PerReplica<Tensors>> {
          std::vector<std::optional<Tensors>> parts;
          bool any = false;
          for (int r = 0; r < replicas; ++r) {
            parts.push_back(iterators[r * pipelines / replicas]->next());
            if (parts.back()) {
              *seen = parts.back();
              any = true;
            }
          }
          if (!any) return {};
          std::vector<Tensors> full;
          for (auto& part : parts) full.push_back(part ? *part : slice_rows(**seen, 0, 0));
          return PerReplica<Tensors>(std::move(full));
        };
      },
      cardinality);
}

CPUStrategy::CPUStrategy() : communicator_(make_self_communicator()) {}

const std::string& CPUStrategy::name() const {
  static const std::string kName = "CPUStrategy";
  return kName;
}

void CPUStrategy::run_replicas(const std::function<void(int)>& body) {
  if (current_replica_context() != nullptr) {
    throw RuntimeError("Strategy::run: called inside a replica");
  }
  const Scope in(*this);
  const ReplicaScope replica({.replica = 0, .local_replica = 0, .local_replicas = 1});
  body(0);
}

}  // namespace keel::distribute

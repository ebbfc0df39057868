#include <keel/distribute/strategy.h>

#include <algorithm>
#include <utility>

#include <keel/autodiff/internal/tree_sum.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/gather_tensors.h>
#include <keel/distribute/internal/placement.h>

namespace keel::distribute {

struct Strategy::Scope::Entry {
  Strategy& strategy;
  std::atomic<bool> ended = false;  // read by the thread that began the scope
};

namespace {

// The scopes of this thread that have not ended, the innermost last.
struct OpenScopes {
  std::vector<std::shared_ptr<Strategy::Scope::Entry>> entries;
  bool is_misordered = false;
};
thread_local OpenScopes open_scopes;

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

data::Dataset prefetched(const data::Dataset& dataset, int64_t batches) {
  return batches > 0 ? dataset.prefetch(batches) : dataset;
}

// Returns the rows of each local replica.
std::vector<Tensors> split_rows(const Tensors& batch, const Placement& placement) {
  const int64_t replicas = placement.replicas();
  const int64_t rows = row_count(batch);
  const auto first_row = [&](int64_t r) {
    return r * (rows / replicas) + std::min(r, rows % replicas);
  };
  std::vector<Tensors> parts;
  for (int l = 0; l < placement.local(); ++l) {
    const int64_t r = placement.first_local() + l;
    parts.push_back(slice_rows(batch, first_row(r), first_row(r + 1)));
  }
  return parts;
}

// Exchanges one number per process and returns them by rank.
std::vector<int64_t> gather_numbers(ProcessGroup& group, std::string_view what, int64_t mine) {
  std::vector<int64_t> out;
  const Tensor number = Tensor::scalar(mine);
  for (const Tensor& t : gather_tensors(group, what, {&number, 1})) {
    out.push_back(t.item<int64_t>());
  }
  return out;
}

VariableReplicas replicas_of_variables(const Placement& placement, ProcessGroup& group) {
  VariableReplicas out{.local = placement.local(), .all = placement.replicas()};
  if (placement.processes() > 1) {
    out.gather = [&group](std::span<const Tensor> local) {
      return gather_tensors(group, "reading a variable of several replicas", local);
    };
  }
  return out;
}

// Returns the number of steps of the longest pipeline. An infinite one is the longest; otherwise
// the result is unknown if one is.
int64_t longest(std::span<const int64_t> cardinalities) {
  for (const int64_t special : {data::kInfinite, data::kUnknownCardinality}) {
    if (std::ranges::find(cardinalities, special) != cardinalities.end()) return special;
  }
  return std::ranges::max(cardinalities);
}

// One pass over the input pipelines of this process.
class Pipelines {
 public:
  // Each pipeline feeds `served` of the local `replicas`, in order.
  Pipelines(const std::vector<data::Dataset>& sources, int served, int replicas,
            ProcessGroup& group)
      : served_(served), replicas_(replicas), group_(group) {
    for (const data::Dataset& source : sources) iterators_.push_back(source.iterator());
  }

  // A pipeline that ends early leaves its replicas without rows, like a short last batch.
  std::optional<PerReplica<Tensors>> next() {
    std::vector<std::optional<Tensors>> parts;
    bool any = false;
    for (int r = 0; r < replicas_; ++r) {
      parts.push_back(iterators_[r / served_]->next());
      if (parts.back()) {
        seen_ = parts.back();
        any = true;
      }
    }
    if (!goes_on(any)) return {};
    if (!seen_) {
      throw RuntimeError(
          "Strategy::distribute_datasets_from_function: the pipelines of rank ", group_.rank(),
          " are empty while those of other ranks are not; give each process at least one batch");
    }
    std::vector<Tensors> full;
    for (auto& part : parts) full.push_back(part ? *part : slice_rows(*seen_, 0, 0));
    return PerReplica<Tensors>(std::move(full));
  }

 private:
  // Returns true if any process has a batch.
  bool goes_on(bool any) {
    if (group_.size() == 1) return any;
    const auto all = gather_numbers(group_, "the next batch of all pipelines", any ? 1 : 0);
    return std::ranges::max(all) > 0;
  }

  const int served_, replicas_;
  ProcessGroup& group_;
  std::vector<std::unique_ptr<data::Iterator>> iterators_;
  std::optional<Tensors> seen_;
};

}  // namespace

Strategy::Strategy(const Placement& placement, ProcessGroup& group)
    : placement_(std::make_unique<const Placement>(placement)),
      group_(group),
      variable_replicas_(
          std::make_shared<const VariableReplicas>(replicas_of_variables(placement, group))) {}

Strategy::~Strategy() = default;

int Strategy::num_replicas_in_sync() const { return placement_->replicas(); }
int Strategy::num_local_replicas() const { return placement_->local(); }
int Strategy::first_local_replica() const { return placement_->first_local(); }

Strategy::Scope::Scope(Strategy& strategy)
    : variables_(strategy.variable_replicas_), entry_(std::make_shared<Entry>(strategy)) {
  open_scopes.entries.push_back(entry_);
}

// A destructor must not throw, so current() reports a wrong order. The remaining scopes stay
// active.
Strategy::Scope::~Scope() {
  entry_->ended = true;
  const auto at = std::ranges::find(open_scopes.entries, entry_);
  if (at == open_scopes.entries.end()) return;  // the thread that began it removes the entry
  if (at + 1 != open_scopes.entries.end()) open_scopes.is_misordered = true;
  open_scopes.entries.erase(at);
}

Strategy& Strategy::current() {
  OpenScopes& open = open_scopes;
  while (!open.entries.empty() && open.entries.back()->ended) {
    open.entries.pop_back();
    open.is_misordered = true;
  }
  if (std::exchange(open.is_misordered, false)) {
    throw RuntimeError(
        "Strategy::scope: a scope has ended before a scope that began after it, or on another "
        "thread; end scopes in reverse order, on the thread that began them");
  }
  if (!open.entries.empty()) return open.entries.back()->strategy;
  static CPUStrategy default_strategy(single_process());
  return default_strategy;
}

void Strategy::check_replicas(int received) const {
  if (received != num_local_replicas()) {
    throw RuntimeError("Strategy: received values for ", received,
                       " replicas, but this process runs ", num_local_replicas(),
                       "; pass one value for each replica of this process");
  }
}

Tensor Strategy::reduce(ReduceOp op, const PerReplica<Tensor>& value) const {
  check_replicas(value.size());
  const NoGradient pause;
  const std::vector<Tensor> all = placement_->processes() == 1
                                      ? value.values()
                                      : gather_tensors(group_, "Strategy::reduce", value.values());
  const Tensor sum = tree_sum(all);
  return op == ReduceOp::kSum ? sum : ops::scale(sum, 1.0 / num_replicas_in_sync());
}

DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset,
                                                             const InputOptions& options) {
  check(options);
  const bool alone = num_replicas_in_sync() == 1;
  // Rows are split in the prefetching thread, so that replicas do not wait for the copies.
  const data::Dataset shares = dataset.map([alone, placement = *placement_](const Tensors& batch) {
    return alone ? batch : Tensors::tuple(split_rows(batch, placement));
  });
  const data::Dataset source = prefetched(shares, options.experimental_per_replica_buffer_size);
  return DistributedDataset(
      [source, alone]() -> DistributedDataset::Next {
        std::shared_ptr<data::Iterator> it = source.iterator();
        return [it, alone]() -> std::optional<PerReplica<Tensors>> {
          const std::optional<Tensors> parts = it->next();
          if (!parts) return {};
          return PerReplica<Tensors>(alone ? std::vector<Tensors>{*parts} : parts->items());
        };
      },
      dataset.cardinality());
}

DistributedDataset Strategy::distribute_datasets_from_function(
    const std::function<data::Dataset(const InputContext&)>& fn, const InputOptions& options) {
  check(options);
  const bool per_replica =
      options.experimental_replication_mode == InputReplicationMode::kPerReplica;
  const int replicas = num_local_replicas();
  const int served = per_replica ? 1 : num_replicas_in_sync() / num_hosts();  // per pipeline
  std::vector<data::Dataset> sources;
  std::vector<int64_t> steps;
  for (int p = first_local_replica() / served; static_cast<int>(sources.size()) * served < replicas;
       ++p) {
    const data::Dataset dataset = fn({.num_input_pipelines = num_replicas_in_sync() / served,
                                      .input_pipeline_id = p,
                                      .num_replicas_in_sync = num_replicas_in_sync()});
    const int64_t batches = dataset.cardinality();
    steps.push_back(batches < 0 ? batches : (batches + served - 1) / served);
    sources.push_back(prefetched(dataset, options.experimental_per_replica_buffer_size * served));
  }
  int64_t cardinality = longest(steps);
  if (placement_->processes() > 1) {
    cardinality =
        longest(gather_numbers(group_, "Strategy::distribute_datasets_from_function", cardinality));
  }
  return DistributedDataset(
      [sources, served, replicas, &group = group_]() -> DistributedDataset::Next {
        auto pipelines = std::make_shared<Pipelines>(sources, served, replicas, group);
        return [pipelines] { return pipelines->next(); };
      },
      cardinality);
}

CPUStrategy::CPUStrategy() : CPUStrategy(single_process()) {
  if (const int count = processes().size(); count > 1) {
    throw RuntimeError("CPUStrategy: requires a job of one process, received ", count,
                       " processes; use TPUStrategy");
  }
}

CPUStrategy::CPUStrategy(ProcessGroup& alone)
    : Strategy(Placement{}, alone), communicator_(make_self_communicator()) {}

const std::string& CPUStrategy::name() const {
  static const std::string kName = "CPUStrategy";
  return kName;
}

void CPUStrategy::run_replicas(const std::function<void(int)>& body) {
  if (current_replica_context() != nullptr) {
    throw RuntimeError("Strategy::run: called inside a replica; call it from the main program");
  }
  const Scope in(*this);
  const ReplicaScope replica(ReplicaContext{});
  body(0);
}

}  // namespace keel::distribute

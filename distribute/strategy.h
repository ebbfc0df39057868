// Strategy: the replicas that training runs on (tf.distribute.Strategy).
//
// The number of replicas affects results: it determines how a batch is split and in which order
// gradients are added. The number of worker threads that run the replicas (set_num_workers) and the
// number of processes of a job (process_group.h) never change a bit of a result.
//
// All processes of a job run the same program. run(), reduce() and
// distribute_datasets_from_function(), including its iterations, must be called by all processes in
// the same order.
//
//   distribute::TPUStrategy strategy({.num_cores = 4});
//   const auto scope = strategy.scope();       // models created from here on belong to it
//   ...
//   auto losses = strategy.run(train_step, batches);            // in all replicas concurrently
//   Tensor loss = strategy.reduce(distribute::ReduceOp::kSum, losses);
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/distribute/communicator.h>
#include <keel/distribute/distributed_dataset.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

struct Placement;  // the assignment of replicas to processes

// Selects how reduce() combines the values of the replicas.
enum class ReduceOp { kSum, kMean };

// The base class of strategies. Models, optimizers and datasets created under a strategy belong to
// it.
class Strategy {
 public:
  virtual ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // While a Scope is alive, variables and layers created on this thread belong to its strategy.
  // Scopes must end in reverse order, on the thread that began them. Otherwise the next call of
  // current() on that thread throws RuntimeError.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(Strategy& strategy);  // Begins the scope.
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    struct Entry;

   private:
    const ReplicatedVariables variables_;
    const std::shared_ptr<Entry> entry_;
  };
  // Begins a scope of this strategy.
  Scope scope() { return Scope(*this); }
  // Returns the strategy of the innermost scope or, inside a replica, of the replica. Without
  // either, returns the default, a CPUStrategy. Throws RuntimeError once if scopes have not ended
  // in reverse order.
  static Strategy& current();

  int num_replicas_in_sync() const;                       // number of replicas of all processes
  int num_local_replicas() const;                         // number of replicas of this process
  int first_local_replica() const;                        // index of the first of them
  virtual int num_hosts() const { return 1; }             // number of hosts of the replicas
  virtual bool is_tpu() const { return false; }           // true for a TPUStrategy
  ProcessGroup& process_group() const { return group_; }  // the processes of the replicas
  virtual const std::string& name() const = 0;            // "CPUStrategy" or "TPUStrategy"
  // Returns the collectives of the replicas. With several replicas they work only inside run()
  // (RuntimeError otherwise).
  virtual Communicator& communicator() = 0;
  // Returns a pointer that expires when the strategy is destroyed, for objects that keep a
  // reference to the strategy.
  std::weak_ptr<const void> lifetime() const { return lifetime_; }

  // Calls fn(args[r]...) in every replica r of this process concurrently and returns the results,
  // if any. The result type must be default constructible and not bool. If a replica throws, all
  // replicas stop, and the exception of the lowest failed replica is rethrown here. The strategy
  // can then be used again. In a job of several processes, however, the others throw Aborted, and
  // the job cannot continue. Throws RuntimeError if called inside a replica, or if an argument does
  // not have one value per replica of this process.
  template <class Fn, class... Args>
  auto run(Fn&& fn, const PerReplica<Args>&... args) {
    (check_replicas(args.size()), ...);
    using R = std::invoke_result_t<Fn&, const Args&...>;
    if constexpr (std::is_void_v<R>) {
      run_replicas([&]([[maybe_unused]] int r) { fn(args[r]...); });
    } else {
      std::vector<R> out(num_local_replicas());
      run_replicas([&](int r) { out[r] = fn(args[r]...); });
      return PerReplica<R>(std::move(out));
    }
  }
  // Returns the number of failed runs, for objects that keep state from one run to the next.
  uint64_t failed_runs() const { return failed_runs_; }
  // Returns fn(r) for each replica of this process, called sequentially on this thread. r is the
  // replica's index among all replicas of the strategy.
  template <class Fn>
  auto distribute_values_from_function(Fn&& fn) {
    std::vector<std::invoke_result_t<Fn&, int>> out;
    for (int r = 0; r < num_local_replicas(); ++r) out.push_back(fn(first_local_replica() + r));
    return PerReplica(std::move(out));
  }
  // Returns the sum or mean of the values of all replicas, which must have the same shape and
  // dtype. The sum is a balanced tree over the replica indices. No tape records it. Throws
  // RuntimeError if `value` does not have one value per replica of this process.
  Tensor reduce(ReduceOp op, const PerReplica<Tensor>& value) const;

  // Splits each global batch of a dataset into contiguous ranges of rows, one per replica. If the
  // number of rows is not a multiple of the number of replicas, the first replicas get one row
  // more. A replica may therefore get no rows of a short last batch. Every process iterates over
  // the whole dataset and keeps the rows of its own replicas.
  DistributedDataset experimental_distribute_dataset(const data::Dataset& dataset,
                                                     const InputOptions& options = {});
  // Calls fn(context) for each input pipeline of this process. fn returns a dataset of per-replica
  // batches, from which the replicas of the pipeline take turns. The result ends when the pipelines
  // of all processes have ended; a pipeline that ends earlier gives its replicas batches without
  // rows. Iteration throws RuntimeError if the pipelines of a process produce no batch at all while
  // others do.
  DistributedDataset distribute_datasets_from_function(
      const std::function<data::Dataset(const InputContext&)>& fn,
      const InputOptions& options = {});

 protected:
  // The replicas are placed on the processes of `group`, which must outlive variables created under
  // the strategy.
  Strategy(const Placement& placement, ProcessGroup& group);
  // The assignment of replicas to processes.
  const Placement& placement() const { return *placement_; }
  // Calls body(r) for each local replica r concurrently, and returns when all have returned. If a
  // replica throws, calls count_failed_run() and rethrows the exception.
  virtual void run_replicas(const std::function<void(int local_replica)>& body) = 0;
  void count_failed_run() { ++failed_runs_; }  // See failed_runs().

 private:
  void check_replicas(int received) const;

  const std::unique_ptr<const Placement> placement_;
  ProcessGroup& group_;
  const std::shared_ptr<const VariableReplicas> variable_replicas_;
  std::atomic<uint64_t> failed_runs_ = 0;
  const std::shared_ptr<const void> lifetime_ = std::make_shared<char>();
};

// Runs one replica on the calling thread. Parallel loops inside it use all workers. Embedding
// tables are ordinary trainable variables. The constructor throws RuntimeError in a job of several
// processes.
class CPUStrategy final : public Strategy {
 public:
  CPUStrategy();
  const std::string& name() const override;
  Communicator& communicator() override { return *communicator_; }

 private:
  friend class Strategy;
  // Creates the strategy of Strategy::current() without a scope, which each process has for itself.
  explicit CPUStrategy(ProcessGroup& alone);
  void run_replicas(const std::function<void(int)>& body) override;
  const std::shared_ptr<Communicator> communicator_;
};

}  // namespace keel::distribute

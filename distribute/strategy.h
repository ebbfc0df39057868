// Strategy: over how many replicas, and where, training runs (tf.distribute.Strategy).
//
// The number of replicas is part of the program: it decides how a batch is split and in which
// order gradients are added. How many worker threads carry the replicas (set_num_workers) is
// not, and never changes a bit of a result. Nor does it matter how many processes of a job
// (process_group.h) the replicas are in: all of them run the same program, and what needs all
// replicas (run, reduce, datasets by functions) is called by all processes in the same order.
//
//   distribute::TPUStrategy strategy({.num_cores = 4});
//   const auto scope = strategy.scope();       // models made from here on belong to it
//   ...
//   auto losses = strategy.run(train_step, batches);            // in every replica at once
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
#include <keel/distribute/per_replica.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

enum class ReduceOp { kSum, kMean };

class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // While the returned object lives, variables and layers made on this thread belong to this
  // strategy. Scopes end in reverse order, on their thread: after any other order the next call of
  // current() on that thread is a RuntimeError.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(Strategy& strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    struct Entry;

   private:
    const ReplicatedVariables variables_;
    const std::shared_ptr<Entry> entry_;
  };
  Scope scope() { return Scope(*this); }
  // The strategy of the innermost scope or of the replica that runs; else the default, a
  // CPUStrategy. RuntimeError, once, if scopes have not ended in reverse order.
  static Strategy& current();

  int num_replicas_in_sync() const { return placement_.replicas(); }  // over all processes
  int num_local_replicas() const { return placement_.local(); }       // run by this process
  int first_local_replica() const { return placement_.first_local(); }
  virtual int num_hosts() const { return 1; }
  virtual bool is_tpu() const { return false; }
  ProcessGroup& process_group() const { return group_; }  // that the replicas are in
  virtual const std::string& name() const = 0;            // "CPUStrategy", ...
  // Collectives of the replicas. Outside run(), only where there is one replica (RuntimeError).
  virtual Communicator& communicator() = 0;
  // Expires when the strategy is destroyed; for those who keep a reference to it.
  std::weak_ptr<const void> lifetime() const { return lifetime_; }

  // fn(args[r]...) in every replica r of this process, at once; fn may return nothing. If any
  // throws, all stop and the lowest replica's own exception is rethrown here; the strategy can
  // be used again, unless there are other processes: those get Aborted, and the job is over.
  // RuntimeError inside a replica, and if args have another number of replicas.
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
  // How many runs have failed; for those who keep something from one run to the next.
  uint64_t failed_runs() const { return failed_runs_; }
  // fn(r) for each replica r of this process, one after the other: values made by the caller.
  template <class Fn>
  auto distribute_values_from_function(Fn&& fn) {
    std::vector<std::invoke_result_t<Fn&, int>> out;
    for (int r = 0; r < num_local_replicas(); ++r) out.push_back(fn(first_local_replica() + r));
    return PerReplica(std::move(out));
  }
  // The sum or mean over all replicas, added as a balanced tree over the replica number.
  Tensor reduce(ReduceOp op, const PerReplica<Tensor>& value) const;

  // Splits each batch of a global dataset into equal runs of rows, one per replica, the first
  // ones a row longer where it does not divide; a replica may get no rows of a short last batch.
  // Every process runs the whole dataset and keeps the rows of its own replicas.
  DistributedDataset experimental_distribute_dataset(const data::Dataset& dataset,
                                                     const InputOptions& options = {});
  // One dataset of per-replica batches for each input pipeline of this process: fn is called with
  // its context. Ends when the pipelines of all processes have. RuntimeError if those of one
  // process give nothing while others do.
  DistributedDataset distribute_datasets_from_function(
      const std::function<data::Dataset(const InputContext&)>& fn,
      const InputOptions& options = {});

 protected:
  // The replicas are placed on the processes of `group`, which outlives variables made here.
  Strategy(Placement placement, ProcessGroup& group);
  const Placement& placement() const { return placement_; }
  virtual void run_replicas(const std::function<void(int local_replica)>& body) = 0;
  void count_failed_run() { ++failed_runs_; }

 private:
  void check_replicas(int received) const;

  const Placement placement_;
  ProcessGroup& group_;
  const std::shared_ptr<const VariableReplicas> variable_replicas_;
  std::atomic<uint64_t> failed_runs_ = 0;
  const std::shared_ptr<const void> lifetime_ = std::make_shared<char>();
};

// One replica on the caller's thread; loops inside it use all workers. Embedding tables are
// ordinary trainable variables. RuntimeError in a job of several processes.
class CPUStrategy final : public Strategy {
 public:
  CPUStrategy();
  const std::string& name() const override;
  Communicator& communicator() override { return *communicator_; }

 private:
  friend class Strategy;
  // Strategy::current without a scope: each process on its own.
  explicit CPUStrategy(ProcessGroup& alone);
  void run_replicas(const std::function<void(int)>& body) override;
  const std::shared_ptr<Communicator> communicator_;
};

}  // namespace keel::distribute

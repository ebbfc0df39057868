// Strategy: over how many replicas, and where, training runs (tf.distribute.Strategy).
//
// The number of replicas is part of the program: it decides how a batch is split and in which
// order gradients are added. How many worker threads carry the replicas (set_num_workers) is
// not, and never changes a bit of a result.
//
//   distribute::TPUStrategy strategy({.num_cores = 4});
//   const auto scope = strategy.scope();       // models made from here on belong to it
//   ...
//   auto losses = strategy.run(train_step, batches);            // in every replica at once
//   Tensor loss = strategy.reduce(distribute::ReduceOp::kSum, losses);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "autodiff/variable.h"
#include "distribute/communicator.h"
#include "distribute/distributed_dataset.h"
#include "distribute/per_replica.h"
#include "framework/tensor.h"

namespace keel::distribute {

enum class ReduceOp { kSum, kMean };

class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // While the returned object lives, variables and layers made on this thread
  // belong to this strategy.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(Strategy& strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Strategy* const previous_;
    const ReplicatedVariables variables_;
  };
  Scope scope() { return Scope(*this); }
  // The strategy of the innermost scope or of the replica that runs; else the default, a
  // CPUStrategy.
  static Strategy& current();

  virtual int num_replicas_in_sync() const = 0;  // over all processes
  virtual int num_local_replicas() const = 0;    // run by this process
  virtual int num_hosts() const { return 1; }
  virtual bool is_tpu() const { return false; }
  virtual const std::string& name() const = 0;  // "CPUStrategy", ...
  // Collectives of the replicas. Outside run(), only where there is one replica (RuntimeError).
  virtual Communicator& communicator() = 0;
  // Expires when the strategy is destroyed; for those who keep a reference to it.
  std::weak_ptr<const void> lifetime() const { return lifetime_; }

  // fn(args[r]...) in every replica r of this process, at once; fn may return nothing. If any
  // throws, all stop and the lowest replica's own exception is rethrown here; the strategy can
  // be used again. RuntimeError inside a replica, and if args have another number of replicas.
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
  // fn(r) for each local replica r, one after the other: values made by the caller.
  template <class Fn>
  auto distribute_values_from_function(Fn&& fn) {
    std::vector<std::invoke_result_t<Fn&, int>> out;
    for (int r = 0; r < num_local_replicas(); ++r) out.push_back(fn(r));
    return PerReplica(std::move(out));
  }
  // The sum or mean over the replicas, added as a balanced tree over the replica number.
  Tensor reduce(ReduceOp op, const PerReplica<Tensor>& value) const;

  // Splits each batch of a global dataset into equal runs of rows, one per replica, the first
  // ones a row longer where it does not divide; a replica may get no rows of a short last batch.
  DistributedDataset experimental_distribute_dataset(const data::Dataset& dataset,
                                                     const InputOptions& options = {});
  // One dataset of per-replica batches for each input pipeline: fn is called with its context.
  DistributedDataset distribute_datasets_from_function(
      const std::function<data::Dataset(const InputContext&)>& fn,
      const InputOptions& options = {});

 protected:
  Strategy() = default;
  virtual void run_replicas(const std::function<void(int local_replica)>& body) = 0;

 private:
  void check_replicas(int received) const;
  const std::shared_ptr<const void> lifetime_ = std::make_shared<char>();
};

// One replica on the caller's thread; loops inside it use all workers. Embedding tables are
// ordinary trainable variables.
class CPUStrategy final : public Strategy {
 public:
  CPUStrategy();
  int num_replicas_in_sync() const override { return 1; }
  int num_local_replicas() const override { return 1; }
  const std::string& name() const override;
  Communicator& communicator() override { return *communicator_; }

 private:
  void run_replicas(const std::function<void(int)>& body) override;
  const std::shared_ptr<Communicator> communicator_;
};

}  // namespace keel::distribute

// TPUStrategy: a strategy whose replicas are the cores of a simulated accelerator.
#pragma once

#include <memory>
#include <string>

#include <keel/distribute/strategy.h>

namespace keel::distribute {

// The size of the simulated accelerator.
struct TPUStrategyOptions {
  int num_hosts = 1;  // number of hosts, > 0
  int num_cores = 8;  // number of cores of each host, > 0
};

// Runs num_hosts * num_cores replicas, each on its own thread. The number of replicas that compute
// at the same time is limited to num_workers() at the creation of the strategy. Embedding tables
// created under it are sharded over the cores and belong to an embedding engine, which updates
// their rows itself (docs/embedding.md).
//
// In a job of several processes, started by mpirun, each process simulates a contiguous range of
// the hosts. If the hosts do not divide evenly, the first processes simulate one host more. The
// number of processes does not change a bit of the results.
//
// The constructor throws ValueError unless hosts and cores are positive, their product is at most
// 1024, and there is at least one host per process. It throws RuntimeError if the processes create
// different strategies.
class TPUStrategy final : public Strategy {
 public:
  // Places the hosts on the processes of the program's job (processes()).
  explicit TPUStrategy(const TPUStrategyOptions& options);
  // Uses the processes of `group` instead of those of the program's job. `group` must outlive the
  // variables created under the strategy.
  TPUStrategy(const TPUStrategyOptions& options, ProcessGroup& group);
  ~TPUStrategy() override;

  int num_hosts() const override { return options_.num_hosts; }
  bool is_tpu() const override { return true; }
  const std::string& name() const override;
  Communicator& communicator() override;

 private:
  class Replicas;  // the replica threads, their scheduler and their collectives
  void run_replicas(const std::function<void(int)>& body) override;

  const TPUStrategyOptions options_;
  const std::unique_ptr<Replicas> replicas_;
};

// Returns a CPUStrategy for the name "cpu", and a TPUStrategy with `options` for "tpu". Throws
// ValueError for another name.
std::unique_ptr<Strategy> make_strategy(const std::string& name,
                                        const TPUStrategyOptions& options = {});

// Deactivates the strategy's embedding engine, so that another one can be created. Objects built on
// the old engine can no longer be used: their lookups throw RuntimeError. Throws RuntimeError if
// called inside a replica.
void initialize_tpu_system(const Strategy& strategy);

}  // namespace keel::distribute

// TPUStrategy: the replicas are the cores of a simulated accelerator.
#pragma once

#include <keel/distribute/strategy.h>
#include <keel/distribute/thread_communicator.h>

namespace keel::distribute {

struct TPUStrategyOptions {
  int num_hosts = 1;
  int num_cores = 8;  // of each host
};

// num_hosts * num_cores replicas, each a thread with its own work; as many compute at once as
// there are workers (set_num_workers) when the strategy is made. Embedding tables made under it
// are sharded over the cores and belong to an embedding engine (distribute/embedding/engine.h).
//
// Hosts are simulated in one process, or dealt to the processes of a job started by mpirun, in
// contiguous runs, the first ones a host more if need be: results have the same bits.
// ValueError unless hosts and cores are positive, their product is at most 1024, and there is a
// host for each process; RuntimeError if the processes make different strategies.
class TPUStrategy final : public Strategy {
 public:
  explicit TPUStrategy(const TPUStrategyOptions& options);
  // In another job than the program's own, which outlives what is made here.
  TPUStrategy(const TPUStrategyOptions& options, ProcessGroup& group);
  ~TPUStrategy() override;

  int num_hosts() const override { return options_.num_hosts; }
  bool is_tpu() const override { return true; }
  const std::string& name() const override;
  Communicator& communicator() override;

 private:
  class Threads;  // one per replica, waiting for the next run
  void run_replicas(const std::function<void(int)>& body) override;

  const TPUStrategyOptions options_;
  std::mutex run_mutex_;  // held by the caller whose run() is on: threads take turns
  ReplicaScheduler turns_;
  ThreadCommunicator communicator_;
  std::unique_ptr<Threads> threads_;
};

// "cpu", or "tpu" with `options`. ValueError for another name.
std::unique_ptr<Strategy> make_strategy(const std::string& name,
                                        const TPUStrategyOptions& options = {});

}  // namespace keel::distribute

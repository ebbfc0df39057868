// TPUStrategy: a strategy whose replicas are the cores of a simulated accelerator.
#pragma once

#include <keel/distribute/strategy.h>
#include <keel/distribute/thread_communicator.h>

namespace keel::distribute {

// The size of the simulated accelerator.
struct TPUStrategyOptions {
  int num_hosts = 1;
  int num_cores = 8;  // per host
};

// Runs num_hosts * num_cores replicas, each on a thread of its own. At most as many compute at the
// same time as there were workers (set_num_workers) when the strategy was created. Embedding tables
// created under it are sharded over the cores and belong to an embedding engine
// (distribute/embedding/engine.h).
//
// Hosts are simulated in one process, or distributed over the processes of a job started by mpirun
// in contiguous ranges, the first processes with one host more if necessary. The results have the
// same bits. The constructor throws ValueError unless hosts and cores are positive, their product
// is at most 1024, and there is at least one host per process. It throws RuntimeError if the
// processes create different strategies.
class TPUStrategy final : public Strategy {
 public:
  explicit TPUStrategy(const TPUStrategyOptions& options);
  // Uses another job than the program's own; `group` must outlive the variables created here.
  TPUStrategy(const TPUStrategyOptions& options, ProcessGroup& group);
  ~TPUStrategy() override;

  int num_hosts() const override { return options_.num_hosts; }
  bool is_tpu() const override { return true; }
  const std::string& name() const override;
  Communicator& communicator() override;

 private:
  class Threads;  // one thread per replica
  void run_replicas(const std::function<void(int)>& body) override;

  const TPUStrategyOptions options_;
  std::mutex run_mutex_;  // held during run(): concurrent callers run one after the other
  ReplicaScheduler turns_;
  ThreadCommunicator communicator_;
  std::unique_ptr<Threads> threads_;
};

// Returns the strategy "cpu", or "tpu" with `options`. Throws ValueError for another name.
std::unique_ptr<Strategy> make_strategy(const std::string& name,
                                        const TPUStrategyOptions& options = {});

}  // namespace keel::distribute

#include <keel/distribute/tpu/tpu_strategy.h>

#include <absl/strings/str_cat.h>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/internal/collective_error.h>
#include <keel/distribute/internal/placement.h>
#include <keel/distribute/internal/thread_communicator.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>

namespace keel::distribute {

// The threads of the replicas, which sleep between runs, and what they share.
class TPUStrategy::Replicas {
 public:
  Replicas(TPUStrategy& strategy, const Placement& placement, ProcessGroup& group)
      : strategy_(strategy),
        scheduler_(placement.local(), num_workers()),
        communicator_(placement, group, scheduler_),
        errors_(placement.local()) {
    try {
      for (int r = 0; r < placement.local(); ++r) threads_.emplace_back([this, r] { serve(r); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Replicas() { stop(); }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  ThreadCommunicator& communicator() { return communicator_; }
  // Locked during a run: concurrent callers of Strategy::run() run one after the other.
  std::mutex& run_mutex() { return run_mutex_; }

  // Wakes the threads, each of which calls body(r) with its replica r.
  void start(const std::function<void(int)>& body) {
    communicator_.reset();
    ReplicaScheduler::Lock lock = scheduler_.lock();
    body_ = &body;
    running_ = static_cast<int>(threads_.size());
    ++runs_;
    wake_all(lock);
  }
  // Waits until all replicas have returned. Returns the error of the lowest replica that failed
  // itself. Only if there is none, returns an Aborted, which merely reports that another replica or
  // process failed.
  std::exception_ptr wait() {
    ReplicaScheduler::Lock lock = scheduler_.lock();
    done_.wait(lock, [this] { return running_ == 0; });
    body_ = nullptr;
    return first_error();
  }

 private:
  std::exception_ptr first_error() {
    std::exception_ptr aborted;
    for (std::exception_ptr& error : errors_) {
      if (error == nullptr) continue;
      try {
        std::rethrow_exception(error);
      } catch (const Aborted&) {
        if (aborted == nullptr) aborted = error;
      } catch (...) {
        return std::current_exception();
      }
    }
    return aborted;
  }

  void wake_all(ReplicaScheduler::Lock& lock) {
    for (int r = 0; r < std::ssize(threads_); ++r) scheduler_.make_ready(r);
    scheduler_.dispatch(lock, true);
  }

  void stop() {
    ReplicaScheduler::Lock lock = scheduler_.lock();
    stopping_ = true;
    wake_all(lock);
    threads_.clear();
  }

  // The function of a replica's thread: one call of the body for each run.
  void serve(int local_replica) {
    const SerialSection replicas_share_the_workers;
    ReplicaScheduler::Lock lock = scheduler_.lock();
    scheduler_.wait_for_first(lock, local_replica);
    while (!stopping_) {
      const uint64_t run = runs_;
      lock.unlock();
      errors_[local_replica] = run_replica(local_replica, run);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
      scheduler_.wait(lock, local_replica, false);
    }
    scheduler_.leave(lock, local_replica);
  }

  // Calls the body of this run in one replica. Returns its exception, if any.
  std::exception_ptr run_replica(int local_replica, uint64_t run) {
    const int replica = strategy_.first_local_replica() + local_replica;
    std::exception_ptr error;
    try {
      const Scope in(strategy_);
      const ReplicaScope context({.replica = replica,
                                  .replicas = strategy_.num_replicas_in_sync(),
                                  .local_replica = local_replica,
                                  .local_replicas = strategy_.num_local_replicas(),
                                  .run = run});
      const DeviceScope on_core({.core = replica});
      try {
        const profile::Scope scope(profile::Phase::kFramework, "replica");
        (*body_)(local_replica);
      } catch (const CollectiveError&) {  // all replicas have thrown it
        error = std::current_exception();
      }
      communicator_.leave();
    } catch (const Aborted&) {  // the failed replica or process has notified the others
      error = std::current_exception();
    } catch (const std::exception& e) {
      error = std::current_exception();
      communicator_.abort(str_or_empty("replica ", replica, " failed: ", e.what()));
    } catch (...) {
      error = std::current_exception();
      communicator_.abort(str_or_empty("replica ", replica, " failed"));
    }
    return error;
  }

  TPUStrategy& strategy_;
  std::mutex run_mutex_;
  ReplicaScheduler scheduler_;  // its lock guards the members from body_ to running_
  ThreadCommunicator communicator_;
  std::condition_variable done_;
  const std::function<void(int)>* body_ = nullptr;
  bool stopping_ = false;
  uint64_t runs_ = 0;
  int running_ = 0;
  std::vector<std::exception_ptr> errors_;  // each written by its replica, read after the run
  std::vector<std::jthread> threads_;       // last, because the threads use all other members
};

namespace {

TPUStrategyOptions checked(const TPUStrategyOptions& options) {
  constexpr int kMost = 1024;
  if (options.num_hosts < 1 || options.num_cores < 1 || options.num_hosts > kMost ||
      options.num_cores > kMost || options.num_hosts * options.num_cores > kMost) {
    throw ValueError(
        "TPUStrategy: num_hosts and num_cores must be positive and their product at "
        "most ",
        kMost, ", received ", options.num_hosts, " hosts of ", options.num_cores, " cores");
  }
  return options;
}

}  // namespace

TPUStrategy::TPUStrategy(const TPUStrategyOptions& options) : TPUStrategy(options, processes()) {}

TPUStrategy::TPUStrategy(const TPUStrategyOptions& options, ProcessGroup& group)
    : Strategy(place_hosts(checked(options).num_hosts, options.num_cores, group), group),
      options_(options),
      replicas_(std::make_unique<Replicas>(*this, placement(), group)) {
  // The label contains the options, so that processes with different strategies fail immediately.
  if (group.size() > 1) {
    all_gather(group,
               absl::StrCat("TPUStrategy of ", options.num_hosts, " hosts of ", options.num_cores,
                            " cores"),
               {});
  }
}

TPUStrategy::~TPUStrategy() = default;

const std::string& TPUStrategy::name() const {
  static const std::string kName = "TPUStrategy";
  return kName;
}

Communicator& TPUStrategy::communicator() { return replicas_->communicator(); }

void TPUStrategy::run_replicas(const std::function<void(int)>& body) {
  if (current_replica_context() != nullptr) {
    throw RuntimeError("Strategy::run: called inside a replica; call it from the main program");
  }
  const std::lock_guard lock(replicas_->run_mutex());
  replicas_->start(body);
  if (const std::exception_ptr error = replicas_->wait()) {
    count_failed_run();
    // Some replicas may have failed before they applied a pending update.
    if (const auto engine = active_engine(*this)) engine->recover_from_failed_run();
    try {
      std::rethrow_exception(error);
    } catch (const CollectiveError&) {
      replicas_->communicator().finish();
      throw;
    }
  }
  replicas_->communicator().finish();
}

std::unique_ptr<Strategy> make_strategy(const std::string& name,
                                        const TPUStrategyOptions& options) {
  if (name == "cpu") return std::make_unique<CPUStrategy>();
  if (name == "tpu") return std::make_unique<TPUStrategy>(options);
  throw ValueError("make_strategy: unknown strategy '", name, "'; use cpu or tpu");
}

}  // namespace keel::distribute

#include <keel/distribute/tpu/tpu_strategy.h>

#include <exception>
#include <thread>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_system.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>

namespace keel::distribute {

// The threads of the replicas, which sleep between runs.
class TPUStrategy::Threads {
 public:
  explicit Threads(TPUStrategy& strategy)
      : strategy_(strategy), errors_(strategy.num_local_replicas()) {
    try {
      for (int r = 0; r < strategy.num_local_replicas(); ++r) {
        threads_.emplace_back([this, r] { serve(r); });
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Threads() { stop(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Runs body(r) in every thread r and waits for all. errors_[r] holds the exception of replica r.
  void run(const std::function<void(int)>& body) {
    ReplicaScheduler::Lock lock = turns_.lock();
    body_ = &body;
    running_ = static_cast<int>(threads_.size());
    ++runs_;
    begin_all(lock);
    lock.lock();
    done_.wait(lock, [this] { return running_ == 0; });
    body_ = nullptr;
  }

  // Returns the error of the lowest replica that failed itself. Only if there is none, returns an
  // Aborted, which merely reports that another replica or process failed.
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

 private:
  void begin_all(ReplicaScheduler::Lock& lock) {
    for (int r = 0; r < std::ssize(threads_); ++r) turns_.make_ready(r);
    turns_.dispatch(lock, true);
  }

  void stop() {
    ReplicaScheduler::Lock lock = turns_.lock();
    stopping_ = true;
    begin_all(lock);
    threads_.clear();
  }

  void serve(int replica) {
    const SerialSection replicas_share_the_workers;
    ReplicaScheduler::Lock lock = turns_.lock();
    turns_.wait_for_first(lock, replica);
    while (!stopping_) {
      const uint64_t run = runs_;
      lock.unlock();
      errors_[replica] = work(replica, run);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
      turns_.wait(lock, replica, false);
    }
    turns_.leave(lock, replica);
  }

  std::exception_ptr work(int local_replica, uint64_t run) {
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
      {
        const profile::Scope scope(profile::Phase::kFramework, "replica");
        (*body_)(local_replica);
      }
      strategy_.communicator_.leave();
    } catch (const Aborted&) {  // the failed replica or process has notified the others
      error = std::current_exception();
    } catch (const std::exception& e) {
      error = std::current_exception();
      strategy_.communicator_.abort(str_or_empty("replica ", replica, " failed: ", e.what()));
    } catch (...) {
      error = std::current_exception();
      strategy_.communicator_.abort(str_or_empty("replica ", replica, " failed"));
    }
    return error;
  }

  TPUStrategy& strategy_;
  ReplicaScheduler& turns_ = strategy_.turns_;  // its lock guards the members up to running_
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
      turns_(num_local_replicas(), num_workers()),
      communicator_(placement(), group, turns_),
      threads_(std::make_unique<Threads>(*this)) {
  // The label contains the options, so that processes with different strategies fail immediately.
  if (group.size() > 1) {
    all_gather(group,
               str("TPUStrategy of ", options.num_hosts, " hosts of ", options.num_cores, " cores"),
               {});
  }
}

TPUStrategy::~TPUStrategy() = default;

const std::string& TPUStrategy::name() const {
  static const std::string kName = "TPUStrategy";
  return kName;
}

Communicator& TPUStrategy::communicator() { return communicator_; }

void TPUStrategy::run_replicas(const std::function<void(int)>& body) {
  if (current_replica_context() != nullptr) {
    throw RuntimeError("Strategy::run: called inside a replica; call it from the main program");
  }
  const std::lock_guard turn(run_mutex_);
  communicator_.reset();
  threads_->run(body);
  if (const std::exception_ptr error = threads_->first_error()) {
    count_failed_run();
    // Some replicas may have failed before they made a pending update; drop those that not all
    // replicas have.
    if (const auto engine = live_engine(*this)) engine->forget_uneven_pending();
    std::rethrow_exception(error);
  }
  communicator_.finish();
}

std::unique_ptr<Strategy> make_strategy(const std::string& name,
                                        const TPUStrategyOptions& options) {
  if (name == "cpu") return std::make_unique<CPUStrategy>();
  if (name == "tpu") return std::make_unique<TPUStrategy>(options);
  throw ValueError("make_strategy: unknown strategy '", name, "'; use cpu or tpu");
}

}  // namespace keel::distribute

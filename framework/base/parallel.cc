#include <keel/framework/base/parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/cpu_quota.h>

namespace keel {
namespace {

thread_local int serial_depth = 0;

// One parallel loop. Threads take blocks until none is left.
struct Loop {
  int64_t n, grain, blocks;
  FunctionRef<void(int64_t, int64_t)> fn;
  std::atomic<int64_t> next = 0;
  std::mutex mutex = {};  // guards error and failed_block
  std::exception_ptr error = nullptr;
  int64_t failed_block = std::numeric_limits<int64_t>::max();

  void work() {
    const SerialSection inner;
    for (int64_t block = next++; block < blocks; block = next++) {
      try {
        const int64_t begin = block * grain;
        fn(begin, std::min(n, begin + grain));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (block < failed_block) {
          failed_block = block;
          error = std::current_exception();
        }
      }
    }
  }
};

// The time that a thread spins before it sleeps: about twice the time to wake a sleeping thread on
// a virtual machine, because the loops of a training step follow each other within that time.
constexpr std::chrono::microseconds kSpinTime(100);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns when `value` differs from `old`. Spins first, then sleeps.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  constexpr int kSpinsPerClockRead = 64;
  const auto until = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int spin = 0; spin < kSpinsPerClockRead; ++spin) {
      if (value.load() != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  value.wait(old);
}

// The worker threads. The thread that calls run() works too, so a pool for n workers has n - 1
// threads.
class Pool {
 public:
  explicit Pool(int workers) {
    try {
      for (int i = 1; i < workers; ++i) threads_.emplace_back([this] { serve(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Pool() { stop(); }

  // Runs the loop on all workers. Loops of different callers run one after another. The lock is
  // held while the blocks run, which cannot deadlock: SerialSection keeps blocks from starting a
  // loop here.
  void run(Loop& loop) {
    const std::lock_guard lock(loop_mutex_);
    loop_ = &loop;
    announce();
    loop.work();
    // A worker that wakes after this line finds no loop, so a short loop need not wait for all
    // workers to wake.
    loop_ = nullptr;
    for (int inside = inside_; inside != 0; inside = inside_) wait_while(inside_, inside);
  }

 private:
  void stop() {
    stopped_ = true;
    announce();
  }

  // Wakes all workers.
  void announce() {
    ++announced_;
    announced_.notify_all();
  }

  void serve() {
    // A worker counts itself in before it reads loop_, so run() cannot return while it uses the
    // loop.
    uint32_t seen = 0;
    while (!stopped_) {
      wait_while(announced_, seen);
      seen = announced_;
      ++inside_;
      if (Loop* const loop = loop_) loop->work();
      if (--inside_ == 0) inside_.notify_one();
    }
  }

  std::mutex loop_mutex_;  // held by the caller whose loop runs
  std::atomic<Loop*> loop_ = nullptr;
  std::atomic<uint32_t> announced_ = 0;  // number of loops started, plus one for the stop
  std::atomic<int> inside_ = 0;          // workers that may be using loop_
  std::atomic<bool> stopped_ = false;
  std::vector<std::jthread> threads_;
};

// Returns the number of processes of the job on this machine, as reported by the launcher's
// environment variables; 1 without a launcher.
int local_processes() {
  for (const char* variable :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"}) {
    if (const char* size = std::getenv(variable)) return std::max(1, std::atoi(size));
  }
  return 1;
}

// Returns the number of processors that this process may use. If its affinity mask excludes
// processors, the launcher has pinned the process and it uses the whole mask. Otherwise the
// processes of the job on this machine share all processors. They share the control group's quota
// in both cases.
int default_count() {
  cpu_set_t allowed;
  const auto all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int in_mask =
      sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : all;
  int count = in_mask < all ? in_mask : all / local_processes();
  if (const auto quota = cpu_quota()) count = std::min(count, *quota / local_processes());
  return std::max(1, count);
}

struct Workers {
  std::mutex mutex;  // guards count and pool
  int count = default_count();
  std::shared_ptr<Pool> pool;
};

Workers& workers() {
  static Workers instance;
  return instance;
}

std::shared_ptr<Pool> pool() {
  const std::lock_guard lock(workers().mutex);
  if (workers().pool == nullptr) workers().pool = std::make_shared<Pool>(workers().count);
  return workers().pool;
}

}  // namespace

SerialSection::SerialSection() { ++serial_depth; }
SerialSection::~SerialSection() { --serial_depth; }

void set_num_workers(int count) {
  if (count < 1 || count > 1024) {
    throw ValueError("set_num_workers: count must be between 1 and 1024, received ", count);
  }
  const std::lock_guard lock(workers().mutex);
  workers().count = count;
  workers().pool = nullptr;
}

int num_workers() {
  const std::lock_guard lock(workers().mutex);
  return workers().count;
}

bool parallel_runs_in_place() { return serial_depth > 0 || num_workers() == 1; }

void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> fn) {
  if (n <= 0) return;
  const int64_t blocks = (n + grain - 1) / grain;
  if (blocks == 1) return fn(0, n);
  Loop loop{.n = n, .grain = grain, .blocks = blocks, .fn = fn};
  if (parallel_runs_in_place()) {
    loop.work();
  } else {
    pool()->run(loop);
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

}  // namespace keel

// Profile: where the time of a program goes, by phase and by name.
//
//   profile::start();
//   train();
//   print(profile::stop(), std::cout);   // or run the program with KEEL_PROFILE=1
//
// The framework marks what it computes: each op by its class, forward and backward; lookups and
// updates of embedding tables; dense updates; sums over replicas; waiting for other replicas.
// Programs may mark their own work with a Scope. While nothing is being profiled a mark costs one
// relaxed load.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace keel::profile {

enum class Phase : uint8_t {
  kInput,      // reading, parsing
  kLookup,     // rows of embedding tables: routing, gathering, pooling
  kForward,    // ops
  kBackward,   // ops of gradients
  kUpdate,     // of embedding tables and of variables
  kReduce,     // sums over replicas
  kFramework,  // between all these: graph walks, tapes, bookkeeping
  kWait,       // for other replicas; no work, and where replicas take turns no loss either
};
inline constexpr int kPhases = 8;
std::string_view name_of(Phase phase);

struct Row {
  Phase phase = Phase::kFramework;
  std::string name = {};
  int64_t calls = 0;
  double seconds = 0;  // without what marks inside it count, summed over threads
};

struct Report {
  double wall_seconds = 0;     // from start() to stop()
  std::vector<Row> rows = {};  // phase by phase, most time first

  double seconds(Phase phase) const;
  double busy_seconds() const;    // all phases but kWait
  double kernel_seconds() const;  // neither kWait nor kFramework
};

// Both from one thread at a time. start() forgets what a profile that runs has counted. Marks that
// are open when either is called are not counted.
void start();
Report stop();
void print(const Report& report, std::ostream& out);

namespace internal {
inline std::atomic<bool> running = false;
}

inline bool is_running() { return internal::running.load(std::memory_order_relaxed); }

// While alive, the time of this thread belongs to (phase, name). Scopes nest: a scope's time is
// its own, without that of the scopes inside it.
class Scope {
 public:
  // `name` must outlive the scope. Ops called inside belong to `phase_of_ops`.
  Scope(Phase phase, std::string_view name, Phase phase_of_ops = Phase::kForward) {
    if (is_running()) open(phase, name, phase_of_ops);
  }
  // Of an op: in the phase that an enclosing scope says, kForward without one.
  explicit Scope(std::string_view op_name) {
    if (is_running()) open_op(op_name);
  }
  ~Scope() {
    if (log_ != nullptr) close();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  struct Log;  // of a thread
  friend struct Logs;
  using Clock = std::chrono::steady_clock;

  void open(Phase phase, std::string_view name, Phase phase_of_ops);
  void open_op(std::string_view name);
  void close();

  Log* log_ = nullptr;  // null: not counted
  Scope* outer_;
  Phase phase_, phase_of_ops_;
  uint64_t run_;
  std::string_view name_;
  Clock::time_point begin_;
  Clock::duration inside_;  // of scopes inside this one
};

}  // namespace keel::profile

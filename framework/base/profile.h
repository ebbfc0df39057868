// Profile: measures where a program spends its time, by phase and by name.
//
//   profile::start();
//   train();
//   print(profile::stop(), std::cout);   // or run the program with KEEL_PROFILE=1
//
// The framework opens a Scope for each op, forward and backward, named by the op's class; for
// lookups and updates of embedding tables; for dense updates; for sums over replicas; and for
// waiting for other replicas. Programs may open a Scope around their own work. While no profile is
// running, a Scope costs one relaxed load.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace keel::profile {

// The kind of work that a scope measures.
enum class Phase : uint8_t {
  kInput,      // reading and parsing
  kLookup,     // rows of embedding tables: routing, gathering, pooling
  kForward,    // ops
  kBackward,   // ops of gradients
  kUpdate,     // updates of embedding tables and of variables
  kReduce,     // sums over replicas
  kFramework,  // everything between the other phases: graph walks, tapes, bookkeeping
  kWait,       // waiting for other replicas, which may use the core meanwhile
};
// The number of phases.
inline constexpr int kPhases = 8;
// Returns the lower-case name of the phase, e.g. "input".
std::string_view name_of(Phase phase);

// The time of all scopes of one phase and name.
struct Row {
  Phase phase = Phase::kFramework;  // the kind of work
  std::string name = {};            // name of the op, table or scope
  int64_t calls = 0;                // scopes that were closed
  double seconds = 0;               // excludes nested scopes; summed over threads
};

// One scope of a traced profile.
struct TraceEvent {
  Phase phase = Phase::kFramework;  // the kind of work
  std::string name = {};            // of the op, table or scope
  int thread = 0;                   // the number of the thread, in no particular order
  double begin = 0;                 // microseconds since start()
  double duration = 0;              // microseconds, with the scopes inside it
};

// The result of a profile.
struct Report {
  double wall_seconds = 0;              // from start() to stop()
  std::vector<Row> rows = {};           // sorted by phase, then by decreasing time
  std::vector<TraceEvent> events = {};  // of a traced profile, by thread and by end

  // Returns the total time of a phase, summed over threads.
  double seconds(Phase phase) const;
  double busy_seconds() const;    // all phases except kWait
  double kernel_seconds() const;  // all phases except kWait and kFramework
};

// Begins a profile and discards the counts of a running one. At most one thread may call start()
// and stop() at a time. Scopes that are open when either is called are not counted. With `trace`,
// the report lists each scope, which takes about 100 bytes for each.
void start(bool trace = false);
// Ends the profile and returns its report.
Report stop();
// Prints the report as a table.
void print(const Report& report, std::ostream& out);
// Writes the events of a traced profile in Chrome's trace format, which chrome://tracing, Perfetto
// and TensorBoard show.
void write_chrome_trace(const Report& report, std::ostream& out);

namespace internal {
inline std::atomic<bool> running = false;
}

// Returns true while a profile is running.
inline bool is_running() { return internal::running.load(std::memory_order_relaxed); }

// While a Scope is alive, the time of this thread is attributed to (phase, name). Scopes nest: the
// time of a scope excludes the scopes inside it.
class Scope {
 public:
  // `name` must outlive the scope. Ops that run inside it are attributed to `phase_of_ops`.
  Scope(Phase phase, std::string_view name, Phase phase_of_ops = Phase::kForward) {
    if (is_running()) open(phase, name, phase_of_ops);
  }
  // Opens the scope of an op. Its phase is the `phase_of_ops` of the enclosing scope, or kForward
  // without one.
  explicit Scope(std::string_view op_name) {
    if (is_running()) open_op(op_name);
  }
  ~Scope() {
    if (log_ != nullptr) close();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  struct Log;  // the counts of one thread
  friend struct Logs;
  using Clock = std::chrono::steady_clock;

  void open(Phase phase, std::string_view name, Phase phase_of_ops);
  void open_op(std::string_view name);
  void close();

  Log* log_ = nullptr;  // null if this scope is not counted
  Scope* outer_;
  Phase phase_, phase_of_ops_;
  uint64_t run_;
  std::string_view name_;
  Clock::time_point begin_;
  Clock::duration inside_;  // time of the scopes inside this one
};

}  // namespace keel::profile

#include <keel/framework/base/profile.h>

#include <absl/strings/str_format.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>

namespace keel::profile {

// The counts of one thread. Other threads take the mutex only to make a report or to clear the
// counts, so it is usually uncontended.
struct Scope::Log {
  struct Count {
    int64_t calls = 0;
    Clock::duration time = {};
  };
  using Counts = std::map<std::string, Count, std::less<>>;

  std::mutex mutex;
  std::array<Counts, kPhases> counts;  // by phase, by name
  std::vector<TraceEvent> events;      // of a traced profile
  Scope* innermost = nullptr;          // accessed only by the owning thread
};

// The logs of all threads, including threads that have ended, whose work counts too.
struct Logs {
  std::mutex mutex;  // guards `all`, `began`
  std::vector<std::shared_ptr<Scope::Log>> all;
  Scope::Clock::time_point began;
  std::atomic<uint64_t> run = 0;  // incremented by every start and stop
  std::atomic<bool> traces = false;

  static Logs& instance() {
    static Logs* logs = new Logs;  // leaked: threads may outlive main()
    return *logs;
  }
  static Scope::Log& of_this_thread() {
    thread_local const std::shared_ptr<Scope::Log> kLog = [] {
      auto log = std::make_shared<Scope::Log>();
      Logs& logs = instance();
      const std::lock_guard lock(logs.mutex);
      logs.all.push_back(log);
      return log;
    }();
    return *kLog;
  }
  Report report();
  void clear();
};

namespace {

double in_seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Profiles the program from static initialization to its end if KEEL_PROFILE is set and neither
// empty nor 0.
struct WholeProgram {
  bool on = false;
  WholeProgram() {
    const char* value = std::getenv("KEEL_PROFILE");
    on = value != nullptr && *value != '\0' && std::string_view(value) != "0";
    if (on) start();
  }
  ~WholeProgram() {
    if (on) print(stop(), std::cerr);
  }
};
const WholeProgram kWholeProgram;

}  // namespace

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {
      "input", "lookup", "forward", "backward", "update", "reduce", "framework", "wait"};
  return kNames[static_cast<size_t>(phase)];
}

double Report::seconds(Phase phase) const {
  double sum = 0;
  for (const Row& row : rows) sum += row.phase == phase ? row.seconds : 0;
  return sum;
}

double Report::kernel_seconds() const { return busy_seconds() - seconds(Phase::kFramework); }

double Report::busy_seconds() const {
  double sum = 0;
  for (const Row& row : rows) sum += row.phase == Phase::kWait ? 0 : row.seconds;
  return sum;
}

// Sums the counts of all threads. The caller holds `mutex`.
Report Logs::report() {
  std::array<Scope::Log::Counts, kPhases> sums;
  std::vector<TraceEvent> events;
  int thread = 0;
  for (const auto& log : all) {
    const std::lock_guard lock(log->mutex);
    for (TraceEvent& event : log->events) {
      event.thread = thread;
      events.push_back(std::move(event));
    }
    log->events.clear();
    ++thread;
    for (int p = 0; p < kPhases; ++p) {
      for (const auto& [name, count] : log->counts[p]) {
        sums[p][name].calls += count.calls;
        sums[p][name].time += count.time;
      }
    }
  }
  Report out{.wall_seconds = in_seconds(Scope::Clock::now() - began), .events = std::move(events)};
  for (int p = 0; p < kPhases; ++p) {
    for (const auto& [name, count] : sums[p]) {
      out.rows.push_back({.phase = static_cast<Phase>(p),
                          .name = name,
                          .calls = count.calls,
                          .seconds = in_seconds(count.time)});
    }
  }
  std::ranges::sort(out.rows, [](const Row& a, const Row& b) {
    if (a.phase != b.phase) return a.phase < b.phase;
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  return out;
}

// Clears all counts and drops the logs of threads that have ended. The caller holds `mutex`.
void Logs::clear() {
  std::erase_if(all, [](const auto& log) { return log.use_count() == 1; });
  for (const auto& log : all) {
    const std::lock_guard lock(log->mutex);
    for (auto& counts : log->counts) counts.clear();
    log->events.clear();
  }
}

void start(bool trace) {
  Logs& logs = Logs::instance();
  const std::lock_guard lock(logs.mutex);
  logs.run.fetch_add(1);
  logs.clear();
  logs.began = std::chrono::steady_clock::now();
  logs.traces.store(trace);
  internal::running.store(true);
}

Report stop() {
  Logs& logs = Logs::instance();
  const std::lock_guard lock(logs.mutex);
  internal::running.store(false);
  logs.run.fetch_add(1);
  return logs.report();
}

void print(const Report& report, std::ostream& out) {
  const double busy = std::max(report.busy_seconds(), 1e-12);
  out << absl::StrFormat("%.3f s, %.3f s of work in all threads\n", report.wall_seconds,
                         report.busy_seconds());
  for (int p = 0; p < kPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    const double all = report.seconds(phase);
    if (all == 0) continue;
    out << absl::StrFormat("%-34s %22.3f ms %5.1f %%\n", name_of(phase), all * 1e3,
                           100 * all / busy);
    for (const Row& row : report.rows) {
      if (row.phase != phase) continue;
      out << absl::StrFormat("  %-32.60s %9d calls %10.3f ms %5.1f %%\n", row.name, row.calls,
                             row.seconds * 1e3, 100 * row.seconds / busy);
    }
  }
}

void write_chrome_trace(const Report& report, std::ostream& out) {
  const auto text = [](std::string_view name) {
    std::string quoted;
    for (const char c : name) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return quoted;
  };
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const TraceEvent& event : report.events) {
    out << (&event == &report.events.front() ? "\n" : ",\n") << R"({"ph": "X", "name": ")"
        << text(event.name) << R"(", "cat": ")" << name_of(event.phase) << R"(", )"
        << absl::StrFormat(R"("ts": %.3f, "dur": %.3f, "pid": 1, "tid": %d})", event.begin,
                           event.duration, event.thread);
  }
  out << "\n]}\n";
}

void Scope::open(Phase phase, std::string_view name, Phase phase_of_ops) {
  Log& log = Logs::of_this_thread();
  outer_ = log.innermost;
  phase_ = phase;
  phase_of_ops_ = phase_of_ops;
  run_ = Logs::instance().run.load(std::memory_order_relaxed);
  name_ = name;
  inside_ = {};
  log.innermost = this;
  log_ = &log;
  begin_ = Clock::now();
}

void Scope::open_op(std::string_view name) {
  const Scope* outer = Logs::of_this_thread().innermost;
  const Phase phase = outer == nullptr ? Phase::kForward : outer->phase_of_ops_;
  open(phase, name, phase);
}

void Scope::close() {
  const Clock::duration all = Clock::now() - begin_;
  log_->innermost = outer_;
  if (outer_ != nullptr) outer_->inside_ += all;
  const std::lock_guard lock(log_->mutex);
  // A profile was started or stopped while this scope was open, so the scope is not counted.
  if (run_ != Logs::instance().run.load(std::memory_order_relaxed)) return;
  auto& counts = log_->counts[static_cast<size_t>(phase_)];
  auto found = counts.find(name_);
  if (found == counts.end()) found = counts.try_emplace(std::string(name_)).first;
  ++found->second.calls;
  found->second.time += all - inside_;
  const Logs& logs = Logs::instance();
  if (!logs.traces.load(std::memory_order_relaxed)) return;
  const auto microseconds = [](Clock::duration time) { return 1e6 * in_seconds(time); };
  log_->events.push_back({.phase = phase_,
                          .name = std::string(name_),
                          .begin = microseconds(begin_ - logs.began),
                          .duration = microseconds(all)});
}

}  // namespace keel::profile

#include <keel/savedmodel/serving/models/batch_scheduler.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>

#include <keel/savedmodel/serving/base/run_limit.h>

namespace keel::serving {
namespace {

using BatchClock = std::chrono::steady_clock;

int64_t batch_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(BatchClock::now().time_since_epoch())
      .count();
}

JoinMemory& join_memory() {
  thread_local JoinMemory memory;
  return memory;
}

[[noreturn]] void fail_deadline() {
  throw ServeError(Code::kDeadlineExceeded, "the request timed out while it waited for a batch");
}

void count_batch(const ModelVersion& version, int64_t rows) {
  version.metrics().executions.add();
  version.model_metrics().batch_rows.observe(static_cast<double>(rows));
}

}  // namespace

enum class BatchScheduler::TaskState {
  kQueued,   // in its queue
  kLeading,  // still there, and its thread computes the next batch
  kTaken,    // in a batch that another thread computes
  kDone,     // `error` or the outputs are valid
  kExpired,  // its deadline has passed before it was computed
};

// A request. Lives on the stack of its thread, which leaves only when no other thread uses it.
struct BatchScheduler::Task {
  const ModelVersion& version;
  const ServedSignature& signature;
  std::span<const InputValues> inputs;
  RunOutputs& outputs;
  int64_t deadline_ns = 0;
  int64_t rows = 0;
  bool joins_others = false;
  TaskState state = TaskState::kDone;
  Queue* queue = nullptr;
  int64_t queued_ns = 0, begin_ns = 0, end_ns = 0;
  std::exception_ptr error = {};
  std::condition_variable* wake = nullptr;
};

// The waiting requests of a signature of a version.
struct BatchScheduler::Queue {
  const ModelVersion* version = nullptr;
  const ServedSignature* signature = nullptr;
  std::deque<Task*> tasks = {};
  int64_t rows = 0;
  bool has_leader = false;  // the first task was woken and has not yet taken its batch
};

BatchScheduler::BatchScheduler(const BatchingOptions& options, ServerMetrics& metrics)
    : options_(options), metrics_(metrics) {
  // Limits that are never reached, so that products of them do not overflow.
  constexpr int64_t kMost = int64_t{1} << 31;
  for (int64_t BatchingOptions::* limit :
       {&BatchingOptions::max_enqueued_batches, &BatchingOptions::max_execution_batch_size,
        &BatchingOptions::batch_timeout_micros}) {
    options_.*limit = std::min(options_.*limit, kMost);
  }
}

BatchScheduler::~BatchScheduler() = default;

int64_t BatchScheduler::most_threads(const BatchingOptions& options) {
  // Beyond that, joining more requests saves little, and threads cost memory.
  constexpr int64_t kMost = 64;
  const int64_t batches =
      std::min(kMost, options.num_batch_threads) + std::min(kMost, options.max_enqueued_batches);
  return std::min(kMost, 1 + batches * std::min(kMost, options.max_execution_batch_size));
}

BatchTimes BatchScheduler::run(const ModelVersion& version, const ServedSignature& signature,
                               std::span<const InputValues> inputs, int64_t deadline_ns,
                               RunOutputs& outputs) {
  thread_local std::condition_variable wake;
  thread_local std::vector<Task*> batch;
  Task task = {.version = version,
               .signature = signature,
               .inputs = inputs,
               .outputs = outputs,
               .deadline_ns = deadline_ns,
               .queued_ns = batch_clock_ns(),
               .wake = &wake};
  for (const InputValues& input : inputs) task.rows = std::max(task.rows, input.rows());
  task.joins_others =
      version.joins_requests() && task.rows > 0 &&
      std::ranges::all_of(inputs, [&](const InputValues& x) { return x.rows() == task.rows; });
  if (task.rows > options_.max_batch_size && !options_.enable_large_batch_splitting) {
    throw ServeError(Code::kInvalidArgument, "a request may have at most ", options_.max_batch_size,
                     " rows, the server's max_batch_size, received ", task.rows);
  }
  if (task.joins_others) version.check_output_size(task.rows);
  batch.clear();
  if (admit(task, batch)) {
    compute(batch);
    release(batch, task);
  }
  if (task.error) std::rethrow_exception(task.error);
  return {.waited_ns = task.begin_ns - task.queued_ns,
          .begin_ns = task.begin_ns,
          .end_ns = task.end_ns};
}

// ---- waiting; all but admit() and release() are called with the lock

// Waits until the task may be computed or has been computed. Returns true if this thread computes
// `batch`, which includes the task.
bool BatchScheduler::admit(Task& task, std::vector<Task*>& batch) {
  std::unique_lock lock(mutex_);
  const bool busy =
      running_ >= options_.num_batch_threads || (running_ > 0 && options_.batch_timeout_micros > 0);
  if (!busy && queues_.empty()) {
    ++running_;
    batch.push_back(&task);
    return true;
  }
  enqueue(task);
  dispatch();
  if (task.state == TaskState::kQueued) wait(lock, task);
  if (task.state == TaskState::kExpired) fail_deadline();
  if (task.state == TaskState::kDone) return false;
  if (batch_clock_ns() >= task.deadline_ns) {
    task.queue->has_leader = false;
    remove(task, TaskState::kExpired);
    --running_;
    dispatch();
    fail_deadline();
  }
  collect(task, batch);
  dispatch();  // of what did not fit in the batch
  return true;
}

void BatchScheduler::enqueue(Task& task) {
  const auto at = std::ranges::find_if(queues_, [&](const Queue& queue) {
    return queue.version == &task.version && queue.signature == &task.signature;
  });
  if (at != queues_.end() &&
      at->rows + weight(task) > options_.max_enqueued_batches * rows_per_batch()) {
    metrics_.rejected_queue.add();
    throw ServeError(Code::kUnavailable,
                     "The batch scheduling queue to which this task was submitted is full");
  }
  task.queue =
      at != queues_.end()
          ? &*at
          : &queues_.emplace_back(Queue{.version = &task.version, .signature = &task.signature});
  task.state = TaskState::kQueued;
  task.queue->tasks.push_back(&task);
  task.queue->rows += weight(task);
  task.version.model_metrics().queue_rows.fetch_add(task.rows, std::memory_order_relaxed);
}

// Takes a task out of its queue, which ends with its last task.
void BatchScheduler::remove(Task& task, TaskState state) {
  Queue& queue = *task.queue;
  task.state = state;
  queue.rows -= weight(task);
  std::erase(queue.tasks, &task);
  task.version.model_metrics().queue_rows.fetch_sub(task.rows, std::memory_order_relaxed);
  if (!queue.tasks.empty()) return;
  std::erase_if(queues_, [&](const Queue& other) { return &other == &queue; });
}

// The rows that a task takes of the capacity of its queue.
int64_t BatchScheduler::weight(const Task& task) const {
  return task.joins_others ? task.rows : rows_per_batch();
}

bool BatchScheduler::is_due(const Queue& queue, int64_t now) const {
  const int64_t age = now - queue.tasks.front()->queued_ns;
  return running_ == 0 || queue.rows >= rows_per_batch() ||
         age / 1000 >= options_.batch_timeout_micros;
}

// Wakes threads to compute, as many as may run.
void BatchScheduler::dispatch() {
  if (queues_.empty() || running_ >= options_.num_batch_threads) return;
  const int64_t now = batch_clock_ns();
  for (Queue& queue : queues_) {
    if (queue.has_leader || !is_due(queue, now)) continue;
    queue.has_leader = true;
    queue.tasks.front()->state = TaskState::kLeading;
    queue.tasks.front()->wake->notify_one();
    if (++running_ >= options_.num_batch_threads) return;
  }
}

void BatchScheduler::wait(std::unique_lock<std::mutex>& lock, Task& task) {
  const WaitingSection waiting;
  while (task.state == TaskState::kQueued) {
    const int64_t now = batch_clock_ns();
    if (now >= task.deadline_ns) return remove(task, TaskState::kExpired);
    const int64_t due_ns = task.queued_ns + options_.batch_timeout_micros * 1000;
    const int64_t until_ns = due_ns > now ? std::min(due_ns, task.deadline_ns) : task.deadline_ns;
    if (until_ns == INT64_MAX) {
      task.wake->wait(lock);
    } else {
      task.wake->wait_until(lock, BatchClock::time_point(std::chrono::nanoseconds(until_ns)));
    }
    if (task.state == TaskState::kQueued) dispatch();
  }
  task.wake->wait(lock, [&] { return task.state != TaskState::kTaken; });
}

// Takes the leader of a queue and as many of the tasks behind it as fit in a batch.
void BatchScheduler::collect(Task& leader, std::vector<Task*>& batch) {
  Queue& queue = *leader.queue;
  queue.has_leader = false;
  const int64_t now = batch_clock_ns();
  int64_t rows = 0;
  // The list keeps its elements in place, and `queue` exists as long as it has tasks.
  for (size_t left = queue.tasks.size(); left > 0; --left) {
    Task& task = *queue.tasks.front();
    if (&task != &leader && now >= task.deadline_ns) {
      task.wake->notify_one();
      remove(task, TaskState::kExpired);
      continue;
    }
    const bool fits = batch.empty() ||
                      (leader.joins_others && task.joins_others &&
                       rows + task.rows <= rows_per_batch() && joins(leader.inputs, task.inputs));
    if (!fits) break;
    rows += task.rows;
    batch.push_back(&task);
    remove(task, TaskState::kTaken);
  }
  // Other models and signatures come first now.
  const auto at =
      std::ranges::find_if(queues_, [&](const Queue& other) { return &other == &queue; });
  if (at != queues_.end()) queues_.splice(queues_.end(), queues_, at);
}

void BatchScheduler::release(std::span<Task* const> batch, const Task& leader) {
  const std::lock_guard lock(mutex_);
  --running_;
  dispatch();
  for (Task* const task : batch) {
    task->state = TaskState::kDone;
    // Under the lock, because the thread of the task may end as soon as it sees the state.
    if (task != &leader) task->wake->notify_one();
  }
}

// ---- computing, without the lock

void BatchScheduler::compute(std::span<Task* const> batch) const {
  const int64_t begin = batch_clock_ns();
  if (batch.size() > 1 && compute_joined(batch)) {
    const int64_t end = batch_clock_ns();
    for (Task* const task : batch) {
      task->begin_ns = begin;
      task->end_ns = end;
    }
    return;
  }
  for (Task* const task : batch) compute_alone(*task);
}

// Returns false if a task has an error, or if there is not enough memory.
bool BatchScheduler::compute_joined(std::span<Task* const> batch) const {
  const Task& first = *batch[0];
  JoinMemory& memory = join_memory();
  int64_t rows = 0;
  bool computed = false;
  try {
    memory.reset(first.signature);
    for (const Task* const task : batch) {
      rows += task->rows;
      for (size_t i = 0; i < task->inputs.size(); ++i) {
        append_rows(task->inputs[i].view(), 0, task->rows, memory.inputs[i]);
      }
    }
    run_joined(first, memory);
    int64_t at = 0;
    for (const Task* const task : batch) {
      allocate_rows(task->signature, task->rows, task->outputs);
      copy_rows(memory.outputs, at, task->rows, task->outputs, 0);
      at += task->rows;
    }
    count_batch(first.version, rows);
    computed = true;
  } catch (...) {
    // Each task is computed alone and has its own error.
  }
  memory.shrink();
  return computed;
}

void BatchScheduler::compute_alone(Task& task) const {
  task.begin_ns = batch_clock_ns();
  try {
    if (task.joins_others && task.rows > rows_per_batch()) {
      compute_pieces(task);
    } else {
      task.version.run(task.signature, task.inputs, task.outputs);
      count_batch(task.version, task.rows);
    }
  } catch (...) {
    task.error = std::current_exception();
  }
  task.end_ns = batch_clock_ns();
}

// Computes a request that is larger than a batch.
void BatchScheduler::compute_pieces(const Task& task) const {
  JoinMemory& memory = join_memory();
  allocate_rows(task.signature, task.rows, task.outputs);
  for (int64_t at = 0; at < task.rows; at += rows_per_batch()) {
    const int64_t rows = std::min(rows_per_batch(), task.rows - at);
    memory.reset(task.signature);
    for (size_t i = 0; i < task.inputs.size(); ++i) {
      append_rows(task.inputs[i].view(), at, at + rows, memory.inputs[i]);
    }
    run_joined(task, memory);
    copy_rows(memory.outputs, 0, rows, task.outputs, at);
    count_batch(task.version, rows);
  }
  memory.shrink();
}

// Runs the inputs of `memory`, which are for the signature of a task.
void BatchScheduler::run_joined(const Task& task, JoinMemory& memory) const {
  const std::span<InputValues> inputs(memory.inputs.data(), task.inputs.size());
  for (InputValues& input : inputs) input.finish();
  task.version.run(task.signature, inputs, memory.outputs);
}

}  // namespace keel::serving

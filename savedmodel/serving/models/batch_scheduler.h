// BatchScheduler: computes the rows of concurrent requests together.
//
// A request that finds a free thread of computation, and nobody waiting, is computed at once by the
// thread that read it. Otherwise it waits in the queue of its model version and signature. When a
// computation ends, the request that has waited longest is woken; its thread takes the rows of as
// many requests of its queue as a batch may have, computes them and wakes their threads. No thread
// exists for batching alone, and each answers its own client.
//
// Joined rows have the same bits as rows that are computed alone. If a joined computation fails,
// each of its requests is computed alone, so that a bad id fails one request only. Models with
// layers that mix rows are never joined or split.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include <keel/savedmodel/serving/base/metrics.h>
#include <keel/savedmodel/serving/models/batch_rows.h>
#include <keel/savedmodel/serving/models/model_version.h>
#include <keel/savedmodel/serving/models/server_config.h>

namespace keel::serving {

// When a request was computed, in nanoseconds of the steady clock.
struct BatchTimes {
  int64_t waited_ns = 0;  // in the queue
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// One for all models of a server. Thread safe.
class BatchScheduler {
 public:
  // The metrics must outlive the scheduler.
  BatchScheduler(const BatchingOptions& options, ServerMetrics& metrics);
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  // Runs a signature on finished values and waits for the outputs. Throws the errors of
  // ModelVersion::run(), and ServeError
  //   kUnavailable       if the queue is full;
  //   kDeadlineExceeded  if the request still waits at `deadline_ns` of the steady clock;
  //   kInvalidArgument   if it has more rows than a batch may have and may not be split.
  BatchTimes run(const ModelVersion& version, const ServedSignature& signature,
                 std::span<const InputValues> inputs, int64_t deadline_ns, RunOutputs& outputs);

  // Returns how many requests should be handled at once: those that can be computed or wait, and
  // one that is refused.
  static int64_t most_threads(const BatchingOptions& options);

 private:
  struct Task;
  struct Queue;
  enum class TaskState;

  int64_t rows_per_batch() const { return options_.max_execution_batch_size; }
  int64_t weight(const Task& task) const;
  bool admit(Task& task, std::vector<Task*>& batch);
  void enqueue(Task& task);
  void remove(Task& task, TaskState state);
  bool is_due(const Queue& queue, int64_t now) const;
  void dispatch();
  void wait(std::unique_lock<std::mutex>& lock, Task& task);
  void collect(Task& leader, std::vector<Task*>& batch);
  void release(std::span<Task* const> batch, const Task& leader);
  void compute(std::span<Task* const> batch) const;
  bool compute_joined(std::span<Task* const> batch) const;
  void compute_alone(Task& task) const;
  void compute_pieces(const Task& task) const;
  void run_joined(const Task& task, JoinMemory& memory) const;

  BatchingOptions options_;
  ServerMetrics& metrics_;
  std::mutex mutex_;         // guards what follows and the states of tasks
  std::list<Queue> queues_;  // those with tasks; the next one to compute is first
  int64_t running_ = 0;      // batches that are computed, or whose leader was woken
};

}  // namespace keel::serving

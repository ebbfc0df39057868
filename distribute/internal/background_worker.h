// BackgroundWorker runs the pieces of a job on its own thread, concurrently with its owner.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace keel::distribute {

// Runs one job at a time. One thread at a time, the owner, may call the members. The job is over
// when finish() or leave_out(0) has returned; it then releases what its pieces captured.
class BackgroundWorker {
 public:
  using Piece = std::function<void(size_t)>;

  BackgroundWorker() = default;
  ~BackgroundWorker();
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  // Starts piece(0), piece(1), ... piece(count - 1), taken in this order. There must be no other
  // job. The first job creates the thread. With one worker (num_workers()) there is no thread, and
  // all pieces are done before this returns.
  void start(size_t count, Piece piece);
  // Helps with the pieces until all are done. If a piece threw, rethrows its exception once; the
  // pieces after it are skipped.
  void finish();
  // Skips the pieces from `first` on that have not been taken. If the thread is running one of
  // them, waits for it.
  void leave_out(size_t first);

 private:
  void serve(const std::stop_token& stop);
  void run_next_piece(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // guards all members below
  std::condition_variable_any wake_;
  std::condition_variable done_;
  Piece piece_;
  size_t next_ = 0, end_ = 0;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t running_ = kNone;  // the piece that the thread runs
  std::exception_ptr error_;
  std::jthread thread_;  // last, because it uses all other members
};

}  // namespace keel::distribute

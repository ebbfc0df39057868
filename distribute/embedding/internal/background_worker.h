// BackgroundWorker: does the pieces of a job on a thread of its own, beside its owner.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace keel::distribute {

// One job at a time. Its members are called by one thread at a time, the owner. When finish() or
// leave_out(0) has returned the job is over, and what its pieces held is let go.
class BackgroundWorker {
 public:
  using Piece = std::function<void(size_t)>;

  BackgroundWorker() = default;
  ~BackgroundWorker();
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  // Begins piece(0), piece(1), ... piece(count - 1), each taken up after the one before it. There
  // must be no other job. The thread is made by the first job; with one worker (num_workers) there
  // is none, and all is done before this returns.
  void start(size_t count, Piece piece);
  // Takes up pieces, too, until all are done. Throws what a piece has thrown, once; the pieces
  // after it are left out.
  void finish();
  // Leaves out the pieces from `first` on that nobody has taken up, and waits for that of the
  // thread if it is one of them.
  void leave_out(size_t first);

 private:
  void serve(const std::stop_token& stop);
  void take_up(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // guards all below
  std::condition_variable_any wake_;
  std::condition_variable done_;
  Piece piece_;
  size_t next_ = 0, end_ = 0;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t running_ = kNone;  // of the thread
  std::exception_ptr error_;
  std::jthread thread_;  // last: it uses all the rest
};

}  // namespace keel::distribute

#include <keel/distribute/internal/background_worker.h>

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <utility>

#include <keel/framework/base/parallel.h>

namespace keel::distribute {

BackgroundWorker::~BackgroundWorker() { leave_out(0); }

void BackgroundWorker::start(size_t count, Piece piece) {
  const bool alone = num_workers() == 1;
  {
    std::unique_lock lock(mutex_);
    piece_ = std::move(piece);
    next_ = 0;
    end_ = count;
    error_ = nullptr;
    while (alone && next_ < end_) run_next_piece(lock);
  }
  if (alone) return;
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  wake_.notify_one();
}

// Runs the next piece, without the lock.
void BackgroundWorker::run_next_piece(std::unique_lock<std::mutex>& lock) {
  const size_t mine = next_++;
  lock.unlock();
  std::exception_ptr error;
  try {
    piece_(mine);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error == nullptr) return;
  if (error_ == nullptr) error_ = error;
  // Skip the remaining pieces.
  end_ = next_;
}

void BackgroundWorker::finish() {
  std::unique_lock lock(mutex_);
  while (next_ < end_) run_next_piece(lock);
  done_.wait(lock, [this] { return running_ == kNone; });
  piece_ = nullptr;
  if (const auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void BackgroundWorker::leave_out(size_t first) {
  std::unique_lock lock(mutex_);
  end_ = std::min(end_, std::max(first, next_));
  done_.wait(lock, [&] { return running_ == kNone || running_ < first; });
  if (first == 0) piece_ = nullptr;
}

void BackgroundWorker::serve(const std::stop_token& stop) {
  const SerialSection beside_others;
  // SCHED_BATCH keeps the thread from preempting its owner when it wakes up. If the call fails, the
  // thread is only slower.
  const sched_param no_priority = {};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &no_priority);
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return next_ < end_; })) {
    running_ = next_;
    run_next_piece(lock);
    running_ = kNone;
    done_.notify_all();
  }
}

}  // namespace keel::distribute

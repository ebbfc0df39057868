#include <keel/savedmodel/serving/base/run_limit.h>

namespace keel::serving {
namespace {

thread_local RunLimit* limit_of_thread = nullptr;

}  // namespace

void RunLimit::enter() {
  limit_of_thread = this;
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return closed_ || running_ < limit_; });
  ++running_;
}

void RunLimit::leave() {
  start_waiting();
  limit_of_thread = nullptr;
}

void RunLimit::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_all();
}

void RunLimit::start_waiting() {
  {
    const std::lock_guard lock(mutex_);
    if (--running_ >= limit_) return;
  }
  wake_.notify_one();
}

void RunLimit::stop_waiting() {
  const std::lock_guard lock(mutex_);
  ++running_;
}

void RunLimit::rest() {
  start_waiting();
  enter();
}

WaitingSection::WaitingSection() : limit_(limit_of_thread) {
  if (limit_ != nullptr) limit_->start_waiting();
}

WaitingSection::~WaitingSection() {
  if (limit_ != nullptr) limit_->stop_waiting();
}

}  // namespace keel::serving

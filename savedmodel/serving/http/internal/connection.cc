#include <keel/savedmodel/serving/http/internal/connection.h>

#include <algorithm>
#include <unistd.h>

namespace keel::serving {

void ConnectionList::add(Connection* connection) {
  const std::lock_guard lock(mutex_);
  connection->next = first_;
  if (first_ != nullptr) first_->previous = connection;
  first_ = connection;
  size_.fetch_add(1, std::memory_order_relaxed);
}

void ConnectionList::close(Connection* connection) {
  {
    const std::lock_guard lock(mutex_);
    if (connection->next != nullptr) connection->next->previous = connection->previous;
    (connection->previous == nullptr ? first_ : connection->previous->next) = connection->next;
    ::close(connection->fd);
    size_.fetch_sub(1, std::memory_order_relaxed);
  }
  delete connection;
}

void ConnectionList::close_all() {
  while (first_ != nullptr) close(first_);
}

bool ComputeSlots::try_enter() {
  const std::lock_guard lock(mutex_);
  if (free_ == 0) return false;
  --free_;
  return true;
}

bool ComputeSlots::enter(Connection* connection) {
  const std::lock_guard lock(mutex_);
  if (free_ > 0) {
    --free_;
    return true;
  }
  queue_.push_back(connection);
  return false;
}

Connection* ComputeSlots::leave() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) {
    ++free_;
    return nullptr;
  }
  Connection* const next = queue_.front();
  queue_.pop_front();
  return next;
}

Connection* ComputeSlots::take_expired(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  // All have the same time-out, so the first one expires first.
  if (queue_.empty() || queue_.front()->deadline.at_ns() > now_ns) return nullptr;
  Connection* const expired = queue_.front();
  queue_.pop_front();
  return expired;
}

}  // namespace keel::serving

// A connection of HttpServer, and the list of all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include <keel/savedmodel/serving/http/request_parser.h>

namespace keel::serving {

// What a connection waits for, which decides what its deadline means.
enum class Phase : uint8_t {
  kIdle,       // the first byte of a request
  kHeaders,    // the rest of the headers
  kBody,       // the rest of the body
  kQueued,     // a slot for computing
  kComputing,  // its response
  kWriting,    // the client to read
  kLingering,  // the client to close
};

// A connection belongs to one thread at a time: the one that got its event from epoll or took it
// from the queue. The atomic members are shared with tick().
struct Connection {
  Connection(int socket, const HttpLimits& limits) : fd(socket), parser(limits) {}

  const int fd;
  // Orders the writes of a thread that arms epoll before the reads of the thread that gets the
  // event.
  std::atomic<bool> handed_over = false;
  std::atomic<Phase> phase = Phase::kIdle;
  RequestDeadline deadline;                  // of the phase
  std::atomic<int64_t> progress = 0;         // bytes read or written in this phase
  std::atomic<bool> expired = false;         // the deadline has passed
  std::atomic<int64_t> progress_before = 0;  // at the last check
  bool over_limit = false;                   // accepted beyond max_connections
  bool close_after_write = false, linger = false;
  RequestParser parser;
  std::string in;        // bytes of the request that are not complete
  int64_t buffered = 0;  // bytes of requests, as counted by the driver
  std::string out;       // bytes of the response that are not written
  size_t out_at = 0;
  int64_t ready_ns = 0;                // when the request was complete
  std::shared_ptr<const void> pinned;  // what the request depends on
  Connection* previous = nullptr;
  Connection* next = nullptr;
};

// All open connections. A connection is closed under the lock, so that its descriptor is valid
// while another thread holds it.
class ConnectionList {
 public:
  void add(Connection* connection);
  // Removes and closes the connection, and frees it.
  void close(Connection* connection);
  // Calls fn for each connection under the lock.
  template <class Fn>
  void for_each(Fn&& fn) {
    const std::lock_guard lock(mutex_);
    for (Connection* at = first_; at != nullptr; at = at->next) fn(*at);
  }
  void close_all();
  int64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  Connection* first_ = nullptr;
  std::atomic<int64_t> size_ = 0;
};

// Limits how many connections compute at once, and queues the others in order.
class ComputeSlots {
 public:
  explicit ComputeSlots(int count) : free_(count) {}

  // Takes a slot if one is free and nobody waits for it.
  bool try_enter();
  // Takes a slot, or queues the connection and returns false.
  bool enter(Connection* connection);
  // Gives the slot to the next connection of the queue and returns it, or frees the slot and
  // returns null.
  Connection* leave();
  // Removes and returns a connection whose deadline has passed, or null.
  Connection* take_expired(int64_t now_ns);

 private:
  std::mutex mutex_;
  int free_;
  std::deque<Connection*> queue_;
};

}  // namespace keel::serving

#include <keel/savedmodel/serving/http/internal/connection_driver.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/http/internal/response_head.h>

namespace keel::serving {
namespace {

constexpr size_t kReadBytes = 65536;
// Connections beyond the limit from which a request is read, because it may be a health check.
constexpr int64_t kReserve = 64;
constexpr int64_t kNanos = 1000000000;
constexpr int64_t kLingerNanos = 2 * kNanos;
constexpr int64_t kLeastBytesPerSecond = 1024;
constexpr int kRequestTimeout = 408, kTooManyRequests = 429;
constexpr int kUnavailable = 503, kGatewayTimeout = 504;
constexpr const char* kTooManyConnections = "too many connections";
constexpr const char* kTooManyBytes =
    "the server holds too many bytes of unfinished requests; try again later";

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool would_block(int error) { return error == EAGAIN || error == EINTR; }

void send_now(int fd, std::string_view bytes) {
  ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

ConnectionDriver::Scratch::Scratch() : input(kReadBytes) {}

ConnectionDriver::ConnectionDriver(const HttpServerOptions& options, HttpHandler& handler,
                                   ServerMetrics& metrics, int epoll)
    : options_(options),
      handler_(handler),
      metrics_(metrics),
      epoll_(epoll),
      slots_(options.threads) {}

int64_t ConnectionDriver::read_timeout_ns() const {
  return static_cast<int64_t>(options_.read_timeout_seconds * kNanos);
}

int64_t ConnectionDriver::idle_deadline() const {
  return now_ns() + static_cast<int64_t>(options_.idle_timeout_seconds * kNanos);
}

// ---- beginning and end

bool ConnectionDriver::full() const {
  return connections_.size() >= options_.max_connections + kReserve;
}

void ConnectionDriver::refuse(int fd) {
  std::string head;
  HttpResponse response;
  set_error_response(response, kUnavailable, kTooManyConnections, true);
  write_head(response, {.close_after = true, .cors = options_.cors}, head);
  send_now(fd, head + response.body);
  shutdown(fd, SHUT_RDWR);
  ::close(fd);
  metrics_.rejected_connections.add();
}

void ConnectionDriver::add(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto* const c = new Connection(fd, options_.limits);
  c->over_limit = connections_.size() >= options_.max_connections;
  connections_.add(c);
  metrics_.connections = connections_.size();
  set_phase(c, Phase::kIdle, idle_deadline());
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.ptr = c}};
  c->handed_over.store(true, std::memory_order_release);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) close(c);
}

void ConnectionDriver::close(Connection* c) {
  buffered_.fetch_sub(c->buffered, std::memory_order_relaxed);
  connections_.close(c);
  metrics_.connections = connections_.size();
}

void ConnectionDriver::set_phase(Connection* c, Phase phase, int64_t deadline) const {
  c->progress.store(0, std::memory_order_relaxed);
  c->progress_before.store(0, std::memory_order_relaxed);
  // A request begins when it is queued; the thread of time-outs may answer it from then on.
  if (phase == Phase::kQueued) {
    c->deadline.begin(deadline);
  } else {
    c->deadline.set(deadline);
  }
  c->phase.store(phase, std::memory_order_release);
}

void ConnectionDriver::arm(Connection* c, uint32_t events) const {
  epoll_event event = {.events = events | EPOLLONESHOT, .data = {.ptr = c}};
  const int fd = c->fd;
  c->handed_over.store(true, std::memory_order_release);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd,
            &event);  // from here on another thread may own the connection
}

// Waits for more bytes; `bytes` are those of the next request that are there.
void ConnectionDriver::arm_reading(Connection* c, std::string_view bytes) {
  if (bytes.empty()) {
    if (draining_) return close(c);
    keep(c, {});  // an idle connection holds no memory
    set_phase(c, Phase::kIdle, idle_deadline());
  } else {
    keep(c, bytes);
  }
  arm(c, EPOLLIN);
}

// ---- reading

void ConnectionDriver::drive(Connection* connection, Scratch& scratch) {
  connection->handed_over.exchange(false, std::memory_order_acquire);
  Work work = {{connection, false}};
  while (!work.empty()) {
    const auto [next, slot] = work.back();
    work.pop_back();
    try {
      step(next, slot, scratch, work);
    } catch (const std::bad_alloc&) {
      // step() throws only while it reads, without a slot.
      log_error("out of memory while reading a request; the connection is closed");
      close(next);
    }
  }
}

// Reads what a client still sends after its last response, until it closes.
void ConnectionDriver::drain_input(Connection* c, Scratch& scratch) {
  ssize_t size = 1;
  while (size > 0) size = recv(c->fd, scratch.input.data(), scratch.input.size(), 0);
  if (size < 0 && errno == EAGAIN) return arm(c, EPOLLIN);
  close(c);
}

void ConnectionDriver::begin_reading(Connection* c, bool body, std::string_view bytes) {
  const Phase now = body ? Phase::kBody : Phase::kHeaders;
  if (c->phase.load(std::memory_order_relaxed) != now) {
    set_phase(c, now, now_ns() + read_timeout_ns());
    if (body) c->pinned = handler_.pin(c->parser.request(bytes));
  }
  if (c->parser.take_expectation()) send_now(c->fd, "HTTP/1.1 100 Continue\r\n\r\n");
}

// Continues with a connection until it has to wait.
void ConnectionDriver::step(Connection* c, bool has_slot, Scratch& scratch, Work& work) {
  const Phase phase = c->phase.load(std::memory_order_relaxed);
  if (phase == Phase::kLingering) return drain_input(c, scratch);
  if (phase == Phase::kWriting && !flush(c)) return;
  std::string_view bytes = c->in;
  if (has_slot && !answer(c, bytes, true, scratch, work)) return;
  bool may_read = phase != Phase::kQueued;
  while (true) {
    if (bytes.empty()) {
      if (!may_read) return arm_reading(c, bytes);
    } else {
      const RequestParser::State state = c->parser.parse(bytes);
      if (state == RequestParser::State::kFailed) {
        if (c->parser.error_status() == 413) metrics_.rejected_body.add();
        count_refused(c, bytes, c->parser.error_status());
        c->linger = true;
        return fail_and_close(c, c->parser.error_status(), c->parser.error_text(), scratch);
      }
      if (state == RequestParser::State::kComplete) {
        c->ready_ns = now_ns();
        if (!answer(c, bytes, false, scratch, work)) return;
        may_read = !bytes.empty();
        continue;
      }
      begin_reading(c, state == RequestParser::State::kBody, bytes);
    }
    if (!read_more(c, bytes, scratch)) return;
    may_read = true;
  }
}

// Appends what the client has sent to `bytes`, which may move. Returns false if the connection has
// to wait or was closed.
bool ConnectionDriver::read_more(Connection* c, std::string_view& bytes, Scratch& scratch) {
  keep(c, bytes);
  if (!c->in.empty()) c->parser.drop_read_chunks(c->in);
  count_buffered(c);
  if (exceeds_memory(c)) {
    metrics_.rejected_memory.add();
    count_refused(c, c->in, kUnavailable);
    c->linger = true;
    fail_and_close(c, kUnavailable, kTooManyBytes, scratch);
    return false;
  }
  const ssize_t size = recv(c->fd, scratch.input.data(), scratch.input.size(), 0);
  if (size > 0) {
    c->progress.fetch_add(size, std::memory_order_relaxed);
    const std::string_view read(scratch.input.data(), static_cast<size_t>(size));
    if (c->in.empty()) {
      bytes = read;
    } else {
      c->in.append(read);
      bytes = c->in;
    }
    return true;
  }
  if (size < 0 && would_block(errno)) {
    arm_reading(c, c->in);
    return false;
  }
  if (size == 0 && c->expired && !c->in.empty()) {
    metrics_.rejected_read_timeout.add();
    count_refused(c, c->in, kRequestTimeout);
    fail_and_close(c, kRequestTimeout, "the request was not complete in time", scratch);
    return false;
  }
  close(c);
  return false;
}

// Reports a request that is not passed to the handler, unless nothing of it is known.
void ConnectionDriver::count_refused(Connection* c, std::string_view bytes, int status) {
  if (!c->parser.has_request_line()) return;
  HttpRequest request = c->parser.request(bytes);
  request.read_ns = now_ns();
  request.pinned = std::move(c->pinned);
  c->pinned.reset();
  handler_.refused(request, status);
}

// Stores the bytes of a connection that another thread, or a later call, continues with.
void ConnectionDriver::keep(Connection* c, std::string_view bytes) {
  const char* const begin = c->in.data();
  const bool inside = bytes.data() >= begin && bytes.data() < begin + c->in.size();
  const bool is_small = bytes.size() < c->in.capacity() / 4;
  if (!bytes.empty() && inside && !is_small) {
    c->in.erase(0, c->in.size() - bytes.size());
  } else {
    std::string(bytes).swap(c->in);  // an assignment would keep the memory
  }
  count_buffered(c);
}

// Updates what a connection holds of requests. Call it before another thread may own it.
void ConnectionDriver::count_buffered(Connection* c) {
  const auto held = static_cast<int64_t>(c->in.size() + c->parser.held_bytes());
  buffered_.fetch_add(held - c->buffered, std::memory_order_relaxed);
  c->buffered = held;
}

// A request that is the only one goes on: its size is limited by itself.
bool ConnectionDriver::exceeds_memory(const Connection* c) const {
  const int64_t all = buffered_.load(std::memory_order_relaxed);
  return c->buffered > 0 && all > options_.buffered_bytes && all > c->buffered;
}

// ---- answering

// Counts a request that computes and takes a slot for it, or queues it. Returns false if it does
// not compute now; `goes_on` then tells whether this thread continues with the connection.
bool ConnectionDriver::admit(Connection* c, HttpRequest& request, std::string_view& bytes,
                             Scratch& scratch, bool& goes_on) {
  HttpResponse& response = scratch.response;
  if (c->over_limit) {
    metrics_.rejected_connections.add();
    handler_.refused(request, kUnavailable);
    set_error_response(response, kUnavailable, kTooManyConnections, true);
    goes_on = respond(c, request, bytes, scratch);
    return false;
  }
  if (metrics_.pending.fetch_add(1, std::memory_order_relaxed) >= options_.max_pending) {
    metrics_.pending.fetch_sub(1, std::memory_order_relaxed);
    metrics_.rejected_pending.add();
    handler_.refused(request, kTooManyRequests);
    set_error_response(response, kTooManyRequests, "too many requests are pending", false);
    response.headers = "Retry-After: 1\r\n";
    goes_on = respond(c, request, bytes, scratch);
    return false;
  }
  const int64_t timeout = options_.timeout_ms * 1000000;
  set_phase(c, Phase::kQueued, timeout > 0 ? c->ready_ns + timeout : INT64_MAX);
  if (slots_.try_enter()) return true;
  if (c->pinned == nullptr) c->pinned = handler_.pin(request);
  try {
    keep(c, bytes);  // the queue outlives the memory of this thread
  } catch (const std::bad_alloc&) {
    metrics_.pending.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
  goes_on = false;
  if (!slots_.enter(c)) return false;
  bytes = c->in;
  request = c->parser.request(bytes);
  request.read_ns = c->ready_ns;
  return true;
}

// Answers the complete request at the start of `bytes` and removes it from them. Returns false if
// this thread is done with the connection.
bool ConnectionDriver::answer(Connection* c, std::string_view& bytes, bool has_slot,
                              Scratch& scratch, Work& work) {
  HttpRequest request = c->parser.request(bytes);
  request.read_ns = c->ready_ns;
  const bool computes = has_slot || handler_.computes(request);
  bool goes_on = false;
  if (computes && !has_slot && !admit(c, request, bytes, scratch, goes_on)) return goes_on;
  request.pinned = std::move(c->pinned);
  c->pinned.reset();
  if (computes) {
    request.deadline = &c->deadline;
    compute(c, request, scratch);
    return finish_computing(c, request, bytes, scratch, work);
  }
  HttpResponse& response = scratch.response;
  response.clear();
  handler_.handle(request, response);
  response.close = response.close || c->over_limit;
  return respond(c, request, bytes, scratch);
}

void ConnectionDriver::compute(Connection* c, const HttpRequest& request, Scratch& scratch) {
  c->phase.store(Phase::kComputing, std::memory_order_release);
  HttpResponse& response = scratch.response;
  response.clear();
  if (now_ns() <= c->deadline.at_ns()) return handler_.handle(request, response);
  // tick() may have seen the same, and then counts the time-out.
  if (c->deadline.claim()) metrics_.rejected_timeout.add();
  handler_.refused(request, kGatewayTimeout);
  set_error_response(response, kGatewayTimeout, "the request timed out while it was queued", false);
}

// Sends the response of a request that has computed, and passes its slot on.
bool ConnectionDriver::finish_computing(Connection* c, const HttpRequest& request,
                                        std::string_view& bytes, Scratch& scratch, Work& work) {
  metrics_.pending.fetch_sub(1, std::memory_order_relaxed);
  const bool answers = c->deadline.claim();
  const bool open = answers && respond(c, request, bytes, scratch);
  if (!answers) close(c);  // expire() has sent the response
  Connection* const next = slots_.leave();
  if (next == nullptr) return open;
  // The next connection holds the slot, so this one continues after it.
  if (open && bytes.empty()) {
    arm_reading(c, {});
  } else if (open) {
    keep(c, bytes);
    work.push_back({c, false});
  }
  work.push_back({next, true});
  return false;
}

// ---- writing

void ConnectionDriver::fail_and_close(Connection* c, int status, std::string_view text,
                                      Scratch& scratch) {
  set_error_response(scratch.response, status, text, true);
  write_head(scratch.response, {.close_after = true, .cors = options_.cors}, scratch.head);
  c->close_after_write = true;
  send(c, scratch.head, scratch.response.body, {});
}

// Sends the response to the request at the start of `bytes` and removes the request from them.
// Returns false if the connection has to wait or was closed.
bool ConnectionDriver::respond(Connection* c, const HttpRequest& request, std::string_view& bytes,
                               Scratch& scratch) {
  HttpResponse& response = scratch.response;
  const bool head_only = request.method == HttpMethod::kHead;
  c->close_after_write = response.close || !request.keep_alive || draining_;
  write_head(response,
             {.minor_version = request.minor_version,
              .close_after = c->close_after_write,
              .cors = options_.cors},
             scratch.head);
  bytes.remove_prefix(c->parser.consumed());
  c->parser.reset();
  c->linger = !bytes.empty();
  const bool sent = send(c, scratch.head, head_only ? "" : std::string_view(response.body), bytes);
  constexpr size_t kMostKept = 1 << 20;
  if (response.body.capacity() > kMostKept) std::string().swap(response.body);
  return sent;
}

// Sends a response. `rest` are the bytes of further requests, which are stored if the connection
// has to wait.
bool ConnectionDriver::send(Connection* c, std::string_view head, std::string_view body,
                            std::string_view rest) {
  iovec parts[2] = {{.iov_base = const_cast<char*>(head.data()), .iov_len = head.size()},
                    {.iov_base = const_cast<char*>(body.data()), .iov_len = body.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = body.empty() ? 1 : 2;
  const ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(head.size() + body.size())) return finish(c);
  if (sent < 0 && !would_block(errno)) {
    close(c);
    return false;
  }
  try {
    const size_t done = sent < 0 ? 0 : static_cast<size_t>(sent);
    keep(c, rest);
    c->out = std::string(head.substr(std::min(done, head.size())));
    c->out += body.substr(done > head.size() ? done - head.size() : 0);
    c->out_at = 0;
  } catch (const std::bad_alloc&) {
    close(c);
    return false;
  }
  set_phase(c, Phase::kWriting, now_ns() + read_timeout_ns());
  return flush(c);
}

// Writes what is left of a response. Returns false if the connection has to wait or was closed.
bool ConnectionDriver::flush(Connection* c) {
  while (c->out_at < c->out.size()) {
    const ssize_t size = ::send(c->fd, c->out.data() + c->out_at, c->out.size() - c->out_at,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0) {
      if (would_block(errno)) {
        arm(c, EPOLLOUT);
      } else {
        close(c);
      }
      return false;
    }
    c->out_at += static_cast<size_t>(size);
    c->progress.fetch_add(size, std::memory_order_relaxed);
  }
  std::string().swap(c->out);
  return finish(c);
}

// Closes a connection after its last response. Returns true if it goes on.
bool ConnectionDriver::finish(Connection* c) {
  if (!c->close_after_write) return true;
  if (c->linger) {
    linger(c);
  } else {
    close(c);
  }
  return false;
}

// Closing with unread bytes would reset the connection and lose the response.
void ConnectionDriver::linger(Connection* c) {
  shutdown(c->fd, SHUT_WR);
  c->parser.reset();
  keep(c, {});
  set_phase(c, Phase::kLingering, now_ns() + kLingerNanos);
  arm(c, EPOLLIN);
}

// ---- time-outs

std::string ConnectionDriver::timed_out_response() const {
  HttpResponse response;
  std::string head;
  set_error_response(response, kGatewayTimeout, "the request timed out", true);
  write_head(response, {.close_after = true, .cors = options_.cors}, head);
  return head + response.body;
}

// A body or a response must go on at the least rate.
void ConnectionDriver::check_progress(Connection& c, Phase phase, int64_t now) const {
  const int64_t progress = c.progress.load(std::memory_order_relaxed);
  const int64_t before = c.progress_before.exchange(progress, std::memory_order_relaxed);
  const auto least = static_cast<int64_t>(kLeastBytesPerSecond * options_.read_timeout_seconds);
  if (progress - before >= least) {
    c.deadline.set(now + read_timeout_ns());
    return;
  }
  c.expired = true;
  if (phase == Phase::kBody) {
    shutdown(c.fd, SHUT_RD);
    return;
  }
  // close() resets the connection, or the system would keep the rest of a response that nobody
  // reads.
  const struct linger none = {.l_onoff = 1, .l_linger = 0};
  setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  shutdown(c.fd, SHUT_RDWR);
}

// Ends what a connection waits for if its deadline has passed. The list of connections is locked.
void ConnectionDriver::check(Connection& c, int64_t now) {
  const Phase phase = c.phase.load(std::memory_order_acquire);
  if (draining_ && phase == Phase::kIdle) shutdown(c.fd, SHUT_RD);
  if (c.deadline.at_ns() > now) return;
  switch (phase) {
    case Phase::kBody:
    case Phase::kWriting:
      return check_progress(c, phase, now);
    case Phase::kIdle:
    case Phase::kHeaders:
      c.expired = true;
      shutdown(c.fd, SHUT_RD);
      return;
    case Phase::kLingering:
      shutdown(c.fd, SHUT_RDWR);
      return;
    case Phase::kComputing:
      if (c.deadline.expire()) {
        metrics_.rejected_timeout.add();
        send_now(c.fd, timed_out_response());
        shutdown(c.fd, SHUT_WR);
      }
      return;
    case Phase::kQueued:
      return;
  }
}

void ConnectionDriver::expire_queued(int64_t now) {
  while (Connection* const c = slots_.take_expired(now)) {
    metrics_.pending.fetch_sub(1, std::memory_order_relaxed);
    metrics_.rejected_timeout.add();
    count_refused(c, c->in, kGatewayTimeout);
    c->close_after_write = c->linger = true;
    send(c, timed_out_response(), {}, {});
  }
}

void ConnectionDriver::expire() {
  const int64_t now = now_ns();
  connections_.for_each([&](Connection& c) { check(c, now); });
  expire_queued(now);
}

}  // namespace keel::serving

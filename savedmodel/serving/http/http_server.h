// HttpServer: accepts connections and answers HTTP/1.x requests.
//
// All threads wait on one epoll instance, whose events are delivered to one thread each (leader and
// followers). The thread that reads a request also computes and answers it, so a request crosses no
// thread boundary. At most `threads` requests compute at once. There is one thread more than that,
// so that always one can read: it queues further requests, refuses those beyond the limits, and
// answers requests that need no computation, such as health checks, at once. The thread that called
// tick() enforces the time-outs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <keel/savedmodel/serving/base/metrics.h>
#include <keel/savedmodel/serving/http/http_message.h>
#include <keel/savedmodel/serving/http/request_parser.h>

namespace keel::serving {

// Answers requests. Called by several threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // True if answering the request computes predictions. Such requests are limited in number.
  virtual bool computes(const HttpRequest& request) const = 0;
  // Returns what the request depends on, such as the version of a model, while its body is still
  // being read or while it waits. Must not throw.
  virtual std::shared_ptr<const void> pin(const HttpRequest& request) const = 0;
  // Fills in the response. Must not throw.
  virtual void handle(const HttpRequest& request, HttpResponse& response) = 0;
  // Called for a request that the server itself has answered with an error, for metrics. The body
  // may be incomplete. Must not throw.
  virtual void refused(const HttpRequest& request, int status) = 0;
};

// Options of HttpServer.
struct HttpServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;     // 0: a free port
  int threads = 1;  // requests handled at once
  // Threads that run at once, at least 2. Others start when a handler waits for other requests.
  // 0: all threads.
  int running_threads = 0;
  HttpLimits limits = {};
  int64_t timeout_ms = 30000;  // from the last byte of a request to its answer; 0: none
  bool cors = false;           // add the headers that let browsers call from other origins
  int max_connections = 10000;
  int max_pending = 1024;  // requests read but not yet answered
  // Memory of the requests of all connections that are read or queued. A request that needs more
  // than is left is refused, unless it is the only one.
  int64_t buffered_bytes = int64_t{1} << 30;
  double idle_timeout_seconds = 75;
  double read_timeout_seconds = 10;
};

// A server on one address.
class HttpServer {
 public:
  // Binds the address and listens. Throws IoError that names address and port. Handler and metrics
  // must outlive the server.
  HttpServer(const HttpServerOptions& options, HttpHandler& handler, ServerMetrics& metrics);
  // Closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port that is listened on.
  int port() const;
  // Starts the threads.
  void start();
  // Ends connections and requests that have exceeded a time-out. Call it several times a second.
  void tick();
  // Stops listening and closes idle connections; others close after their next response.
  void stop_accepting();
  // Returns the number of open connections.
  int64_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace keel::serving

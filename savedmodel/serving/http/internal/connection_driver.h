// ConnectionDriver: reads the requests of connections, has them answered, and writes the responses.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <keel/savedmodel/serving/http/http_server.h>
#include <keel/savedmodel/serving/http/internal/connection.h>

namespace keel::serving {

// Drives each connection through its phases. A connection is driven by one thread at a time: the
// one-shot events of epoll see to that. Thread safe.
class ConnectionDriver {
 public:
  // Memory of a thread, reused by all requests that it handles.
  struct Scratch {
    Scratch();
    std::vector<char> input;
    HttpResponse response;
    std::string head;
  };

  // Connections are added to this epoll instance with their address as data.
  ConnectionDriver(const HttpServerOptions& options, HttpHandler& handler, ServerMetrics& metrics,
                   int epoll);
  // Closes all connections. No thread may drive one any more.
  ~ConnectionDriver() { connections_.close_all(); }
  ConnectionDriver(const ConnectionDriver&) = delete;
  ConnectionDriver& operator=(const ConnectionDriver&) = delete;

  // Takes over an accepted socket. Beyond the limit of connections it is served health checks only.
  void add(int fd);
  // Answers 503 on a socket that is not taken over, and closes it.
  void refuse(int fd);
  // Returns true if there are so many connections that further ones have to be refused.
  bool full() const;
  // Continues with a connection that has an event, until it has to wait again.
  void drive(Connection* connection, Scratch& scratch);
  // Ends what has waited for longer than its time-out.
  void expire();
  // From now on connections close when they are idle.
  void begin_drain() { draining_ = true; }
  // Returns the number of open connections.
  int64_t connections() const { return connections_.size(); }

 private:
  // Connections that a thread continues with after the present one, and whether they hold a slot.
  using Work = std::vector<std::pair<Connection*, bool>>;

  void arm(Connection* c, uint32_t events) const;
  void arm_reading(Connection* c, std::string_view bytes);
  void close(Connection* c);
  void drain_input(Connection* c, Scratch& scratch);
  void step(Connection* c, bool has_slot, Scratch& scratch, Work& work);
  bool read_more(Connection* c, std::string_view& bytes, Scratch& scratch);
  void begin_reading(Connection* c, bool body, std::string_view bytes);
  bool admit(Connection* c, HttpRequest& request, std::string_view& bytes, Scratch& scratch,
             bool& goes_on);
  bool answer(Connection* c, std::string_view& bytes, bool has_slot, Scratch& scratch, Work& work);
  bool finish_computing(Connection* c, const HttpRequest& request, std::string_view& bytes,
                        Scratch& scratch, Work& work);
  void compute(Connection* c, const HttpRequest& request, Scratch& scratch);
  void fail_and_close(Connection* c, int status, std::string_view text, Scratch& scratch);
  bool respond(Connection* c, const HttpRequest& request, std::string_view& bytes,
               Scratch& scratch);
  void count_refused(Connection* c, std::string_view bytes, int status);
  void keep(Connection* c, std::string_view bytes);
  void count_buffered(Connection* c);
  bool exceeds_memory(const Connection* c) const;
  bool send(Connection* c, std::string_view head, std::string_view body, std::string_view rest);
  bool flush(Connection* c);
  bool finish(Connection* c);
  void linger(Connection* c);
  void set_phase(Connection* c, Phase phase, int64_t deadline) const;
  int64_t idle_deadline() const;
  int64_t read_timeout_ns() const;
  void check(Connection& c, int64_t now);
  void check_progress(Connection& c, Phase phase, int64_t now) const;
  void expire_queued(int64_t now);
  std::string timed_out_response() const;

  const HttpServerOptions& options_;
  HttpHandler& handler_;
  ServerMetrics& metrics_;
  const int epoll_;
  std::atomic<bool> draining_ = false;
  std::atomic<int64_t> buffered_ = 0;  // bytes of requests of all connections
  ConnectionList connections_;
  ComputeSlots slots_;
};

}  // namespace keel::serving

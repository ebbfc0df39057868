// Tests savedmodel/serving/http/http_server.cc and savedmodel/serving/http/internal/ in the
// process.
#include <keel/savedmodel/serving/http/http_server.h>

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <mutex>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

namespace keel::serving::http_server_test {

using namespace std::chrono_literals;

// Answers with the body of the request; POST computes.
class Echo : public HttpHandler {
 public:
  bool computes(const HttpRequest& request) const override {
    return request.method == HttpMethod::kPost;
  }
  std::shared_ptr<const void> pin(const HttpRequest&) const override { return nullptr; }
  void handle(const HttpRequest& request, HttpResponse& response) override {
    if (request.path == "/slow") std::this_thread::sleep_for(300ms);
    response.body = request.body;
    if (claims && request.deadline != nullptr && !request.deadline->claim()) ++unclaimed;
    ++handled;
  }
  void refused(const HttpRequest& request, int status) override {
    const std::lock_guard lock(mutex_);
    refusals_.push_back(std::string(request.path) + " " + std::to_string(status));
  }
  std::vector<std::string> refusals() {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }
  std::atomic<int> handled = 0;
  std::atomic<bool> claims = false;  // as the router does before it counts a request
  std::atomic<int> unclaimed = 0;    // requests whose time-out was sent before

 private:
  std::mutex mutex_;
  std::vector<std::string> refusals_;
};

// A server whose tick() runs in a thread, as serve() calls it.
class Running {
 public:
  explicit Running(HttpServerOptions options = {}) : server(options, handler, metrics) {
    server.start();
    ticker_ = std::thread([this] {
      while (!done_) {
        server.tick();
        std::this_thread::sleep_for(5ms);
      }
    });
  }
  ~Running() {
    done_ = true;
    ticker_.join();
  }

  Echo handler;
  ServerMetrics metrics;
  HttpServer server;

 private:
  std::atomic<bool> done_ = false;
  std::thread ticker_;
};

class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval limit = {.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) const { ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Reads until `count` responses with bodies of `size` bytes are there, or the server closes.
  std::string read(size_t count, size_t size) {
    std::string out;
    size_t found = 0;
    while (found < count) {
      char buffer[4096];
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      out.append(buffer, static_cast<size_t>(got));
      found = 0;
      for (size_t at = out.find("\r\n\r\n"); at != std::string::npos && out.size() >= at + 4 + size;
           at = out.find("\r\n\r\n", at + 4 + size)) {
        ++found;
      }
    }
    return out;
  }
  bool closed() const {
    char byte = 0;
    return recv(fd_, &byte, 1, 0) == 0;
  }
  bool connected = false;

 private:
  const int fd_;
};

std::string post(const std::string& path, const std::string& body) {
  return str("POST ", path, " HTTP/1.1\r\nHost: h\r\nContent-Length: ", body.size(), "\r\n\r\n",
             body);
}

// S-070: many clients with pipelined requests get their own answers in order.
TEST(HttpServerTest, AnswersPipelinedRequestsOfManyClients) {
  constexpr int kClients = 8, kRounds = 20, kPipelined = 5;
  Running running({.threads = 2});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      Client client(running.server.port());
      for (int round = 0; round < kRounds; ++round) {
        std::string requests;
        std::vector<std::string> bodies;
        for (int k = 0; k < kPipelined; ++k) {
          bodies.push_back(str("body ", i % 10, round % 10, k));
          requests += post("/echo", bodies.back());
        }
        client.send(requests);
        const std::string out = client.read(kPipelined, bodies[0].size());
        size_t at = 0;
        for (const std::string& body : bodies) {
          at = out.find("\r\n\r\n" + body, at);
          if (at == std::string::npos) ++wrong;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(running.handler.handled, kClients * kRounds * kPipelined);
  EXPECT_EQ(running.metrics.pending, 0);
}

// S-163: both a request that computes and one that waits for it get 504 in time.
TEST(HttpServerTest, TimesOutComputingAndQueuedRequests) {
  Running running({.threads = 1, .timeout_ms = 100});
  Client computing(running.server.port()), queued(running.server.port());
  computing.send(post("/slow", "a"));
  std::this_thread::sleep_for(30ms);
  queued.send(post("/slow", "b"));
  EXPECT_NE(computing.read(1, 1).find(" 504 "), std::string::npos);
  EXPECT_NE(queued.read(1, 1).find(" 504 "), std::string::npos);
  EXPECT_EQ(running.metrics.rejected_timeout.value(), 2);
}

// S-165: further requests are refused at once, and others are still answered.
TEST(HttpServerTest, RefusesRequestsBeyondTheLimit) {
  Running running({.threads = 1, .max_pending = 1});
  Client computing(running.server.port()), refused(running.server.port());
  computing.send(post("/slow", "a"));
  while (running.metrics.pending == 0) std::this_thread::yield();
  refused.send(post("/echo", "b"));
  const std::string answer = refused.read(1, 1);
  EXPECT_NE(answer.find(" 429 "), std::string::npos);
  EXPECT_NE(answer.find("Retry-After: 1"), std::string::npos);
  refused.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(refused.read(1, 0).find(" 200 "), std::string::npos);
  EXPECT_NE(computing.read(1, 1).find(" 200 "), std::string::npos);
}

// S-011: a request that has begun is answered and its connection closes; idle ones close.
TEST(HttpServerTest, DrainsConnections) {
  Running running({.threads = 1});
  Client begun(running.server.port()), idle(running.server.port());
  begun.send(post("/slow", "abc"));
  while (running.metrics.pending == 0) std::this_thread::yield();
  running.server.stop_accepting();
  const std::string answer = begun.read(1, 3);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("abc"));
  EXPECT_TRUE(begun.closed());
  EXPECT_TRUE(idle.closed());
  for (int i = 0; i < 1000 && running.server.connections() > 0; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(running.server.connections(), 0);
  EXPECT_FALSE(Client(running.server.port()).connected);
}

// S-164: a client that stops in the middle is told and closed.
TEST(HttpServerTest, ClosesSlowClients) {
  Running running({.threads = 1, .idle_timeout_seconds = 0.2, .read_timeout_seconds = 0.2});
  Client headers(running.server.port()), body(running.server.port()), idle(running.server.port());
  headers.send("GET / HTTP/1.1\r\nHo");
  body.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_NE(headers.read(1, 1).find(" 408 "), std::string::npos);
  EXPECT_NE(body.read(1, 1).find(" 408 "), std::string::npos);
  EXPECT_TRUE(idle.closed());
  EXPECT_EQ(running.metrics.rejected_read_timeout.value(), 2);
}

// S-151: the handler is told of requests that the server itself refuses, and a request whose
// time-out was sent while it computed knows that it was not answered.
TEST(HttpServerTest, ReportsRequestsThatItRefuses) {
  Running running({.threads = 1,
                   .limits = {.body_bytes = 100},
                   .timeout_ms = 100,
                   .max_pending = 2,
                   .read_timeout_seconds = 0.3});
  running.handler.claims = true;
  Client computing(running.server.port()), queued(running.server.port());
  Client refused(running.server.port()), large(running.server.port()), slow(running.server.port());
  computing.send(post("/slow", "a"));
  while (running.metrics.pending == 0) std::this_thread::yield();
  queued.send(post("/queued", "b"));
  while (running.metrics.pending == 1) std::this_thread::yield();
  refused.send(post("/refused", "c"));
  large.send("POST /large HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n");
  slow.send("POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_NE(refused.read(1, 1).find(" 429 "), std::string::npos);
  EXPECT_NE(large.read(1, 1).find(" 413 "), std::string::npos);
  EXPECT_NE(queued.read(1, 1).find(" 504 "), std::string::npos);
  EXPECT_NE(computing.read(1, 1).find(" 504 "), std::string::npos);
  EXPECT_NE(slow.read(1, 1).find(" 408 "), std::string::npos);
  while (running.handler.handled == 0) std::this_thread::yield();
  EXPECT_EQ(running.handler.unclaimed, 1);
  EXPECT_THAT(
      running.handler.refusals(),
      testing::UnorderedElementsAre("/refused 429", "/large 413", "/queued 504", "/body 408"));
}

// S-005.
TEST(HttpServerTest, ReportsAPortInUse) {
  Running running;
  Echo handler;
  ServerMetrics metrics;
  try {
    HttpServer second({.port = running.server.port()}, handler, metrics);
    FAIL() << "two servers on one port";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find(str("127.0.0.1:", running.server.port())),
              std::string::npos);
  }
}

}  // namespace keel::serving::http_server_test

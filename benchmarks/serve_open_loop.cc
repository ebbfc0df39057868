// serve_open_loop PORT PATH FILE RATE SECONDS: sends POST requests to a server of HTTP at
// 127.0.0.1 at a fixed rate, whether or not earlier ones were answered, so that a stall of the
// server delays all requests that fall into it. Each line of FILE is a body; they are sent in turn.
// A latency counts from the time at which its request was due. Prints a line of JSON with latencies
// in microseconds. Uses one processor all the time, because a sleeping client wakes up late.
#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A connection with at most one request at a time.
class Connection {
 public:
  explicit Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool idle() const { return idle_; }
  Clock::time_point due() const { return due_; }

  void begin(const std::string& request, Clock::time_point due) {
    size_t sent = 0;
    while (sent < request.size()) {
      const ssize_t size = send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (size > 0) sent += static_cast<size_t>(size);
      if (size < 0 && errno != EAGAIN) fail("send");
    }
    due_ = due;
    idle_ = false;
    answer_.clear();
  }
  // Reads what is there. Returns the status when the answer is complete, otherwise 0.
  int poll() {
    char bytes[16384];
    const ssize_t size = recv(fd_, bytes, sizeof bytes, 0);
    if (size == 0) fail("the server has closed a connection");
    if (size < 0) {
      if (errno != EAGAIN) fail("recv");
      return 0;
    }
    answer_.append(bytes, static_cast<size_t>(size));
    const size_t head = answer_.find("\r\n\r\n"), length = answer_.find("Content-Length: ");
    if (head == std::string::npos || length > head) return 0;
    constexpr size_t kName = 16, kStatusAt = 9, kBlank = 4;
    const auto body = std::strtoul(answer_.c_str() + length + kName, nullptr, 10);
    if (answer_.size() < head + kBlank + body) return 0;
    idle_ = true;
    return std::atoi(answer_.c_str() + kStatusAt);
  }

 private:
  const int fd_;
  bool idle_ = true;
  Clock::time_point due_;
  std::string answer_;
};

std::vector<std::string> read_requests(const std::string& path, const char* file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string body; std::getline(in, body);) {
    out.push_back("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: serve_open_loop PORT PATH FILE RATE SECONDS\n");
    return 2;
  }
  const std::vector<std::string> requests = read_requests(argv[2], argv[3]);
  if (requests.empty()) fail("no requests");
  const double rate = std::atof(argv[4]);
  const auto count = static_cast<size_t>(rate * std::atof(argv[5]));
  constexpr int kConnections = 32;
  std::deque<Connection> connections;
  for (int i = 0; i < kConnections; ++i) connections.emplace_back(std::atoi(argv[1]));
  std::vector<double> micros;
  size_t begun = 0, failures = 0;
  const auto start = Clock::now();
  const auto due = [&](size_t i) {
    return start + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(static_cast<double>(i) / rate));
  };
  while (micros.size() < count) {
    for (Connection& connection : connections) {
      if (!connection.idle()) {
        const int status = connection.poll();
        if (status == 0) continue;
        constexpr int kOk = 200;
        failures += status == kOk ? 0 : 1;
        micros.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - connection.due()).count());
      }
      if (begun < count && Clock::now() >= due(begun)) {
        connection.begin(requests[begun % requests.size()], due(begun));
        ++begun;
      }
    }
  }
  std::ranges::sort(micros);
  const auto at = [&](double part) {
    return micros[static_cast<size_t>(part * static_cast<double>(micros.size() - 1))];
  };
  std::printf(
      "{\"p50\": %.1f, \"p99\": %.1f, \"p99.9\": %.1f, \"most\": %.1f, \"requests\": %zu, "
      "\"failures\": %zu}\n",
      at(0.5), at(0.99), at(0.999), micros.back(), micros.size(), failures);
  return 0;
}

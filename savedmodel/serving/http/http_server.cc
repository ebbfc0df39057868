#include <keel/savedmodel/serving/http/http_server.h>

#include <atomic>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/base/run_limit.h>
#include <keel/savedmodel/serving/http/internal/connection_driver.h>
#include <keel/savedmodel/serving/http/internal/listener.h>

namespace keel::serving {
namespace {

// A descriptor that is closed at the end of its life.
class Descriptor {
 public:
  Descriptor(int fd, const char* what) : fd_(fd) {
    if (fd < 0) throw IoError("cannot create ", what, ": ", std::generic_category().message(errno));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

struct HttpServer::State {
  State(const HttpServerOptions& given, HttpHandler& handler, ServerMetrics& metrics)
      : options(given),
        listener(options.address, options.port),
        driver(options, handler, metrics, epoll.get()),
        run_limit(given.running_threads > 0 ? given.running_threads : given.threads + 1) {
    // The event stays ready, so it wakes one thread after the other.
    epoll_event event = {.events = EPOLLIN, .data = {.ptr = &stop}};
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, stop.get(), &event);
    listener.watch(epoll.get());
  }

  void run();
  void accept_connections();

  const HttpServerOptions options;
  Descriptor epoll{epoll_create1(EPOLL_CLOEXEC), "an epoll instance"};
  Descriptor stop{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd"};
  Listener listener;
  ConnectionDriver driver;
  std::atomic<bool> stopping = false;
  RunLimit run_limit;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler& handler,
                       ServerMetrics& metrics)
    : state_(std::make_unique<State>(options, handler, metrics)) {}

HttpServer::~HttpServer() {
  State& s = *state_;
  s.stopping = true;
  const uint64_t one = 1;
  if (write(s.stop.get(), &one, sizeof one) < 0) log_error("cannot wake the threads of the server");
  s.run_limit.close();
  for (std::thread& thread : s.threads) thread.join();
}

int HttpServer::port() const { return state_->listener.port(); }
int64_t HttpServer::connections() const { return state_->driver.connections(); }

void HttpServer::start() {
  State& s = *state_;
  for (int i = 0; i <= s.options.threads; ++i) {
    s.threads.emplace_back([&s] { s.run(); });
  }
}

void HttpServer::State::run() {
  ConnectionDriver::Scratch scratch;
  run_limit.enter();
  while (!stopping) {
    run_limit.rest_if_crowded();
    epoll_event event = {};
    const int count = epoll_wait(epoll.get(), &event, 1, -1);
    if (count <= 0) continue;
    if (event.data.ptr == &stop) return;
    if (event.data.ptr == &listener) {
      accept_connections();
    } else {
      driver.drive(static_cast<Connection*>(event.data.ptr), scratch);
    }
  }
}

void HttpServer::State::accept_connections() {
  const auto refuse = [this](int fd) { driver.refuse(fd); };
  const auto take = [this](int fd) { driver.full() ? driver.refuse(fd) : driver.add(fd); };
  listener.accept_all(take, refuse);
}

void HttpServer::tick() {
  state_->driver.expire();
  state_->listener.resume();
}

void HttpServer::stop_accepting() {
  state_->driver.begin_drain();
  state_->listener.close();
  tick();
}

}  // namespace keel::serving

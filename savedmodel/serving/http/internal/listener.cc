#include <keel/savedmodel/serving/http/internal/listener.h>

#include <absl/strings/str_cat.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/serving/base/log.h>

namespace keel::serving {
namespace {

std::string socket_error(int error) { return std::strerror(error); }

int listen_on(const std::string& address, int port) {
  const std::string place = absl::StrCat("cannot listen on ", address, ":", port, ": ");
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) throw IoError(place, gai_strerror(status));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) throw IoError(place, socket_error(errno));
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  constexpr int kBacklog = 4096;
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
    const int error = errno;
    ::close(fd);
    throw IoError(place, socket_error(error));
  }
  return fd;
}

int port_of(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int accept_one(int listener) {
  return accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int open_spare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Listener::Listener(const std::string& address, int port)
    : fd_(listen_on(address, port)), spare_(open_spare()), port_(port_of(fd_)) {}

Listener::~Listener() {
  close();
  if (spare_ >= 0) ::close(spare_);
}

void Listener::watch(int epoll) {
  const std::lock_guard lock(mutex_);
  epoll_ = epoll;
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.ptr = this}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event);
}

void Listener::rearm() const {
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT,
                       .data = {.ptr = const_cast<Listener*>(this)}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_, &event);
}

// Without descriptors the socket would stay ready, and the threads would spin on it.
void Listener::pause(FunctionRef<void(int)> refuse) {
  paused_ = true;
  if (spare_ < 0) return;
  ::close(spare_);
  const int fd = accept_one(fd_);
  if (fd >= 0) refuse(fd);
  spare_ = open_spare();
}

void Listener::accept_all(FunctionRef<void(int)> take, FunctionRef<void(int)> refuse) {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  constexpr int kMost = 64;  // then another thread may go on with it
  for (int i = 0; i < kMost; ++i) {
    const int fd = accept_one(fd_);
    if (fd >= 0) {
      take(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_warning("cannot accept connections: ", socket_error(errno));
      return pause(refuse);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  rearm();
}

void Listener::resume() {
  const std::lock_guard lock(mutex_);
  if (!paused_ || fd_ < 0) return;
  paused_ = false;
  rearm();
}

void Listener::close() {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace keel::serving

// Listener: the socket that connections are accepted from.
#pragma once

#include <mutex>
#include <string>

#include <keel/framework/base/function_ref.h>

namespace keel::serving {

// A listening socket in an epoll instance, whose one-shot event has the address of the listener as
// data. Thread safe.
class Listener {
 public:
  // Binds the address and listens. Throws IoError that names address and port.
  Listener(const std::string& address, int port);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Returns the port that is listened on.
  int port() const { return port_; }
  // Adds the socket to an epoll instance, which must outlive the listener.
  void watch(int epoll);
  // Calls `take` for each connection that waits and watches again. If the process has no
  // descriptor left, one connection goes to `refuse` and the others wait for resume().
  void accept_all(FunctionRef<void(int)> take, FunctionRef<void(int)> refuse);
  // Watches again after descriptors have run out.
  void resume();
  // Closes the socket.
  void close();

 private:
  void rearm() const;
  void pause(FunctionRef<void(int)> refuse);

  std::mutex mutex_;  // guards the following, but for port_
  int fd_ = -1;
  int spare_ = -1;  // freed to accept and refuse a connection when no other descriptor is left
  int epoll_ = -1;
  bool paused_ = false;
  int port_ = 0;
};

}  // namespace keel::serving

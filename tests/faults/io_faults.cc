// Loaded with LD_PRELOAD: makes one call that changes files fail, or lose or change its bytes.
//   IO_FAULT_FOLDER  only files in this folder count
//   IO_FAULT_AT      number of the call that is affected, from 1; 0 affects none
//   IO_FAULT_LAST    number of the last call that is affected; IO_FAULT_AT by default
//   IO_FAULT_KIND    "lost" and "changed" writes report success; "killed" ends the process before
//                    the call; otherwise the errno to fail with
//   IO_FAULT_LOG     file that receives a line for each call that counts
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/uio.h>
#include <unistd.h>

namespace {

template <class Fn>
Fn real(const char* name, Fn) {
  return reinterpret_cast<Fn>(dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  return n < 0 ? "" : std::string(path, static_cast<size_t>(n));
}

void log(const char* call, int number, const std::string& path, bool affected) {
  static const int file = ::open(variable("IO_FAULT_LOG").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string line =
      std::to_string(number) + " " + call + " " + path + (affected ? " affected" : "") + "\n";
  static const auto write = real("write", &::write);
  [[maybe_unused]] const ssize_t ignored = write(file, line.data(), line.size());
}

constexpr int kLost = -1, kChanged = -2, kKilled = -3;

int kind() {
  static const std::string text = variable("IO_FAULT_KIND");
  if (text == "lost") return kLost;
  if (text == "changed") return kChanged;
  if (text == "killed") return kKilled;
  return std::atoi(text.c_str());
}

// Returns true if this call is one of those to affect.
bool is_affected(const char* call, const std::string& path) {
  static const std::string folder = variable("IO_FAULT_FOLDER");
  static const int first = std::atoi(variable("IO_FAULT_AT").c_str());
  static const int last = std::max(first, std::atoi(variable("IO_FAULT_LAST").c_str()));
  static std::atomic<int> calls = 0;
  if (folder.empty() || path.rfind(folder, 0) != 0) return false;
  const int number = ++calls;
  const bool affected = first <= number && number <= last;
  log(call, number, path, affected);
  if (affected && kind() == kKilled) ::kill(::getpid(), SIGKILL);
  return affected;
}

// The faulty form of write(bytes, size), where `do_write` is the real one.
template <class Write>
ssize_t faulty_write(const void* bytes, size_t size, Write do_write) {
  if (kind() == kLost) return static_cast<ssize_t>(size);
  if (kind() == kChanged && size > 0) {
    std::string changed(static_cast<const char*>(bytes), size);
    changed[size / 2] = static_cast<char>(changed[size / 2] ^ 16);
    return do_write(changed.data(), size);
  }
  errno = kind();
  return -1;
}

// A failing call that writes no bytes. Those that lose writes do not affect it.
bool fails(const char* call, const std::string& path) {
  if (!is_affected(call, path) || kind() < 0) return false;
  errno = kind();
  return true;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = real("write", &::write);
  if (!is_affected("write", path_of(fd))) return next(fd, bytes, size);
  return faulty_write(bytes, size,
                      [&](const void* from, size_t count) { return next(fd, from, count); });
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static const auto next = real("pwrite", &::pwrite);
  if (!is_affected("pwrite", path_of(fd))) return next(fd, bytes, size, offset);
  return faulty_write(
      bytes, size, [&](const void* from, size_t count) { return next(fd, from, count, offset); });
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return pwrite(fd, bytes, size, offset);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = real("writev", &::writev);
  if (!is_affected("writev", path_of(fd))) return next(fd, parts, count);
  std::string all;
  for (int i = 0; i < count; ++i) {
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  static const auto plain = real("write", &::write);
  return faulty_write(all.data(), all.size(),
                      [&](const void* from, size_t size) { return plain(fd, from, size); });
}

int fsync(int fd) {
  static const auto next = real("fsync", &::fsync);
  return fails("fsync", path_of(fd)) ? -1 : next(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto next = real("ftruncate", &::ftruncate);
  return fails("ftruncate", path_of(fd)) ? -1 : next(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept { return ftruncate(fd, size); }

int rename(const char* from, const char* to) noexcept {
  static const auto next = real("rename", &::rename);
  char folder[PATH_MAX] = {};
  const std::string path =
      from[0] == '/' ? from : std::string(::getcwd(folder, PATH_MAX)) + "/" + from;
  return fails("rename", path) ? -1 : next(from, to);
}

}  // extern "C"

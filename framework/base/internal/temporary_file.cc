#include <keel/framework/base/internal/temporary_file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/file_path_internal.h>
#include <keel/framework/base/function_ref.h>

namespace keel {

using internal::folder_of;
using internal::system_message;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInfix = ".tmp-";
constexpr size_t kHostDigits = 8, kTokenDigits = 16;
constexpr time_t kOtherHostSeconds = 24 * 60 * 60;

std::string hex(uint64_t value, size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out(digits, '0');
  for (size_t i = digits; i-- > 0; value >>= 4) out[i] = kDigits[value & 15];
  return out;
}

// Returns the host part of temporary names. Files of other hosts must be recognizable, because
// their locks may be invisible here.
std::string host_tag() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: stable across builds, unlike std::hash
  for (const char* c = name.data(); *c != 0; ++c) {
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3;
  }
  return hex(hash ^ hash >> 32, kHostDigits);
}

// Returns a random token, so that no two processes ever use the same name.
std::string new_token() {
  std::random_device device;
  return hex(uint64_t{device()} << 32 | device(), kTokenDigits);
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

struct ParsedName {
  std::string target;
  bool this_host = false;
};

std::optional<ParsedName> parse_name(const std::string& name) {
  constexpr size_t kTail = kInfix.size() + kHostDigits + 1 + kTokenDigits;
  if (name.size() <= kTail) return std::nullopt;
  const std::string_view tail = std::string_view(name).substr(name.size() - kTail);
  const std::string_view host = tail.substr(kInfix.size(), kHostDigits);
  const bool fits = tail.starts_with(kInfix) && is_hex(host) &&
                    tail[kInfix.size() + kHostDigits] == '-' &&
                    is_hex(tail.substr(tail.size() - kTokenDigits));
  if (!fits) return std::nullopt;
  return ParsedName{.target = name.substr(0, name.size() - kTail), .this_host = host == host_tag()};
}

void for_each_temporary(const std::string& folder,
                        FunctionRef<void(const std::string&, const ParsedName&)> use) {
  for (const std::string& name : file_names(folder)) {
    const auto parsed = parse_name(name);
    if (parsed) use(folder + "/" + name, *parsed);
  }
}

// Calls `use` while holding the file's lock. Returns false if a running process may hold the file.
bool with_stale_file(const std::string& path, bool this_host, FunctionRef<void()> use) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT;
  struct stat status = {};
  bool stale =
      ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (!this_host) stale = stale && status.st_mtime + kOtherHostSeconds < ::time(nullptr);
  if (stale) use();
  ::close(fd);
  return stale;
}

}  // namespace

TemporaryFile::TemporaryFile(std::string target, unsigned mode) : target_(std::move(target)) {
  remove_stale_temporaries(target_);
  while (fd_ < 0) {
    path_ = str(target_, kInfix, host_tag(), "-", new_token());
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0) throw IoError(target_, ": cannot be created: ", system_message());
    // The lock is shared, because HDF5 takes a shared lock on a file that it reads.
    while (::flock(fd_, LOCK_SH) != 0 && errno == EINTR) {
    }
    // Another process may have removed the file as stale before it was locked; then create a new
    // one.
    struct stat status = {};
    if (::fstat(fd_, &status) == 0 && status.st_nlink == 0) close();
  }
}

TemporaryFile::~TemporaryFile() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());
  close();
}

void TemporaryFile::close() { ::close(std::exchange(fd_, -1)); }

void TemporaryFile::write(int64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(target_, ": cannot be written: ", system_message());
    bytes.remove_prefix(n);
    offset += n;
  }
}

size_t TemporaryFile::read(int64_t offset, char* to, size_t count) const {
  size_t done = 0;
  while (done < count) {
    const ssize_t n = ::pread(fd_, to + done, count - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(target_, ": cannot be read back: ", system_message());
    if (n == 0) break;
    done += n;
  }
  return done;
}

int64_t TemporaryFile::size() const {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0)
    throw IoError(target_, ": cannot be inspected: ", system_message());
  return status.st_size;
}

void TemporaryFile::resize(int64_t size) const {
  while (::ftruncate(fd_, size) != 0) {
    if (errno != EINTR) throw IoError(target_, ": cannot be written: ", system_message());
  }
}

// Only a hint, so errors are ignored; sync() reports them.
void TemporaryFile::start_sync() const {
  [[maybe_unused]] const int ignored = ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void TemporaryFile::sync() const {
  if (::fsync(fd_) != 0) throw IoError(target_, ": cannot be synced: ", system_message());
}

void TemporaryFile::rename_to_target() {
  if (::rename(path_.c_str(), target_.c_str()) != 0) {
    throw IoError(target_, ": cannot be renamed from its temporary file: ", system_message());
  }
  close();
}

std::vector<std::string> file_names(const std::string& folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (listing == nullptr) return out;
  while (const dirent* const entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  return out;
}

void remove_stale_temporaries(const std::string& target) {
  const std::string name = fs::path(target).filename().string();
  for_each_temporary(folder_of(target), [&](const std::string& path, const ParsedName& parsed) {
    if (parsed.target != name) return;
    with_stale_file(path, parsed.this_host, [&] { ::unlink(path.c_str()); });
  });
}

std::vector<TemporaryTarget> temporary_targets(const std::string& folder) {
  std::map<std::string, bool> found;
  for_each_temporary(folder, [&](const std::string& path, const ParsedName& parsed) {
    const bool stale = with_stale_file(path, parsed.this_host, [] {});
    bool& in_use = found[parsed.target];
    in_use = in_use || !stale;
  });
  std::vector<TemporaryTarget> out;
  for (const auto& [target, in_use] : found) out.push_back({.target = target, .in_use = in_use});
  return out;
}

}  // namespace keel

#include <keel/framework/base/internal/atomic_file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/file_path_internal.h>
#include <keel/framework/base/internal/checksum.h>

namespace keel {

using internal::folder_of;
using internal::system_message;

namespace {

// An open file that the destructor closes. All member functions throw IoError if a system call
// fails.
class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags) : FileDescriptor(path, flags, path) {}
  // Error messages use `name` instead of `path`.
  FileDescriptor(const std::string& path, int flags, std::string name)
      : path_(std::move(name)), fd_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ < 0) throw IoError(path, ": cannot be opened: ", system_message());
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw IoError(path_, ": cannot be written: ", system_message());
      bytes.remove_prefix(n);
    }
  }
  // Returns the number of bytes read, which is less than `count` only at the end of the file.
  size_t read(char* to, size_t count) const {
    size_t done = 0;
    while (done < count) {
      const ssize_t n = ::read(fd_, to + done, count - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw IoError(path_, ": cannot be read: ", system_message());
      if (n == 0) break;
      done += n;
    }
    return done;
  }
  int64_t size() const {
    struct stat status = {};
    if (::fstat(fd_, &status) != 0)
      throw IoError(path_, ": cannot be inspected: ", system_message());
    if (!S_ISREG(status.st_mode)) {
      throw IoError(path_, ": is not a regular file; pass the path of a file");
    }
    return status.st_size;
  }
  void seek(int64_t offset) const {
    if (::lseek(fd_, offset, SEEK_SET) < 0)
      throw IoError(path_, ": cannot be read: ", system_message());
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) {
      throw IoError(path_, ": cannot be written: ", system_message());
    }
  }
  void sync() const {
    if (::fsync(fd_) != 0) throw IoError(path_, ": cannot be synced: ", system_message());
  }

 private:
  const std::string path_;
  int fd_;
};

void sync_folder(const std::string& path) {
  FileDescriptor(folder_of(path), O_RDONLY | O_DIRECTORY, path).sync();
}

constexpr std::string_view kMagic = "KeelSeal";

struct Seal {
  std::array<char, 8> magic;
  uint64_t length;  // number of bytes before the seal
  uint64_t sum;
};

Seal compute_seal(const std::string& path, const FileDescriptor& file, int64_t length) {
  constexpr int64_t kBlock = 1 << 20;  // a multiple of the checksum's 32 bytes
  Checksum checksum;
  std::vector<char> block(std::min(kBlock, length));
  for (int64_t at = 0; at < length; at += kBlock) {
    const auto count = static_cast<size_t>(std::min(kBlock, length - at));
    if (file.read(block.data(), count) != count)
      throw IoError(path, ": became shorter while it was read; another process may be writing it");
    checksum.add(block.data(), count);
  }
  Seal seal = {.magic = {},
               .length = static_cast<uint64_t>(length),
               .sum = checksum.sum(static_cast<uint64_t>(length))};
  std::ranges::copy(kMagic, seal.magic.begin());
  return seal;
}

// Throws IoError unless the file ends in a seal with the right magic and length. Does not verify
// the checksum.
Seal read_seal(const std::string& path, const FileDescriptor& file) {
  const int64_t length = file.size() - static_cast<int64_t>(sizeof(Seal));
  Seal found = {};
  if (length >= 0) {
    file.seek(length);
    file.read(reinterpret_cast<char*>(&found), sizeof(found));
  }
  if (!std::ranges::equal(found.magic, kMagic) || found.length != static_cast<uint64_t>(length)) {
    throw IoError(path,
                  ": truncated or not written by this library (no valid checksum at its end); "
                  "restore the file from a copy");
  }
  return found;
}

void check_no_folder(const std::string& path) {
  std::error_code error;  // opening the file will report it
  if (std::filesystem::is_directory(path, error))
    throw IoError(path, ": is a folder; pass the path of a file");
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : file_((check_no_folder(path), std::move(path))) {}

AtomicFile::~AtomicFile() = default;

void AtomicFile::commit() {
  // fsync() reports write errors only to descriptors opened before the writes, so the original
  // descriptor is synced too. The second open syncs the file that the name refers to now: another
  // writer may have replaced it.
  file_.sync();
  FileDescriptor(file_.path(), O_RDWR, path()).sync();
  file_.rename_to_target();
  sync_folder(path());
}

void write_file_atomically(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.file().write(0, text);
  std::string back(text.size() + 1, '\0');
  back.resize(file.file().read(0, back.data(), back.size()));
  if (back != text)
    throw IoError(
        path,
        ": the bytes read back differ from those written; check the disk and write the file again");
  file.commit();
}

bool path_exists(const std::string& path) {
  std::error_code error;
  const bool out = std::filesystem::exists(path, error);
  if (error) throw IoError(path, ": cannot be examined: ", error.message());
  return out;
}

void create_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    throw IoError(path, ": the folder cannot be created: ",
                  error ? error.message() : "there is a file of this name");
  }
}

void write_text_file(const std::string& path, const std::string& text) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool special = std::filesystem::exists(status) &&
                       !std::filesystem::is_regular_file(status) &&
                       !std::filesystem::is_directory(status);
  if (!special) {
    // Keeps a symbolic link and replaces the file that it points to.
    const bool link = std::filesystem::is_symlink(path, error);
    const std::string file = link ? std::filesystem::canonical(path, error).string() : path;
    return write_file_atomically(error || file.empty() ? path : file, text);
  }
  FileDescriptor file(path, O_WRONLY);
  file.write(text);
  file.close();
}

std::string read_text_file(const std::string& path, int64_t limit) {
  const FileDescriptor file(path, O_RDONLY);
  const int64_t size = file.size();
  if (size > limit) {
    throw IoError(path, ": ", size, " bytes exceed the limit of ", limit,
                  "; the file is damaged or not of this kind");
  }
  std::string text(size, '\0');
  text.resize(file.read(text.data(), text.size()));
  return text;
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0) {
    sync_folder(path);
  } else if (errno != ENOENT) {
    throw IoError(path, ": cannot be removed: ", system_message());
  }
}

void seal_file(const std::string& path) {
  const FileDescriptor file(path, O_RDWR);
  const int64_t length = file.size();
  const Seal seal = compute_seal(path, file, length);
  file.seek(length);
  file.write({reinterpret_cast<const char*>(&seal), sizeof(seal)});
  const Seal found = read_seal(path, file);
  if (found.sum != seal.sum)
    throw IoError(
        path, ": its checksum was not written correctly; check the disk and write the file again");
}

void check_seal(const std::string& path) {
  const FileDescriptor file(path, O_RDONLY);
  const Seal found = read_seal(path, file);
  file.seek(0);
  if (compute_seal(path, file, static_cast<int64_t>(found.length)).sum != found.sum) {
    throw IoError(
        path,
        ": damaged: the checksum of its contents does not match; restore the file from a copy");
  }
}

std::string sealed_checksum(const std::string& path) {
  const Seal seal = read_seal(path, FileDescriptor(path, O_RDONLY));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(seal.sum >> shift) & 15];
  return out;
}

}  // namespace keel

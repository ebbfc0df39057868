#include "framework/atomic_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "framework/errors.h"

namespace keel {
namespace {

std::string system_message() { return std::strerror(errno); }

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ < 0) throw IoError(path, ": cannot be opened: ", system_message());
  }
  ~FileDescriptor() { ::close(fd_); }
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
  // Fewer than asked for only at the end of the file.
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
    if (::fstat(fd_, &status) != 0) throw IoError(path_, ": ", system_message());
    if (!S_ISREG(status.st_mode)) throw IoError(path_, ": is not a regular file");
    return status.st_size;
  }
  void seek(int64_t offset) const {
    if (::lseek(fd_, offset, SEEK_SET) < 0) throw IoError(path_, ": ", system_message());
  }
  void sync() const {
    if (::fsync(fd_) != 0) throw IoError(path_, ": cannot be synced: ", system_message());
  }

 private:
  const std::string path_;
  const int fd_;
};

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void sync_folder(const std::string& path) {
  FileDescriptor(folder_of(path), O_RDONLY | O_DIRECTORY).sync();
}

// A new empty file beside `path`. What an ended process left behind keeps its name.
std::string make_temporary(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw IoError(path, ": is a folder");
  for (int i = 0;; ++i) {
    std::string name = str(path, ".tmp-", ::getpid(), "-", i);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      ::close(fd);
      return name;
    }
    if (errno != EEXIST) throw IoError(path, ": cannot be created: ", system_message());
  }
}

constexpr std::string_view kMagic = "KeelSeal";

struct Seal {
  std::array<char, 8> magic;
  uint64_t length;  // of the bytes before the seal
  uint64_t sum;
};

// Four chains of x -> (x ^ word) * odd, one for each word of 32 bytes in turn: each step is
// one-to-one, so a difference in one word cannot get lost.
class Checksum {
 public:
  void add(const char* bytes, size_t count) {
    for (size_t i = 0; i < count; i += 32) {
      std::array<uint64_t, 4> words = {};
      std::memcpy(words.data(), bytes + i, std::min<size_t>(32, count - i));
      for (int k = 0; k < 4; ++k) {
        chains_[k] = (chains_[k] ^ words[k]) * kOdd;
        chains_[k] ^= chains_[k] >> 29;
      }
    }
  }
  uint64_t sum(uint64_t length) const {
    uint64_t out = length * kOdd;
    for (uint64_t chain : chains_) {
      out = (out ^ chain) * kOdd;
      out ^= out >> 32;
    }
    return out;
  }

 private:
  static constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  std::array<uint64_t, 4> chains_ = {1, 2, 3, 4};
};

Seal compute_seal(const std::string& path, const FileDescriptor& file, int64_t length) {
  constexpr int64_t kBlock = 1 << 20;  // a multiple of the checksum's 32 bytes
  Checksum checksum;
  std::vector<char> block(std::min(kBlock, length));
  for (int64_t at = 0; at < length; at += kBlock) {
    const auto count = static_cast<size_t>(std::min(kBlock, length - at));
    if (file.read(block.data(), count) != count) throw IoError(path, ": ends while being read");
    checksum.add(block.data(), count);
  }
  Seal seal = {.magic = {},
               .length = static_cast<uint64_t>(length),
               .sum = checksum.sum(static_cast<uint64_t>(length))};
  std::ranges::copy(kMagic, seal.magic.begin());
  return seal;
}

// IoError unless the file ends in a seal of its length.
Seal read_seal(const std::string& path, const FileDescriptor& file) {
  const int64_t length = file.size() - static_cast<int64_t>(sizeof(Seal));
  Seal found = {};
  if (length >= 0) {
    file.seek(length);
    file.read(reinterpret_cast<char*>(&found), sizeof(found));
  }
  if (!std::ranges::equal(found.magic, kMagic) || found.length != static_cast<uint64_t>(length)) {
    throw IoError(path, ": truncated, or not sealed by this library");
  }
  return found;
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_path_(make_temporary(path_)) {}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(temporary_path_.c_str());
}

void AtomicFile::commit() {
  FileDescriptor(temporary_path_, O_RDWR).sync();
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    throw IoError(path_, ": cannot be put in place: ", system_message());
  }
  committed_ = true;
  sync_folder(path_);
}

void write_file_atomically(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  FileDescriptor(file.temporary_path(), O_WRONLY).write(text);
  file.commit();
}

std::string read_text_file(const std::string& path, int64_t limit) {
  const FileDescriptor file(path, O_RDONLY);
  const int64_t size = file.size();
  if (size > limit) throw IoError(path, ": ", size, " bytes long, at most ", limit, " are read");
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
}

void check_seal(const std::string& path) {
  const FileDescriptor file(path, O_RDONLY);
  const Seal found = read_seal(path, file);
  file.seek(0);
  if (compute_seal(path, file, static_cast<int64_t>(found.length)).sum != found.sum) {
    throw IoError(path, ": damaged, its bytes do not fit their checksum");
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

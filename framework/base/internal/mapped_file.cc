#include <keel/framework/base/internal/mapped_file.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

constexpr size_t kHugePageBytes = size_t{1} << 21;
// The part of a promotion during which the kernel stops other threads' page faults. 16 MiB take a
// fraction of a millisecond.
constexpr size_t kPiece = size_t{1} << 24;

size_t page_size() {
  static const auto kSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kSize;
}

// The mapped files of the process. A signal handler reads them, so they are plain atomics; files
// beyond the last slot are mapped but not named by the handler.
struct MappedRange {
  std::atomic<const std::byte*> data = nullptr;
  std::atomic<size_t> size = 0;
  std::atomic<const char*> path = nullptr;
};
std::array<MappedRange, 4096> mapped_ranges;
std::mutex mapped_ranges_mutex;  // guards which slots are free

void register_range(const std::byte* data, size_t size, const char* path) {
  const std::lock_guard lock(mapped_ranges_mutex);
  for (MappedRange& range : mapped_ranges) {
    if (range.data != nullptr) continue;
    range.path = path;
    range.size = size;
    range.data = data;
    return;
  }
}

void unregister_range(const std::byte* data) {
  const std::lock_guard lock(mapped_ranges_mutex);
  for (MappedRange& range : mapped_ranges) {
    if (range.data == data) range.data = nullptr;
  }
}

void write_to_stderr(const char* text) {
  // Nothing can be done if stderr is closed.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (const MappedRange& range : mapped_ranges) {
    const std::byte* const data = range.data;
    if (data == nullptr || at < data || at >= data + range.size) continue;
    write_to_stderr(range.path);
    write_to_stderr(
        ": the file was truncated or cannot be read while its tables are mapped; replace model "
        "files by rename, or load the tables as resident\n");
    _exit(1);
  }
  std::signal(signal, SIG_DFL);  // the access is repeated and ends the process
}

}  // namespace

struct MappedFile::Promotion {
  std::mutex mutex;  // held while pieces are moved
  std::atomic<size_t> bytes = 0;
};

MappedFile::MappedFile(const std::string& path)
    : path_(path), promotion_(std::make_unique<Promotion>()) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw IoError(path, ": cannot be opened (", std::strerror(errno), ")");
  struct stat status = {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    throw IoError(path, ": is not a regular file; pass the path of a file");
  }
  size_ = static_cast<size_t>(status.st_size);
  void* data = nullptr;
  if (size_ > 0) data = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (data == MAP_FAILED) throw IoError(path, ": cannot be mapped (", std::strerror(error), ")");
  data_ = static_cast<const std::byte*>(data);
  // Rows of tables are read at random: reading ahead would fetch 32 pages for each row.
  if (size_ > 0) madvise(data, size_, MADV_RANDOM);
  if (size_ > 0) register_range(data_, size_, path_.c_str());
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  unregister_range(data_);
  // The kernel frees the page tables of a piece without interruption, while faults of other threads
  // wait: 50 ms for 4 GiB at once, 0.2 ms for a piece.
  for (size_t at = 0; at < size_; at += kPiece) {
    munmap(const_cast<std::byte*>(data_) + at, std::min(kPiece, size_ - at));
    std::this_thread::yield();
  }
}

size_t MappedFile::promote(size_t offset, size_t size, FunctionRef<bool()> go_on) const {
  const std::lock_guard lock(promotion_->mutex);
  const size_t page = page_size();
  const auto base = reinterpret_cast<uintptr_t>(data_);
  // Whole pages around the range, which is in the file as a whole.
  uintptr_t at = (base + offset) / page * page;
  const uintptr_t end =
      std::min(base + offset + size + page - 1, base + size_ + page - 1) / page * page;
  size_t moved = 0;
  while (at < end && go_on()) {
    const uintptr_t stop = std::min(end, (at / kPiece + 1) * kPiece);
    const size_t bytes = stop - at;
    // The copy has the same position within a huge page as its target, so that huge pages move as
    // a whole.
    const size_t room = bytes + 2 * kHugePageBytes;
    void* const area =
        mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) break;
    madvise(area, room, MADV_HUGEPAGE);
    const auto begin = reinterpret_cast<uintptr_t>(area);
    const uintptr_t copy = begin + (at - begin) % kHugePageBytes;
    // The last page of the file may be partly beyond its end; those bytes are zeros.
    std::memcpy(reinterpret_cast<void*>(copy), reinterpret_cast<const void*>(at), bytes);
    mprotect(reinterpret_cast<void*>(copy), bytes, PROT_READ);
    void* const placed = mremap(reinterpret_cast<void*>(copy), bytes, bytes,
                                MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(at));
    if (copy > begin) munmap(area, copy - begin);
    if (copy + bytes < begin + room) {
      munmap(reinterpret_cast<void*>(copy + bytes), begin + room - copy - bytes);
    }
    if (placed == MAP_FAILED) {
      munmap(reinterpret_cast<void*>(copy), bytes);
      break;
    }
    moved += bytes;
    promotion_->bytes += bytes;
    at = stop;
  }
  return moved;
}

size_t MappedFile::promoted_bytes() const { return promotion_->bytes; }

void guard_mapped_files() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace keel

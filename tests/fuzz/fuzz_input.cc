#include "tests/fuzz/fuzz_input.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace keel::fuzz {
namespace {

class ScratchFolder {
 public:
  ScratchFolder() {
    const std::filesystem::path memory = "/dev/shm";
    const std::filesystem::path parent =
        ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    path_ = parent / str("keel-fuzz-", ::getpid());
    std::filesystem::create_directories(path_);
    ::setenv("TMPDIR", path_.c_str(), 1);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

void tell(const Error& error) {
  static const bool kTold = std::getenv("KEEL_FUZZ_TELL") != nullptr;
  if (kTold) std::fprintf(stderr, "fuzz: %s\n", error.what());
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken: %s\n", what);
  std::abort();
}

std::string scratch_file(const std::string& name, std::string_view bytes) {
  static const ScratchFolder folder;
  const std::string path = folder.path() / name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(file >= 0, "a scratch file cannot be made");
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    require(count > 0, "a scratch file cannot be written");
    done += static_cast<size_t>(count);
  }
  ::close(file);
  return path;
}

}  // namespace keel::fuzz

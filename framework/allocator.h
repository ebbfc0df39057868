// The memory of tensors: a cache of freed blocks, so that a training step in its
// steady state neither calls the system nor touches a page for the first time.
#pragma once

#include <cstddef>

namespace keel {

// At least `bytes` bytes aligned to 64, contents undefined. Blocks of up to 64 MiB come in
// size classes (four to a doubling) and are kept for reuse when freed; larger ones, the
// embedding tables, come from the system on huge pages where it has them and go back to it.
// std::bad_alloc if the system has no more, ValueError if a MemoryLimit has. Thread safe.
void* allocate(size_t bytes);
void deallocate(void* block, size_t bytes) noexcept;  // the `bytes` asked for

// What the calling thread may allocate while this lives, less what it frees: for models that are
// made from a file which need not be believed. The tightest of several counts.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  const size_t before_;
  const size_t granted_;
};

struct AllocatorStats {
  size_t system_calls = 0;  // blocks obtained from the system since the program began
  size_t cached_bytes = 0;  // freed and kept for reuse
};
AllocatorStats allocator_stats();

}  // namespace keel

// The memory of tensors: a cache of freed blocks, so that a training step in its
// steady state neither calls the system nor touches a page for the first time.
#pragma once

#include <cstddef>

namespace keel {

// At least `bytes` bytes aligned to 64, contents undefined. Blocks of up to 64 MiB come in
// size classes (four to a doubling) and are kept for reuse when freed; larger ones, the
// embedding tables, come from the system on huge pages where it has them and go back to it.
// std::bad_alloc if the system has no more, also once all kept blocks are released; ValueError if a
// MemoryLimit has no more. Thread safe.
//
// Kept blocks that are not needed again are released: after every 2^16 allocations, where each MiB
// counts as one more, half of those blocks of each class that were free all the time.
void* allocate(size_t bytes);
void deallocate(void* block, size_t bytes) noexcept;  // the `bytes` asked for

// Gives all kept blocks back to the system and returns their bytes: for programs that go on with
// less memory, say after training.
size_t release_cached_memory() noexcept;

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

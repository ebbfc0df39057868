// The allocator of tensor memory. It caches freed blocks, so that a training step in its steady
// state neither calls the system nor touches a page for the first time.
#pragma once

#include <cstddef>

namespace keel {

// Allocates at least `bytes` bytes, aligned to 64 bytes, with undefined contents.
//
// Requests of up to 64 MiB are rounded up to size classes (four per doubling), and their blocks are
// cached for reuse when they are freed. Larger requests, such as embedding tables, come directly
// from the system, on huge pages where available, and return to the system when they are freed.
//
// Throws std::bad_alloc if the system has no more memory even after all cached blocks have been
// released. Throws ValueError if the request exceeds the thread's MemoryLimit. Thread safe.
//
// Cached blocks that are no longer needed are released: after every 2^16 allocations, the cache
// gives back half of the blocks of each class that have been free the whole time. Each MiB of a
// request counts as one additional allocation.
void* allocate(size_t bytes);

// Frees a block. `bytes` must be the size passed to allocate(). A null `block` is ignored.
void deallocate(void* block, size_t bytes) noexcept;

// Returns all cached blocks to the system and returns the number of bytes released. Programs that
// continue with less memory, for example after training, may call it.
size_t release_cached_memory() noexcept;

// Limits the bytes that the calling thread may allocate during the lifetime of the object; freeing
// gives bytes back. Use it to build models from untrusted files. Limits nest: the tightest one
// applies.
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

// Statistics of the process's allocator.
struct AllocatorStats {
  size_t system_calls = 0;  // blocks obtained from the system since the program began
  size_t cached_bytes = 0;  // bytes of freed blocks that are kept for reuse
};
// Returns the current statistics. Thread safe.
AllocatorStats allocator_stats();

}  // namespace keel

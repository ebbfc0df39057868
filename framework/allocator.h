// The memory of tensors: a cache of freed blocks, so that a training step in its
// steady state neither calls the system nor touches a page for the first time.
#pragma once

#include <cstddef>

namespace keel {

// At least `bytes` bytes aligned to 64, contents undefined. Blocks of up to 64 MiB come in
// size classes (four to a doubling) and are kept for reuse when freed; larger ones, the
// embedding tables, come from the system on huge pages where it has them and go back to it.
// std::bad_alloc if the system has no more. Thread safe.
void* allocate(size_t bytes);
void deallocate(void* block, size_t bytes) noexcept;  // the `bytes` asked for

struct AllocatorStats {
  size_t system_calls = 0;  // blocks obtained from the system since the program began
  size_t cached_bytes = 0;  // freed and kept for reuse
};
AllocatorStats allocator_stats();

}  // namespace keel

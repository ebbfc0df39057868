#include <keel/framework/base/internal/allocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <malloc.h>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <utility>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 64;
constexpr size_t kLargestCached = size_t{64} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
// Classes are (4 + q) / 4 * 2^e: 64, 80, 96, 112, 128, ...
constexpr int kClassesPerDoubling = 4;
constexpr int kClasses = (26 - 6) * kClassesPerDoubling + 1;

constexpr size_t kUnlimited = ~size_t{0};
thread_local size_t thread_bytes_left = kUnlimited;

// Caching is off under AddressSanitizer, which must see each tensor as a separate block.
#if defined(KEEL_ADDRESS_SANITIZER)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

// The number of allocations between two trims of the cache: some hundred steps of small tensors.
// Each MiB counts as one more, so that large tensors trigger a trim after fewer allocations.
constexpr size_t kTrimInterval = size_t{1} << 16;
// A thread updates the shared counter of allocations in batches of this size.
constexpr size_t kCountedAtOnce = 64;
// free() may keep memory in the heap. Releases of at least this many bytes call malloc_trim(),
// which returns it to the system.
constexpr size_t kHeapTrimBytes = size_t{64} << 20;

// A free block stores the address of the next one in its own memory, so that caching a block never
// allocates.
struct FreeBlock {
  FreeBlock* next;
};

struct SizeClass {
  std::mutex mutex;  // guards the rest
  FreeBlock* free = nullptr;
  size_t count = 0;
  // The lowest count since the last trim: the number of blocks that were never needed.
  size_t least = 0;
};

struct Cache {
  std::array<SizeClass, kClasses> classes;
  std::atomic<size_t> system_calls = 0;
  std::atomic<size_t> cached_bytes = 0;
  std::atomic<size_t> allocations = 0;  // since the last trim
};

// Never destroyed, because tensors in static storage may be freed after static destructors have
// run.
Cache& cache() {
  static Cache* const kInstance = new Cache;
  return *kInstance;
}

// Returns the block size of a class in bytes.
size_t class_size(int index) {
  const int exponent = index / kClassesPerDoubling;
  const int quarter = index % kClassesPerDoubling;
  return (kSmallest / kClassesPerDoubling * (kClassesPerDoubling + quarter)) << exponent;
}

// Returns the smallest class whose blocks hold `bytes` bytes.
int class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const int exponent = std::bit_width(bytes - 1) - 1;  // 2^exponent < bytes <= 2^(exponent + 1)
  const size_t quarter = size_t{1} << (exponent - 2);
  const size_t above = (bytes - (size_t{1} << exponent) + quarter - 1) / quarter;
  return (exponent - 6) * kClassesPerDoubling + static_cast<int>(above);
}

// Returns `count(size_class)` blocks of each class to the system; count must not exceed the class's
// free blocks. Blocks are unlinked under the lock and freed outside it. Returns the number of bytes
// released.
template <class Count>
size_t release(const Count& count) noexcept {
  size_t released = 0;
  for (int index = 0; index < kClasses; ++index) {
    SizeClass& size_class = cache().classes[index];
    FreeBlock* blocks = nullptr;
    size_t taken = 0;
    {
      const std::lock_guard lock(size_class.mutex);
      for (const size_t end = count(size_class); taken < end; ++taken) {
        FreeBlock* const block = size_class.free;
        size_class.free = block->next;
        block->next = blocks;
        blocks = block;
      }
      size_class.count -= taken;
      size_class.least = size_class.count;
    }
    while (blocks != nullptr) std::free(std::exchange(blocks, blocks->next));
    const size_t bytes = taken * class_size(index);
    cache().cached_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    released += bytes;
  }
  if (released >= kHeapTrimBytes) malloc_trim(0);
  return released;
}

// Releases half of the blocks that have not been needed since the last trim. Halving frees the
// memory of a finished phase within a few trims, while blocks of a size that recurs occasionally
// survive for a while.
void trim() noexcept {
  release([](const SizeClass& size_class) { return (size_class.least + 1) / 2; });
}

void count_allocation(size_t bytes) noexcept {
  thread_local size_t counted = 0;
  counted += 1 + (bytes >> 20);
  if (counted < kCountedAtOnce) return;
  const size_t before = cache().allocations.fetch_add(counted, std::memory_order_relaxed);
  const size_t now = before + std::exchange(counted, 0);
  if (before / kTrimInterval != now / kTrimInterval) trim();
}

void* from_system(size_t bytes) {
  // Blocks of at least a huge page are aligned to one, so that the kernel can back them entirely
  // with huge pages.
  const bool huge = bytes >= kHugePage;
  const size_t alignment = huge ? kHugePage : kAlignment;
  if (bytes > kUnlimited - alignment) throw std::bad_alloc();
  const size_t size = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, size);
  if (block == nullptr && release_cached_memory() > 0) block = std::aligned_alloc(alignment, size);
  if (block == nullptr) throw std::bad_alloc();
  if (huge) madvise(block, bytes, MADV_HUGEPAGE);
  cache().system_calls.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void* allocate_block(size_t bytes) {
  if (!kCaching || bytes > kLargestCached) return from_system(bytes);
  count_allocation(bytes);
  const int index = class_of(bytes);
  SizeClass& size_class = cache().classes[index];
  {
    const std::lock_guard lock(size_class.mutex);
    if (size_class.free != nullptr) {
      FreeBlock* const block = size_class.free;
      size_class.free = block->next;
      size_class.least = std::min(size_class.least, --size_class.count);
      cache().cached_bytes.fetch_sub(class_size(index), std::memory_order_relaxed);
      return block;
    }
  }
  return from_system(class_size(index));
}

}  // namespace

MemoryLimit::MemoryLimit(size_t bytes)
    : before_(thread_bytes_left), granted_(std::min(bytes, before_)) {
  thread_bytes_left = granted_;
}

MemoryLimit::~MemoryLimit() {
  const size_t used = granted_ - std::min(thread_bytes_left, granted_);
  thread_bytes_left = before_ == kUnlimited ? kUnlimited : before_ - used;
}

void* allocate(size_t bytes) {
  if (thread_bytes_left == kUnlimited) return allocate_block(bytes);
  if (bytes > thread_bytes_left) {
    throw ValueError("allocate: at most ", thread_bytes_left,
                     " more bytes are allowed by MemoryLimit, received ", bytes,
                     "; raise the limit, or check the sizes in the file that is read");
  }
  void* const block = allocate_block(bytes);
  thread_bytes_left -= bytes;
  return block;
}

void deallocate(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  if (thread_bytes_left != kUnlimited) {
    // Saturates below kUnlimited: blocks allocated before the limit may be freed under it.
    thread_bytes_left += std::min(bytes, kUnlimited - 1 - thread_bytes_left);
  }
  if (!kCaching || bytes > kLargestCached) {
    std::free(block);
    return;
  }
  const int index = class_of(bytes);
  SizeClass& size_class = cache().classes[index];
  const std::lock_guard lock(size_class.mutex);
  size_class.free = new (block) FreeBlock{.next = size_class.free};
  ++size_class.count;
  cache().cached_bytes.fetch_add(class_size(index), std::memory_order_relaxed);
}

size_t release_cached_memory() noexcept {
  return release([](const SizeClass& size_class) { return size_class.count; });
}

AllocatorStats allocator_stats() {
  return {.system_calls = cache().system_calls.load(std::memory_order_relaxed),
          .cached_bytes = cache().cached_bytes.load(std::memory_order_relaxed)};
}

}  // namespace keel

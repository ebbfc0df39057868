#include "framework/allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <vector>

#include "framework/errors.h"

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
thread_local size_t left_to_thread = kUnlimited;

// The sanitizers must see each tensor as a block of its own.
#if defined(KEEL_ADDRESS_SANITIZER)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

struct SizeClass {
  std::mutex mutex;  // guards free
  std::vector<void*> free;
};

struct Cache {
  std::array<SizeClass, kClasses> classes;
  std::atomic<size_t> system_calls = 0;
  std::atomic<size_t> cached_bytes = 0;
};

// Never destroyed: tensors in static storage are freed after it would be.
Cache& cache() {
  static Cache* const kInstance = new Cache;
  return *kInstance;
}

size_t class_size(int index) {
  const int exponent = index / kClassesPerDoubling;
  const int quarter = index % kClassesPerDoubling;
  return (kSmallest / kClassesPerDoubling * (kClassesPerDoubling + quarter)) << exponent;
}

int class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const int exponent = std::bit_width(bytes - 1) - 1;  // 2^exponent < bytes <= 2^(exponent + 1)
  const size_t quarter = size_t{1} << (exponent - 2);
  const size_t above = (bytes - (size_t{1} << exponent) + quarter - 1) / quarter;
  return (exponent - 6) * kClassesPerDoubling + static_cast<int>(above);
}

void* from_system(size_t bytes) {
  const bool huge = bytes >= kHugePage;
  const size_t alignment = huge ? kHugePage : kAlignment;
  void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  if (huge) madvise(block, bytes, MADV_HUGEPAGE);
  cache().system_calls.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void* taken(size_t bytes) {
  if (!kCaching || bytes > kLargestCached) return from_system(bytes);
  const int index = class_of(bytes);
  SizeClass& size_class = cache().classes[index];
  {
    const std::lock_guard lock(size_class.mutex);
    if (!size_class.free.empty()) {
      void* block = size_class.free.back();
      size_class.free.pop_back();
      cache().cached_bytes.fetch_sub(class_size(index), std::memory_order_relaxed);
      return block;
    }
  }
  return from_system(class_size(index));
}

}  // namespace

MemoryLimit::MemoryLimit(size_t bytes)
    : before_(left_to_thread), granted_(std::min(bytes, before_)) {
  left_to_thread = granted_;
}

MemoryLimit::~MemoryLimit() {
  const size_t used = granted_ - std::min(left_to_thread, granted_);
  left_to_thread = before_ == kUnlimited ? kUnlimited : before_ - used;
}

void* allocate(size_t bytes) {
  if (left_to_thread == kUnlimited) return taken(bytes);
  if (bytes > left_to_thread) {
    throw ValueError("tensors: at most ", left_to_thread, " more bytes are granted, received ",
                     bytes);
  }
  void* const block = taken(bytes);
  left_to_thread -= bytes;
  return block;
}

void deallocate(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  if (left_to_thread != kUnlimited) {
    left_to_thread += std::min(bytes, kUnlimited - 1 - left_to_thread);
  }
  if (!kCaching || bytes > kLargestCached) {
    std::free(block);
    return;
  }
  const int index = class_of(bytes);
  SizeClass& size_class = cache().classes[index];
  const std::lock_guard lock(size_class.mutex);
  size_class.free.push_back(block);
  cache().cached_bytes.fetch_add(class_size(index), std::memory_order_relaxed);
}

AllocatorStats allocator_stats() {
  return {.system_calls = cache().system_calls.load(std::memory_order_relaxed),
          .cached_bytes = cache().cached_bytes.load(std::memory_order_relaxed)};
}

}  // namespace keel

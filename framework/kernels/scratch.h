// Scratch and ScratchVector: temporary memory for one kernel call, taken from the cache of freed
// blocks (framework/base/internal/allocator.h). The heap could return such memory to the operating
// system between two steps, which would then have to zero it again page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <keel/framework/base/internal/allocator.h>

namespace keel::kernels {

// An uninitialized array of T, aligned to 64 bytes. Allocates nothing for zero elements.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t elements)
      : bytes_(static_cast<size_t>(elements) * sizeof(T)),
        data_(elements == 0 ? nullptr : static_cast<T*>(allocate(bytes_))) {}
  ~Scratch() {
    if (data_ != nullptr) deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  const size_t bytes_;
  T* const data_;
};

// An allocator that uses the cache of freed blocks and leaves elements uninitialized.
template <class T>
struct ScratchAllocator {
  static_assert(std::is_trivially_default_constructible_v<T>);
  using value_type = T;

  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t n) { return static_cast<T*>(keel::allocate(n * sizeof(T))); }
  void deallocate(T* data, size_t n) noexcept { keel::deallocate(data, n * sizeof(T)); }
  // Default construction does nothing, so resize() does not touch the memory.
  template <class U>
  void construct(U*) noexcept {}
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(const ScratchAllocator&, const ScratchAllocator&) = default;
};

// A vector whose resize() leaves new elements uninitialized.
template <class T>
using ScratchVector = std::vector<T, ScratchAllocator<T>>;

}  // namespace keel::kernels

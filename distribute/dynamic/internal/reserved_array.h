// ReservedArray: an array that grows without moving its elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unistd.h>

#include <keel/framework/base/internal/reserved_memory.h>

namespace keel::distribute {

// The elements have no destructors and start as zeros. Large arrays are on huge pages where the
// kernel provides them.
template <class T>
class ReservedArray {
 public:
  T& operator[](size_t i) { return reinterpret_cast<T*>(memory_.data())[i]; }
  const T& operator[](size_t i) const { return reinterpret_cast<const T*>(memory_.data())[i]; }

  // Allocates the elements [0, size). Never shrinks. If it throws std::bad_alloc, the elements are
  // unchanged.
  void grow(size_t size) {
    if (memory_.data() == nullptr) memory_ = ReservedMemory(most_bytes());
    memory_.grow(size * sizeof(T));
    size_ = std::max(size_, size);
  }
  void clear() { *this = ReservedArray(); }
  // The memory that has been allocated; pages that were never written are not.
  int64_t bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }

 private:
  // Address space for 2^32 elements, or for what the machine can hold.
  static size_t most_bytes() {
    const auto memory =
        static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return std::min((size_t{1} << 32U) * sizeof(T), memory);
  }

  ReservedMemory memory_;
  size_t size_ = 0;
};

}  // namespace keel::distribute

// ReservedMemory: memory that grows without moving.
#pragma once

#include <cstddef>

namespace keel {

// Reserves address space for the largest size and makes a prefix of it accessible. New memory is
// zero. Pages take physical memory when they are first written.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  // Reserves at least one byte. Throws std::bad_alloc if the address space is not available.
  explicit ReservedMemory(size_t most);
  ~ReservedMemory();
  ReservedMemory(ReservedMemory&& other) noexcept;
  ReservedMemory& operator=(ReservedMemory&& other) noexcept;

  char* data() const { return data_; }
  size_t size() const { return size_; }  // accessible bytes
  // Makes at least the first `bytes` accessible. The memory grows by 1/16 of its size, but at least
  // by 2 MiB and at most by 64 MiB at a time. Throws std::bad_alloc, without a change, if there is
  // not enough memory or if `bytes` exceeds the reservation.
  void grow(size_t bytes);

 private:
  void release() noexcept;

  char* base_ = nullptr;  // of the reservation
  size_t reserved_ = 0;
  char* data_ = nullptr;  // aligned to huge pages
  size_t most_ = 0, size_ = 0;
};

}  // namespace keel

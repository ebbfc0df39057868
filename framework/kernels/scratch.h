// Scratch: memory of a kernel's call, from the cache of freed blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/allocator.h"

namespace keel::kernels {

// Aligned to 64 bytes, contents undefined. No memory for no elements.
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

}  // namespace keel::kernels

// ChunkedArray: an array that grows without moving its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace keel::distribute {

// The elements are stored in chunks of kChunk, so that growth copies none of them.
template <class T>
class ChunkedArray {
 public:
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](size_t i) const { return chunks_[i / kChunk][i % kChunk]; }

  // Allocates the elements [0, size), value-initialized. Never shrinks. If it throws
  // std::bad_alloc, the elements are unchanged.
  void grow(size_t size) {
    while (chunks_.size() * kChunk < size) chunks_.push_back(std::make_unique<T[]>(kChunk));
  }
  void clear() { chunks_.clear(); }
  int64_t bytes() const { return static_cast<int64_t>(chunks_.size() * kChunk * sizeof(T)); }

 private:
  static constexpr size_t kChunk = 8192;
  std::vector<std::unique_ptr<T[]>> chunks_;
};

}  // namespace keel::distribute

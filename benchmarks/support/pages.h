// Memory for large tables, by page size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::bench {

enum class Pages { kSmall, kHuge };  // 4 KiB pages, or huge pages if the kernel grants them

class PagedMemory {
 public:
  PagedMemory(size_t bytes, Pages pages);  // zeros; std::bad_alloc if there is no such memory
  ~PagedMemory();
  PagedMemory(const PagedMemory&) = delete;
  PagedMemory& operator=(const PagedMemory&) = delete;

  float* floats() const { return static_cast<float*>(data_); }

 private:
  void* base_;
  void* data_;
  size_t length_;
};

// Fills memory with small numbers of both signs that are not all equal; touches every page.
void fill(float* values, int64_t n, float scale);

}  // namespace keel::bench

#include "benchmarks/support/pages.h"

#include <new>
#include <sys/mman.h>
#include <thread>

namespace keel::bench {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

PagedMemory::PagedMemory(size_t bytes, Pages pages) : length_(round_up(bytes) + kHugePage) {
  base_ = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base_ == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(base_);
  data_ = static_cast<char*>(base_) + (round_up(address) - address);
  madvise(base_, length_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

PagedMemory::~PagedMemory() { munmap(base_, length_); }

void fill(float* values, int64_t n, float scale) {
  const auto part = [=](int64_t begin, int64_t end) {
    uint32_t state = static_cast<uint32_t>(begin) * 2654435761U + 12345U;
    for (int64_t i = begin; i < end; ++i) {
      state = state * 1664525U + 1013904223U;
      values[i] = scale * (static_cast<float>(state >> 9) * 0x1.0p-22F - 1.0F);
    }
  };
  std::thread first_half([&] { part(0, n / 2); });
  part(n / 2, n);
  first_half.join();
}

}  // namespace keel::bench

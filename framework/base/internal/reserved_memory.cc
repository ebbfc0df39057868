#include <keel/framework/base/internal/reserved_memory.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace keel {
namespace {

constexpr size_t kReserveUnit = size_t{2} << 20U;
constexpr size_t kMostGrowth = size_t{64} << 20U;

size_t rounded_up(size_t bytes) { return (bytes + kReserveUnit - 1) / kReserveUnit * kReserveUnit; }

}  // namespace

ReservedMemory::ReservedMemory(size_t most)
    : reserved_(rounded_up(most) + kReserveUnit), most_(rounded_up(most)) {
  // Pages without access do not count as committed memory.
  void* const base =
      mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<char*>(base);
  data_ = base_ + (kReserveUnit - reinterpret_cast<uintptr_t>(base_) % kReserveUnit) % kReserveUnit;
}

ReservedMemory::~ReservedMemory() { release(); }

void ReservedMemory::release() noexcept {
  if (base_ != nullptr) munmap(base_, reserved_);
  base_ = nullptr;
}

ReservedMemory::ReservedMemory(ReservedMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      reserved_(std::exchange(other.reserved_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      most_(std::exchange(other.most_, 0)),
      size_(std::exchange(other.size_, 0)) {}

ReservedMemory& ReservedMemory::operator=(ReservedMemory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(reserved_, other.reserved_);
  std::swap(data_, other.data_);
  std::swap(most_, other.most_);
  std::swap(size_, other.size_);
  return *this;
}

void ReservedMemory::grow(size_t bytes) {
  if (bytes <= size_) return;
  if (bytes > most_) throw std::bad_alloc();
  const size_t step = std::clamp(size_ / 16, kReserveUnit, kMostGrowth);
  const size_t to = std::min(most_, rounded_up(std::max(bytes, size_ + step)));
  if (mprotect(data_ + size_, to - size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  // A table that fits into one huge page keeps small pages. Failure means that there are no huge
  // pages.
  if (to > kReserveUnit) static_cast<void>(madvise(data_ + size_, to - size_, MADV_HUGEPAGE));
  size_ = to;
}

}  // namespace keel

// MemoryBudget: limits the memory that the values of one request take.
//
// A value can take a few bytes in a body and many in memory: `"",` becomes an object of 32 bytes.
// Containers with BudgetAllocator count what they hold against the budget of the thread that reads
// the request, and exceeding it is an error of the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace keel::serving {

// The budget of a thread, which is unlimited outside of a Scope.
class MemoryBudget {
 public:
  // A request may take this much whatever the size of its body.
  static constexpr int64_t kLeastBytes = int64_t{64} << 20;
  // Beyond that, values may take this many times the size of the body. The body itself, its
  // decompressed form and the text of its strings are not counted; with them a request takes at
  // most 8 times its decompressed size.
  static constexpr int64_t kBodies = 5;

  // Replaces the budget of the calling thread for its lifetime.
  class Scope {
   public:
    explicit Scope(int64_t bytes);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const int64_t left_, limit_;  // before
  };
  static constexpr int64_t kUnlimited = INT64_MAX / 2;
  // Returns the budget of a request whose body has so many bytes after decompression.
  static int64_t of_body(size_t bytes);

  // Counts memory of the calling thread's request. Throws ServeError kInvalidArgument if it is more
  // than the budget has left; then nothing is counted.
  static void take(size_t bytes);
  static void give(size_t bytes) noexcept;
};

// An allocator whose memory is counted.
template <class T>
struct BudgetAllocator {
  using value_type = T;
  BudgetAllocator() = default;
  template <class U>
  BudgetAllocator(const BudgetAllocator<U>&) {}

  T* allocate(size_t count) {
    MemoryBudget::take(bytes_of(count));
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* at, size_t count) noexcept {
    std::allocator<T>().deallocate(at, count);
    MemoryBudget::give(bytes_of(count));
  }
  friend bool operator==(const BudgetAllocator&, const BudgetAllocator&) { return true; }

 private:
  // Small allocations take more memory than they ask for.
  static size_t bytes_of(size_t count) { return count * sizeof(T) + 16; }
};

template <class T>
using BudgetVector = std::vector<T, BudgetAllocator<T>>;
using IntegerList = BudgetVector<int64_t>;

}  // namespace keel::serving

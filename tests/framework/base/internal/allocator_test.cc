#include <keel/framework/base/internal/allocator.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/tensor.h>

namespace keel::allocator_test {

#if defined(KEEL_ADDRESS_SANITIZER)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

TEST(AllocatorTest, BlocksAreAlignedAndWritable) {
  for (size_t bytes = 0; bytes < 5000; bytes += 37) {
    void* block = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U);
    std::memset(block, 0x5A, bytes);
    deallocate(block, bytes);
  }
  for (size_t bytes = size_t{1} << 12; bytes <= size_t{1} << 24; bytes *= 2) {
    for (const size_t size : {bytes - 1, bytes, bytes + 1}) {
      void* block = allocate(size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U);
      static_cast<char*>(block)[0] = 1;
      static_cast<char*>(block)[size - 1] = 1;
      deallocate(block, size);
    }
  }
}

TEST(AllocatorTest, LiveBlocksDoNotOverlap) {
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(static_cast<unsigned char*>(allocate(300)));
    std::memset(blocks.back(), i, 300);
  }
  for (int i = 0; i < 100; ++i) {
    for (int at = 0; at < 300; ++at) ASSERT_EQ(blocks[i][at], i);
    deallocate(blocks[i], 300);
  }
}

TEST(AllocatorTest, ASteadyStateMakesNoSystemCalls) {
  if (!kCaching) {  // caching is off under AddressSanitizer
    Tensor::zeros({1000});
    EXPECT_EQ(allocator_stats().cached_bytes, 0U);
    return;
  }
  const auto step = [] {
    std::vector<Tensor> alive;
    for (int i = 1; i < 40; ++i) alive.push_back(Tensor::zeros({i, 1000}));
  };
  release_cached_memory();  // blocks cached by other tests may be trimmed at any time
  step();
  const AllocatorStats before = allocator_stats();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(allocator_stats().system_calls, before.system_calls);
  EXPECT_EQ(allocator_stats().cached_bytes, before.cached_bytes);
}

TEST(AllocatorTest, AFreedBlockIsReusedForItsSizeClass) {
  void* block = allocate(100000);
  deallocate(block, 100000);
  if (!kCaching) {
    EXPECT_EQ(allocator_stats().cached_bytes, 0U);
    return;
  }
  EXPECT_GE(allocator_stats().cached_bytes, 100000U);
  void* again = allocate(99000);
  EXPECT_EQ(again, block);
  deallocate(again, 99000);
}

TEST(AllocatorTest, ReleasesTheCacheOnRequest) {
  deallocate(allocate(100000), 100000);
  const size_t cached = allocator_stats().cached_bytes;
  EXPECT_EQ(cached > 0, kCaching);
  EXPECT_EQ(release_cached_memory(), cached);
  EXPECT_EQ(allocator_stats().cached_bytes, 0U);
}

TEST(AllocatorTest, ReleasesUnusedBlocksAndKeepsUsedOnes) {
  if (!kCaching) return;
  release_cached_memory();
  constexpr size_t kLarge = size_t{8} << 20, kSmall = 5000;
  std::vector<void*> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(allocate(kLarge));
  for (void* block : blocks) deallocate(block, kLarge);
  EXPECT_GE(allocator_stats().cached_bytes, 50 * kLarge);
  // Each trim, after 2^16 allocations, releases half of the remaining blocks.
  for (int i = 0; i < 8 << 16; ++i) deallocate(allocate(kSmall), kSmall);
  EXPECT_LE(allocator_stats().cached_bytes, 2 * kLarge);
  const AllocatorStats before = allocator_stats();
  for (int i = 0; i < 4 << 16; ++i) deallocate(allocate(kSmall), kSmall);
  EXPECT_EQ(allocator_stats().system_calls, before.system_calls);
}

TEST(AllocatorTest, ATableThatIsTooLargeIsInvalidAllocAfterTheCacheHasBeenReleased) {
  deallocate(allocate(100000), 100000);
  EXPECT_THROW(allocate(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(allocator_stats().cached_bytes, 0U);
  EXPECT_THROW(allocate(~size_t{0} - 100), std::bad_alloc);
}

TEST(AllocatorTest, FreedTablesAreReturnedToTheSystem) {
  constexpr size_t kBytes = (size_t{64} << 20) + 1;
  const AllocatorStats before = allocator_stats();
  for (int i = 0; i < 2; ++i) {
    void* block = allocate(kBytes);
    static_cast<char*>(block)[kBytes - 1] = 1;
    deallocate(block, kBytes);
  }
  EXPECT_EQ(allocator_stats().system_calls, before.system_calls + 2);
  EXPECT_EQ(allocator_stats().cached_bytes, before.cached_bytes);
}

TEST(AllocatorTest, ALimitAppliesToItsThreadDuringItsLifetime) {
  {
    const MemoryLimit outer(1000);
    const Tensor kept = Tensor::zeros({100});
    EXPECT_THROW(Tensor::zeros({200}), ValueError);
    {
      const MemoryLimit inner(size_t{1} << 30);
      EXPECT_THROW(Tensor::zeros({200}), ValueError);
      std::jthread([] { EXPECT_NO_THROW(Tensor::zeros({200})); });
      for (int i = 0; i < 10; ++i) Tensor::zeros({100});  // freed, so not counted
    }
    const Tensor more = Tensor::zeros({100});
    EXPECT_THROW(Tensor::zeros({100}), ValueError);
  }
  EXPECT_NO_THROW(Tensor::zeros({1000}));
}

TEST(AllocatorTest, NullMayBeFreed) {
  const AllocatorStats before = allocator_stats();
  deallocate(nullptr, 100);
  EXPECT_EQ(allocator_stats().cached_bytes, before.cached_bytes);
}

TEST(AllocatorTest, ThreadsMayFreeBlocksOfOtherThreads) {
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks(64);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&blocks, t] {
        for (size_t i = t; i < blocks.size(); i += 4) {
          blocks[i] = allocate(64 * i + 1);
          std::memset(blocks[i], static_cast<int>(i), 64 * i + 1);
        }
      });
    }
    threads.clear();
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&blocks, t] {
        for (size_t i = 3 - t; i < blocks.size(); i += 4) deallocate(blocks[i], 64 * i + 1);
      });
    }
  }
}

}  // namespace keel::allocator_test

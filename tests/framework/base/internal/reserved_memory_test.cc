#include <keel/framework/base/internal/reserved_memory.h>

#include <cstring>
#include <new>

#include <gtest/gtest.h>

namespace keel::reserved_memory_test {

constexpr size_t kMiB = size_t{1} << 20;

TEST(ReservedMemoryTest, GrowsWithoutMovingAndIsZero) {
  ReservedMemory memory(1024 * kMiB);
  EXPECT_EQ(memory.size(), 0U);
  memory.grow(100);
  EXPECT_EQ(memory.size(), 2 * kMiB);
  char* const data = memory.data();
  std::memset(data, 7, memory.size());
  memory.grow(40 * kMiB);
  EXPECT_EQ(memory.data(), data);
  EXPECT_GE(memory.size(), 40 * kMiB);
  EXPECT_EQ(data[0], 7);
  EXPECT_EQ(data[2 * kMiB - 1], 7);
  EXPECT_EQ(data[2 * kMiB], 0);
  EXPECT_EQ(data[memory.size() - 1], 0);
}

TEST(ReservedMemoryTest, GrowsByASixteenthBetweenTwoAnd64MiB) {
  ReservedMemory memory(4096 * kMiB);
  memory.grow(64 * kMiB);
  memory.grow(memory.size() + 1);
  EXPECT_EQ(memory.size(), 68 * kMiB);
  memory.grow(2048 * kMiB);
  const size_t before = memory.size();
  memory.grow(before + 1);
  EXPECT_EQ(memory.size(), before + 64 * kMiB);
}

TEST(ReservedMemoryTest, DoesNotExceedItsReservation) {
  ReservedMemory memory(3 * kMiB);
  memory.grow(4 * kMiB);
  EXPECT_THROW(memory.grow(4 * kMiB + 1), std::bad_alloc);
  EXPECT_EQ(memory.size(), 4 * kMiB);
}

TEST(ReservedMemoryTest, MovesKeepTheAddress) {
  ReservedMemory memory(8 * kMiB);
  memory.grow(1);
  char* const data = memory.data();
  data[0] = 5;
  ReservedMemory other = std::move(memory);
  EXPECT_EQ(other.data(), data);
  ReservedMemory third;
  third = std::move(other);
  EXPECT_EQ(third.data()[0], 5);
}

}  // namespace keel::reserved_memory_test

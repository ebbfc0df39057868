// A plan allocates nothing once its workspace exists; this program's operator new counts
// allocations.
#if !defined(KEEL_ADDRESS_SANITIZER)  // the sanitizer replaces operator new itself
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/layers/serving/models.h"

namespace {
thread_local size_t allocations = 0;

void* counted(size_t bytes) {
  ++allocations;
  void* const block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }

namespace keel {
namespace {

TEST(ServingPlanAllocation, NothingIsAllocatedAfterTheFirstCall) {
  const SerialSection one_thread;
  const ServingPlan plan{ModelHandle(serving_test::dlrm())};
  for (int64_t rows : {1, 32, 250}) {
    const Tensors batch = serving_test::dlrm_batch(rows);
    std::vector<TensorView> views;
    for (const TensorLike& input : flatten(batch)) views.push_back(view_of(input));
    std::vector<float> scores(static_cast<size_t>(rows));
    const std::span<float> output = scores;
    plan.run(views, {&output, 1});
    const size_t allocated = allocations;
    const AllocatorStats before = allocator_stats();
    for (int i = 0; i < 5; ++i) plan.run(views, {&output, 1});
    EXPECT_EQ(allocations, allocated) << rows;
    EXPECT_EQ(allocator_stats().system_calls, before.system_calls) << rows;
    EXPECT_EQ(allocator_stats().cached_bytes, before.cached_bytes) << rows;
  }
  EXPECT_GT(allocations, 0U);  // the counter works
}

}  // namespace
}  // namespace keel

#endif

#include <keel/savedmodel/serving/base/memory_budget.h>

#include <algorithm>
#include <utility>

#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {
namespace {

struct Budget {
  int64_t left = MemoryBudget::kUnlimited;
  int64_t limit = MemoryBudget::kUnlimited;
};
thread_local Budget budget;

}  // namespace

MemoryBudget::Scope::Scope(int64_t bytes)
    : left_(std::exchange(budget.left, bytes)), limit_(std::exchange(budget.limit, bytes)) {}

MemoryBudget::Scope::~Scope() { budget = {.left = left_, .limit = limit_}; }

int64_t MemoryBudget::of_body(size_t bytes) {
  return std::max(kLeastBytes, kBodies * static_cast<int64_t>(bytes));
}

void MemoryBudget::take(size_t bytes) {
  if (static_cast<int64_t>(bytes) > budget.left) {
    throw ServeError(Code::kInvalidArgument, "the values of the request need more than ",
                     budget.limit, " bytes of memory; send fewer rows or values");
  }
  budget.left -= static_cast<int64_t>(bytes);
}

// What an earlier request has left may be freed in a later one.
void MemoryBudget::give(size_t bytes) noexcept {
  budget.left = std::min(budget.left + static_cast<int64_t>(bytes), budget.limit);
}

}  // namespace keel::serving

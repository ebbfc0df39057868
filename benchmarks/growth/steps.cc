#include "benchmarks/growth/steps.h"

#include <algorithm>

namespace keel::bench {
namespace {

constexpr int64_t kIdsBefore = 5'000'000;
constexpr int64_t kLeastStepsBefore = 8;

}  // namespace

void GrowthSteps::prepare(int steps) {
  draw(steps);
  next_ = 0;
}

void GrowthSteps::warm_up(int64_t ids_of_step) {
  const int64_t steps = std::max(kLeastStepsBefore, kIdsBefore / ids_of_step);
  for (int64_t i = 0; i < steps; ++i) {
    prepare(1);
    step();
  }
}

}  // namespace keel::bench

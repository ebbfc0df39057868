// What bench_growth times: a training step on embedding tables, ours and libtorch's.
//
// Tables of 16 columns, bags of 10 ids by Zipf's law, summed; a step is lookup, gradient and
// update.
#pragma once

#include <cstdint>
#include <memory>

#include "benchmarks/growth/batches.h"

namespace keel::bench {

constexpr int64_t kGrowthDim = 16;
constexpr double kGrowthRate = 0.01;

class GrowthSteps {
 public:
  virtual ~GrowthSteps() = default;
  // Draws the batches of the next steps, which take one after the other.
  void prepare(int steps);
  void step() { step_on(next_++); }

 protected:
  virtual void draw(int batches) = 0;
  virtual void step_on(int batch) = 0;
  // Some millions of ids, so that all pages are there, common rows are met every few steps, rare
  // ones come back after hundreds of them, and of a large table part of each batch is met for the
  // first time.
  void warm_up(int64_t ids_of_step);

 private:
  int next_ = 0;
};

// A layer under the setting's strategy.
std::unique_ptr<GrowthSteps> make_growth_steps(const GrowthSetting& setting);
// By libtorch, with sparse gradients. Null if there is none, or it has nothing to hold against
// ours: several tables, an Adam or FTRL that moves all rows.
std::unique_ptr<GrowthSteps> make_growth_steps_of_peer(const GrowthSetting& setting);

}  // namespace keel::bench

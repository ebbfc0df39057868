// The training step that bench_growth measures: embedding tables of Keel and of libtorch.
//
// Tables have 16 columns and bags of 10 ids by Zipf's law, which are summed. A step is lookup,
// gradient and update.
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
  // Draws the batches of the next steps.
  void prepare(int steps);
  void step() { step_on(next_++); }

 protected:
  virtual void draw(int batches) = 0;
  virtual void step_on(int batch) = 0;
  // Runs steps with some millions of ids. Afterwards, all pages are mapped, common rows recur every
  // few steps, rare rows recur after hundreds of steps, and a part of each batch of a large table
  // is new.
  void warm_up(int64_t ids_of_step);

 private:
  int next_ = 0;
};

// Creates a layer under the strategy of the setting.
std::unique_ptr<GrowthSteps> make_growth_steps(const GrowthSetting& setting);
// Creates the step with libtorch and sparse gradients. Returns null without libtorch, or if
// libtorch has no counterpart: several tables, or an Adam or FTRL that changes all rows.
std::unique_ptr<GrowthSteps> make_growth_steps_of_peer(const GrowthSetting& setting);

}  // namespace keel::bench

// The part of a replicated training step that concerns dense variables: sums of given gradients and
// SGD steps, with sums in a fixed or in a free order.
//
//   kFixed  Communicator::reduce_scatter, as optimizers use it: a tree over the replicas
//   kFree   each replica adds its gradients block by block as it arrives; the last one updates the
//           block
#pragma once

#include <mutex>
#include <vector>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "benchmarks/determinism/order.h"
#include "benchmarks/models/click_work.h"

namespace keel::bench {

class DenseSteps {
 public:
  // The kernels and biases of the layers of DLRM.
  DenseSteps(const ClickWork& work, int replicas, Order order);

  void step();
  const std::vector<float>& first_variable() const { return variables_[0]; }

 private:
  struct Block {
    size_t variable = 0;
    int64_t begin = 0, size = 0;
    std::mutex mutex = {};  // guards the members below
    int arrived = 0;
    const float* first = nullptr;  // gradients of the first replica that arrives
    std::vector<float> sum = {};   // sum of all gradients, from the second replica on
  };

  void make_blocks();
  void fixed_step(int replica);
  void free_step(int replica);
  void add(Block& block, const float* gradient);

  const Order order_;
  const Step step_;
  const SGDRule rule_;
  distribute::TPUStrategy strategy_;
  std::vector<std::vector<float>> variables_;
  std::vector<std::vector<std::vector<float>>> gradients_;  // by replica and variable
  std::vector<Block> blocks_;
};

}  // namespace keel::bench

#include "benchmarks/determinism/dense_steps.h"

#include <algorithm>
#include <array>

#include <keel/autodiff/replica_context.h>

#include "benchmarks/support/pages.h"

namespace keel::bench {
namespace {

constexpr int64_t kFloatsOfBlock = 16384;
constexpr int64_t kFloatsAtOnce = 1024;

}  // namespace

DenseSteps::DenseSteps(const ClickWork& work, int replicas, Order order)
    : order_(order),
      step_({.learning_rate = work.learning_rate}),
      strategy_({.num_hosts = 1, .num_cores = replicas}),
      gradients_(replicas) {
  for (const Tower& tower : {bottom_tower(work), top_tower(work)}) {
    int64_t in = tower.input;
    for (const int64_t out : tower.widths) {
      for (const int64_t n : {in * out, out}) {
        fill(variables_.emplace_back(n).data(), n, 0.1F);
        for (auto& of_replica : gradients_) fill(of_replica.emplace_back(n).data(), n, 1e-3F);
      }
      in = out;
    }
  }
  make_blocks();
}

void DenseSteps::make_blocks() {
  const auto blocks_of = [](const std::vector<float>& variable) {
    return (std::ssize(variable) + kFloatsOfBlock - 1) / kFloatsOfBlock;
  };
  int64_t count = 0;
  for (const auto& variable : variables_) count += blocks_of(variable);
  blocks_ = std::vector<Block>(count);
  auto block = blocks_.begin();
  for (size_t v = 0; v < variables_.size(); ++v) {
    for (int64_t begin = 0; begin < std::ssize(variables_[v]); begin += kFloatsOfBlock, ++block) {
      block->variable = v;
      block->begin = begin;
      block->size = std::min(kFloatsOfBlock, std::ssize(variables_[v]) - begin);
      block->sum.resize(block->size);
    }
  }
}

void DenseSteps::step() {
  strategy_.run([this] {
    const int replica = current_replica_context()->replica;
    order_ == Order::kFixed ? fixed_step(replica) : free_step(replica);
  });
}

void DenseSteps::fixed_step(int replica) {
  const std::vector<std::span<const float>> pieces(gradients_[replica].begin(),
                                                   gradients_[replica].end());
  strategy_.communicator().reduce_scatter(pieces, [this](size_t variable, int64_t begin,
                                                         std::span<const float> sum) {
    rule_.update(variables_[variable].data() + begin, sum.data(), nullptr, std::ssize(sum), step_);
  });
}

// Each replica starts with a different block, so that no replica waits for a lock.
void DenseSteps::free_step(int replica) {
  const size_t first = blocks_.size() * replica / gradients_.size();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[(first + i) % blocks_.size()];
    add(block, gradients_[replica][block.variable].data() + block.begin);
  }
  strategy_.communicator().barrier("gradients are read");
}

void DenseSteps::add(Block& block, const float* gradient) {
  const std::lock_guard lock(block.mutex);
  ++block.arrived;
  const bool last = block.arrived == std::ssize(gradients_);
  if (block.arrived == 1) block.first = gradient;
  if (block.arrived == 1 && !last) return;
  const float* before = block.arrived == 2 ? block.first : block.sum.data();
  std::array<float, kFloatsAtOnce> at_once;
  for (int64_t at = 0; at < block.size; at += kFloatsAtOnce) {
    const int64_t n = std::min(kFloatsAtOnce, block.size - at);
    float* const sum = last ? at_once.data() : block.sum.data() + at;
    if (block.arrived == 1) {
      std::copy_n(gradient + at, n, sum);
    } else {
      for (int64_t i = 0; i < n; ++i) sum[i] = before[at + i] + gradient[at + i];
    }
    if (last) {
      rule_.update(variables_[block.variable].data() + block.begin + at, sum, nullptr, n, step_);
    }
  }
  if (last) block.arrived = 0;
}

}  // namespace keel::bench

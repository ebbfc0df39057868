// libtorch's embedding bags: lookup, and training steps with sparse gradients.
#pragma once

#include <cstdint>
#include <memory>

#include <keel/framework/kernels/embedding/gather.h>

namespace keel::bench {

// kAdam updates only the rows of the batch and has no bias correction. kFtrl has the power -1/2 and
// no regularization. libtorch has neither this Adam nor FTRL in C++: both are composed of ATen
// operators on coalesced gradients, like its Python optimizers.
enum class SparseOptimizer { kSgd, kAdagrad, kAdam, kFtrl };

constexpr int slots_of(SparseOptimizer optimizer) {
  return optimizer == SparseOptimizer::kSgd ? 0 : optimizer == SparseOptimizer::kAdagrad ? 1 : 2;
}
constexpr double kAdagradStart = 0.1, kFtrlStart = 0.1;  // initial accumulators
constexpr double kAdamBeta1 = 0.9, kAdamBeta2 = 0.999, kAdamEpsilon = 1e-7;

struct EmbeddingPeerOptions {
  float* table = nullptr;  // [rows, dim], owned by the caller
  // The slots, owned by the caller and filled with their initial values: accumulator; momentum and
  // velocity; accumulator and linear.
  float* slots[2] = {};
  int64_t rows = 0, dim = 0;
  kernels::Combiner combiner = kernels::Combiner::kSum;  // not kSqrtN
  SparseOptimizer optimizer = SparseOptimizer::kSgd;
  double learning_rate = 0;
};

class EmbeddingPeer {
 public:
  virtual ~EmbeddingPeer() = default;
  // Looks up a batch and returns [samples, dim], valid until the next call. Weights require kSum.
  virtual const float* lookup(const kernels::Bags& bags) = 0;
  // Runs a lookup, the backward pass of `gradient` [samples, dim] and the update of the table.
  virtual void step(const kernels::Bags& bags, const float* gradient) = 0;
};

std::unique_ptr<EmbeddingPeer> make_embedding_peer(const EmbeddingPeerOptions& options);  // or null

}  // namespace keel::bench

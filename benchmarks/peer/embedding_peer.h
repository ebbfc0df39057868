// libtorch's embedding bags: lookup, and training steps with sparse gradients.
#pragma once

#include <cstdint>
#include <memory>

#include <keel/framework/kernels/embedding/gather.h>

namespace keel::bench {

// kAdam moves the rows of the batch only and has no bias correction; kFtrl has the power -1/2 and
// no regularization. libtorch has no such Adam in C++ and no FTRL: both are made of ATen's
// operators on coalesced gradients, as its Python optimizers are.
enum class SparseOptimizer { kSgd, kAdagrad, kAdam, kFtrl };

constexpr int slots_of(SparseOptimizer optimizer) {
  return optimizer == SparseOptimizer::kSgd ? 0 : optimizer == SparseOptimizer::kAdagrad ? 1 : 2;
}
constexpr double kAdagradStart = 0.1, kFtrlStart = 0.1;  // of accumulators
constexpr double kAdamBeta1 = 0.9, kAdamBeta2 = 0.999, kAdamEpsilon = 1e-7;

struct EmbeddingPeerOptions {
  float* table = nullptr;  // [rows, dim], the caller's
  // The caller's too, filled with what they start from: accumulator; momentum and velocity;
  // accumulator and linear.
  float* slots[2] = {};
  int64_t rows = 0, dim = 0;
  kernels::Combiner combiner = kernels::Combiner::kSum;  // not kSqrtN
  SparseOptimizer optimizer = SparseOptimizer::kSgd;
  double learning_rate = 0;
};

class EmbeddingPeer {
 public:
  virtual ~EmbeddingPeer() = default;
  // [samples, dim], valid until the next call. Weights need kSum.
  virtual const float* lookup(const kernels::Bags& bags) = 0;
  // Lookup, backward of `gradient` [samples, dim], update of the table.
  virtual void step(const kernels::Bags& bags, const float* gradient) = 0;
};

std::unique_ptr<EmbeddingPeer> make_embedding_peer(const EmbeddingPeerOptions& options);  // or null

}  // namespace keel::bench

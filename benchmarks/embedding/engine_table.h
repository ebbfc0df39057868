// One table of an EmbeddingEngine, used as the framework uses it: with one thread, by a replica
// without a strategy; with several threads, by as many replicas of a TPUStrategy, each with its
// share of the batch.
#pragma once

#include <memory>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>

#include "benchmarks/peer/embedding_peer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/pages.h"

namespace keel::bench {

class EngineTable {
 public:
  struct Options {
    int64_t rows = 0, dim = 0;
    kernels::Combiner combiner = kernels::Combiner::kSum;
    std::optional<SparseOptimizer> optimizer = {};  // none: lookups only
    double learning_rate = 0;
    int threads = 1;
    Pages pages = Pages::kHuge;
  };
  explicit EngineTable(const Options& options);

  void load(const float* weights);
  void read_row(int64_t row, float* out) const;

  // Sets the batches that lookup() and step() cycle through, starting with the first.
  void set_batches(const std::vector<BagBatch>& batches, const std::vector<float>& weights = {});
  // Sets the gradients, [samples, dim], of every batch.
  void set_gradient(const float* gradient, int64_t samples);
  void lookup();
  void step();
  // Returns the result of the last lookup, [samples, dim].
  std::vector<float> looked_up() const;

 private:
  using Replicas = std::vector<distribute::FeatureBatch>;  // the batch of each replica

  void run(const std::function<void(distribute::Communicator&, int replica)>& body);
  const Replicas& next_batch();

  const Options options_;
  std::unique_ptr<distribute::TPUStrategy> strategy_;  // null on one thread
  const std::shared_ptr<distribute::Communicator> alone_;
  std::unique_ptr<distribute::EmbeddingEngine> engine_;
  std::vector<Replicas> batches_;
  size_t at_ = 0;
  int64_t iteration_ = 0;
  std::vector<Tensor> gradients_, pooled_;  // by replica
};

}  // namespace keel::bench

// CompiledLoss: the losses of a model's outputs, and their weighted sum.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/layers/training/compile/compile_options.h>

namespace keel {

// What all replicas share of a step.
struct GlobalBatch {
  int64_t rows = 0;
  distribute::Communicator* communicator = nullptr;  // null: there is one replica
};

class CompiledLoss {
 public:
  // ValueError for a loss of reduction "none".
  CompiledLoss(LossesArgument losses, LossWeights weights);

  bool empty() const { return losses_.empty(); }
  // Settles which output has which loss. ValueError for names and numbers that do not fit.
  void resolve(const std::vector<std::string>& outputs);

  // This replica's shares of the losses of its rows: those of all replicas add up to the losses of
  // the global batch. Masks of predictions multiply the sample weights; where the loss is divided
  // by the number of samples, the masked ones are not among them. Labels, predictions and weights
  // are by output; a weight may be empty. Collective over the replicas if a prediction has a mask,
  // or for reduction "mean_with_sample_weight". ValueError, naming `caller` and the output, for an
  // output that has a loss and no labels.
  struct Term {
    std::string output;
    double weight = 1;  // of the sum
    Tensor share;
  };
  std::vector<Term> shares(const char* caller, std::span<const Tensor> labels,
                           std::span<const Tensor> predictions, std::span<const Tensor> weights,
                           const GlobalBatch& batch) const;

 private:
  const LossesArgument losses_;
  const LossWeights loss_weights_;
  std::vector<std::string> outputs_;
  std::vector<LossArgument> by_output_;
  std::vector<double> weights_;
};

}  // namespace keel

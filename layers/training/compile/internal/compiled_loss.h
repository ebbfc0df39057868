// CompiledLoss: computes the losses of a model's outputs for compile().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/communicator.h>
#include <keel/layers/training/compile/compile_options.h>

namespace keel {

// Describes the global batch of a step, to which all replicas contribute.
struct GlobalBatch {
  int64_t rows = 0;
  distribute::Communicator* communicator = nullptr;  // null if there is only one replica
};

// Holds the loss and the loss weight of each output.
class CompiledLoss {
 public:
  // Throws ValueError for a loss with reduction "none".
  CompiledLoss(LossesArgument losses, LossWeights weights);

  bool empty() const { return losses_.empty(); }
  // Assigns losses and weights to `outputs`, the names of the model's outputs. Throws ValueError if
  // a name is unknown or if a list does not have one item per output. Must be called before
  // shares().
  void resolve(const std::vector<std::string>& outputs);

  // This replica's share of the loss of one output.
  struct Term {
    std::string output;
    double weight = 1;  // factor of the share in the weighted sum of losses
    Tensor share;
  };

  // Returns this replica's share of each output's loss. Shares are computed from the replica's
  // rows; their sum over all replicas is the loss of the global batch. `labels`, `predictions` and
  // `weights` have one item per output; an item of `weights` may be empty.
  //
  // Masks of predictions multiply the sample weights. Where a loss is divided by the number of
  // samples, masked samples are not counted.
  //
  // Collective over the replicas if a prediction has a mask or if a reduction is
  // "mean_with_sample_weight". Throws ValueError, prefixed with `caller` and naming the output, if
  // an output has a loss but no labels.
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

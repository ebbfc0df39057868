#include <keel/layers/training/internal/predict_step.h>

#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/gather_tensors.h>
#include <keel/layers/training/internal/trainer.h>

namespace keel {
namespace {

// Gathers the outputs of all replicas, given those of the local replicas.
std::vector<Tensors> all_outputs(distribute::Strategy& strategy,
                                 const std::vector<Tensors>& outputs) {
  if (strategy.process_group().size() == 1) return outputs;
  std::vector<Tensor> leaves;
  for (const Tensors& output : outputs) {
    for (const TensorLike& leaf : flatten(output)) {
      if (leaf.layout() != Layout::kDense) {
        throw NotImplementedError(
            "Model.predict: outputs must be dense if there are several processes, received ",
            output.structure());
      }
      leaves.push_back(leaf.tensor());
    }
  }
  const std::vector<Tensor> all =
      distribute::gather_tensors(strategy.process_group(), "Model.predict", leaves);
  const size_t each = leaves.size() / outputs.size();
  std::vector<Tensors> out;
  for (size_t at = 0; at < all.size(); at += each) {
    out.push_back(pack_sequence_as(outputs[0], std::vector<TensorLike>(&all[at], &all[at] + each)));
  }
  return out;
}

}  // namespace

const Tensors& features_of(const Tensors& element) {
  return element.kind() == NestKind::kTuple ? element[0] : element;
}

std::vector<Tensors> predict_step(distribute::Strategy& strategy, Model& model,
                                  const distribute::PerReplica<Tensors>& batch) {
  build_for(model, strategy, features_of(batch[0]));
  const bool several = strategy.num_replicas_in_sync() > 1;
  const CombinedReads averages(several ? model.weights() : std::vector<Variable>());
  const auto outputs = strategy.run(
      [&](const Tensors& element) {
        const NoGradient pause;
        const CombinedReads::Scope reads(averages);
        return model.predict_step(element);
      },
      batch);
  return all_outputs(strategy, outputs.values());
}

}  // namespace keel

#include "benchmarks/models/click_trainer.h"

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/optimizers/sgd.h>

namespace keel::bench {
namespace {

ClickModel model_under(distribute::Strategy& strategy, const ClickWork& work) {
  const auto scope = strategy.scope();
  return make_click_model(work);
}

OptimizerHandle optimizer_under(distribute::Strategy& strategy, const ClickWork& work) {
  const auto scope = strategy.scope();
  return optimizers::SGD({.learning_rate = work.learning_rate});
}

}  // namespace

ClickTrainer::ClickTrainer(const ClickWork& work, const std::vector<ClickBatch>& batches,
                           const ClickCores& cores)
    : cores_(cores),
      work_(work),
      samples_(batches.at(0).samples),
      strategy_(
          distribute::make_strategy("tpu", {.num_hosts = cores.hosts, .num_cores = cores.cores})),
      model_(model_under(*strategy_, work)),
      optimizer_(optimizer_under(*strategy_, work)) {
  batches_.resize(batches.size());
  for (size_t i = 0; i < batches.size(); ++i) set_batch(static_cast<int>(i), batches[i]);
}

void ClickTrainer::set_batch(int index, const ClickBatch& batch) {
  const int n = replicas();
  batches_[index] = strategy_->distribute_values_from_function([&](int replica) {
    return click_tensors(work_, batch, batch.samples * replica / n,
                         batch.samples * (replica + 1) / n);
  });
}

float ClickTrainer::train(int batch) {
  const auto losses = strategy_->run(
      [this](const Tensors& part) {
        GradientTape tape;
        const Tensor logits = model_.model(part[0], {.training = true}).tensor();
        const Tensor loss = ops::sum(losses::binary_crossentropy(part[1].tensor(), logits, true)) /
                            static_cast<double>(samples_);
        const auto variables = model_.model->trainable_variables();
        optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
        return loss;
      },
      batches_[batch]);
  return strategy_->reduce(distribute::ReduceOp::kSum, losses).item<float>();
}

}  // namespace keel::bench

// Options of all optimizers in the replicas of a strategy, in one process and in several.
// Tests optimizers/step/step_replicated.cc.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedule_free.h>
#include <keel/optimizers/sgd.h>
#include <keel/optimizers/whole_variable.h>

#include "tests/distribute/fake_processes.h"
#include "tests/support/tensors.h"

namespace keel::optimizer_options_replicas_test {

using distribute::FakeJob;
using distribute::ProcessGroup;
using distribute::TPUStrategy;
using testing_support::append_values;
using Bits = std::vector<float>;

// Rules that update single rows, with options that keep rows independent, and rules that update
// every row, with all options.
std::vector<OptimizerHandle> all_kinds() {
  return {
      optimizers::SGD({.learning_rate = 0.1, .clipnorm = 0.5, .loss_scale_factor = 2}),
      optimizers::SGD({.learning_rate = 0.1, .clipvalue = 0.2}),
      optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9, .global_clipnorm = 1.5}),
      optimizers::Adagrad({.learning_rate = 0.1, .global_clipnorm = 1.5}),
      optimizers::Adagrad({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.8}),
      optimizers::Adagrad({.learning_rate = 0.1, .weight_decay = 0.1}),
      optimizers::AdamW({.learning_rate = 0.1, .weight_decay = 0.1, .amsgrad = true}),
      optimizers::RMSprop({.learning_rate = 0.1, .momentum = 0.5, .centered = true}),
      optimizers::Nadam({.learning_rate = 0.1, .gradient_accumulation_steps = 3}),
      optimizers::Lamb({.learning_rate = 0.1}),
      optimizers::Lamb({.learning_rate = 0.1,
                        .weight_decay = 0.1,
                        .clipnorm = 0.5,
                        .use_ema = true,
                        .ema_momentum = 0.8,
                        .ema_overwrite_frequency = 2,
                        .loss_scale_factor = 2,
                        .gradient_accumulation_steps = 2}),
      optimizers::Adafactor({.learning_rate = 0.1}),
      optimizers::Adafactor({.learning_rate = 0.1,
                             .weight_decay = 0.1,
                             .global_clipnorm = 0.5,
                             .use_ema = true,
                             .ema_momentum = 0.8,
                             .loss_scale_factor = 2,
                             .gradient_accumulation_steps = 2}),
      optimizers::Muon({.learning_rate = 0.01, .clipnorm = 0.5}),
      optimizers::Muon({.learning_rate = 0.01, .use_ema = true, .gradient_accumulation_steps = 3}),
      optimizers::ScheduleFreeAdamW({.learning_rate = 0.1, .warmup_steps = 3})};
}

Tensor wave(const Shape& shape, double phase) {
  Tensor out = Tensor::zeros(shape);
  double x = phase;
  for (float& value : out.mutable_data<float>()) value = static_cast<float>(std::sin(x += 0.7));
  return out;
}

// A matrix, a table with a constraint, a vector without a gradient in every third step, and a
// vector that never has one.
std::vector<Variable> variables() {
  const auto limit = [](const Tensor& w) { return ops::minimum(w, Tensor::full(w.shape(), 0.9F)); };
  return {Variable(wave({40, 5}, 1), {.name = "kernel"}),
          Variable(wave({30, 4}, 2), {.name = "table", .constraint = limit}),
          Variable(wave({7}, 3), {.name = "bias"}), Variable(wave({3}, 4), {.name = "still"})};
}

std::vector<Gradient> gradients(int64_t step, int64_t replica) {
  const auto seed = static_cast<double>(10 * step + replica);
  const IndexedSlices rows = {
      .ids = Tensor::from<int64_t>({replica, 4, (replica + step) % 30, 4}, {4}),
      .values = wave({4, 4}, seed),
      .dense_shape = {30, 4}};
  return {wave({40, 5}, seed), rows, step % 3 == 2 ? Gradient() : wave({7}, seed), Gradient()};
}

// Returns all state after some steps, then the variables after finalizing.
Bits state_of(Optimizer& optimizer, const std::vector<Variable>& trained) {
  Bits out;
  for (const Variable& v : trained) append_values(v, out);
  for (const Variable& v : optimizer.variables(trained)) append_values(v, out);
  optimizer.finalize_variable_values(trained);
  for (const Variable& v : trained) append_values(v, out);
  return out;
}

constexpr int kSteps = 7;

Bits trained_alone(Optimizer& optimizer, int replicas) {
  const std::vector<Variable> all = variables();
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<Gradient> sums(all.size());
    for (int64_t r = 0; r < replicas; ++r) {
      const std::vector<Gradient> some = gradients(step, r);
      for (size_t i = 0; i < sums.size(); ++i) sums[i].add(some[i]);
    }
    optimizer.apply_gradients(sums, all);
  }
  return state_of(optimizer, all);
}

Bits trained_together(Optimizer& optimizer, TPUStrategy& strategy) {
  const std::vector<Variable> all = variables();
  for (int64_t step = 0; step < kSteps; ++step) {
    strategy.run([&] {
      optimizer.apply_gradients(gradients(step, current_replica_context()->replica), all);
    });
  }
  return state_of(optimizer, all);
}

TEST(OptimizerOptionsReplicasTest, ReplicasTrainAsOne) {
  for (const int replicas : {2, 3, 8}) {
    const std::vector<OptimizerHandle> alone = all_kinds(), together = all_kinds();
    TPUStrategy strategy({.num_cores = replicas});
    for (size_t k = 0; k < alone.size(); ++k) {
      const Bits expected = trained_alone(*alone[k], replicas);
      const Bits received = trained_together(*together[k], strategy);
      ASSERT_EQ(received.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(received[i], expected[i], 1e-6 * std::max(4.0F, std::abs(expected[i])))
            << to_json(together[k]->get_config()) << ", " << replicas << " replicas, " << i;
      }
    }
  }
}

TEST(OptimizerOptionsReplicasTest, BitsDoNotDependOnTheNumberOfWorkers) {
  std::vector<Bits> first;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    TPUStrategy strategy({.num_cores = 4});
    std::vector<Bits> received;
    for (const OptimizerHandle& optimizer : all_kinds()) {
      received.push_back(trained_together(*optimizer, strategy));
    }
    for (const OptimizerHandle& optimizer : all_kinds()) {
      received.push_back(trained_alone(*optimizer, 2));
    }
    if (first.empty()) first = received;
    EXPECT_TRUE(received == first) << workers;
  }
}

TEST(OptimizerOptionsReplicasTest, BitsDoNotDependOnTheNumberOfProcesses) {
  const auto trained = [](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 6, .num_cores = 1}, group);
    const auto scope = strategy.scope();
    std::vector<Bits> out;
    for (const OptimizerHandle& optimizer : all_kinds()) {
      out.push_back(trained_together(*optimizer, strategy));
    }
    return out;
  };
  const std::vector<Bits> expected = trained(distribute::single_process());
  for (const int processes : {2, 4}) {
    FakeJob job(processes);
    const auto errors = job.run([&](ProcessGroup& group) {
      const std::vector<Bits> received = trained(group);
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_TRUE(received[k] == expected[k])
            << "rank " << group.rank() << " of " << processes << ", optimizer " << k;
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(processes));
  }
}

TEST(OptimizerOptionsReplicasTest, SharedSlotsStepOnceForAllReplicas) {
  TPUStrategy strategy({.num_cores = 4});
  const optimizers::Nadam together(NadamOptions{}), alone(NadamOptions{});
  const std::vector<Variable> all = variables();
  for (int64_t step = 0; step < 3; ++step) {
    strategy.run([&] {
      together->apply_gradients(gradients(step, current_replica_context()->replica), all);
    });
    alone->apply_gradients(gradients(step, 0), all);
  }
  EXPECT_EQ(together->shared_slots().at(0).read().item<double>(),
            alone->shared_slots().at(0).read().item<double>());
}

TEST(OptimizerOptionsReplicasTest, ARejectedStepChangesNothing) {
  TPUStrategy strategy({.num_cores = 2});
  const optimizers::Nadam nadam({.use_ema = true});
  const std::vector<Variable> all = variables();
  strategy.run([&] {
    EXPECT_THROW(nadam->apply_gradients(std::vector<Gradient>(all.size()), all), ValueError);
  });
  EXPECT_EQ(nadam->shared_slots().at(0).read().item<double>(), 1);
  EXPECT_TRUE(nadam->slots(all[0]).empty());
  EXPECT_EQ(nadam->iterations(), 0);
}

TEST(OptimizerOptionsReplicasTest, FinalizesOutsideOfReplicasOnly) {
  TPUStrategy strategy({.num_cores = 2});
  const optimizers::SGD sgd({.use_ema = true});
  const std::vector<Variable> all = variables();
  strategy.run([&] { EXPECT_THROW(sgd->finalize_variable_values(all), RuntimeError); });
}

}  // namespace keel::optimizer_options_replicas_test

// Tests optimizers/internal/step_runner.cc, optimizers/step/gradient_check.cc, optimizer_slots.cc,
// step_local.cc and summed_rows.cc.
#include <keel/optimizers/optimizer.h>

#include <atomic>
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::optimizer_test {

using distribute::TPUStrategy;
using optimizers::Adagrad;
using optimizers::Adam;
using optimizers::SGD;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::slices;
using testing_support::values_of;

// Reproducible numbers in [-1, 1).
Tensor numbers(const Shape& shape, int seed, DType dtype = DType::kFloat32) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  uint32_t state = 2654435761u * static_cast<uint32_t>(seed + 1);
  for (float& x : out.mutable_data<float>()) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(state)) / 2147483648.0f;
  }
  return out.cast(dtype);
}

// ---- One replica.

TEST(OptimizerTest, NamesStateAfterItselfAndTheVariable) {
  const Adam adam({.name = "mine"});
  const Variable w(Tensor::zeros({2}), {.name = "kernel"});
  w.set_path("dense/kernel");
  EXPECT_TRUE(adam->slots(w).empty());
  adam->build({w});
  const std::vector<Variable> slots = adam->slots(w);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].path(), "dense/kernel/momentum");
  EXPECT_EQ(slots[1].path(), "dense/kernel/velocity");
  EXPECT_EQ(slots[1].name(), "velocity");
  EXPECT_FALSE(slots[0].trainable());
  EXPECT_EQ(adam->iterations_variable().path(), "mine/iteration");
  EXPECT_EQ(adam->iterations_variable().dtype(), DType::kInt64);
  EXPECT_EQ(Adagrad(AdagradOptions{})->name(), "adagrad");
}

TEST(OptimizerTest, SlotsStartAtTheirInitialValues) {
  const Adagrad adagrad({.initial_accumulator_value = 0.25});
  const Variable w(Tensor::zeros({3}), {.name = "w"});
  const Variable d(Tensor::zeros({1}, DType::kFloat64), {.name = "d"});
  adagrad->build({w, d});
  EXPECT_EQ(values_of(adagrad->slots(w)[0]), (std::vector<float>{0.25, 0.25, 0.25}));
  EXPECT_EQ(adagrad->slots(d)[0].read().item<double>(), 0.25);
}

TEST(OptimizerTest, LeavesVariablesWithoutGradientAlone) {
  const Adam adam(AdamOptions{});
  const Variable a(Tensor::full<float>({2}, 1), {.name = "a"});
  const Variable b(Tensor::full<float>({2}, 1), {.name = "b"});
  adam->apply_gradients({Tensor::full<float>({2}, 1), {}}, {a, b});
  EXPECT_NE(values_of(a)[0], 1);
  EXPECT_EQ(values_of(b)[0], 1);
  EXPECT_TRUE(adam->slots(b).empty());
  EXPECT_EQ(adam->iterations(), 1);
}

TEST(OptimizerTest, CountsAStepForAVirtualVariableOnly) {
  const Adam adam(AdamOptions{});
  const Variable v = Variable::virtual_trainable("dummy");
  adam->apply_gradients({Tensor::full<float>({1}, 1)}, {v});
  EXPECT_EQ(values_of(v)[0], 0);
  EXPECT_TRUE(adam->slots(v).empty());
  EXPECT_EQ(adam->iterations(), 1);
}

TEST(OptimizerTest, EmptyListsDoNothing) {
  const SGD sgd(SGDOptions{});
  sgd->apply_gradients({}, {});
  EXPECT_EQ(sgd->iterations(), 0);
}

TEST(OptimizerTest, DoesNotChangeValuesReadBefore) {
  const Adagrad adagrad(AdagradOptions{});
  const Variable w(Tensor::full<float>({2}, 1), {.name = "w"});
  adagrad->build({w});
  const Tensor value = w.read(), slot = adagrad->slots(w)[0].read();
  const Tensor steps = adagrad->iterations_variable().read();
  adagrad->apply_gradients({value}, {w});
  EXPECT_EQ(value.data<float>()[0], 1);
  EXPECT_EQ(slot.data<float>()[0], 0.1f);
  EXPECT_EQ(steps.item<int64_t>(), 0);
  EXPECT_NE(values_of(w)[0], 1);
}

TEST(OptimizerTest, TrainsFloat64) {
  const SGD sgd({.learning_rate = 0.1});
  const Variable w(Tensor::full<double>({2, 1}, 1), {.name = "w"});
  sgd->apply_gradients({Tensor::full<double>({2, 1}, 1)}, {w});
  EXPECT_EQ(w.read().data<double>()[1], 1 - 0.1);
  sgd->apply_gradients({slices({1, 1}, Tensor::full<double>({2, 1}, 1), {2, 1})}, {w});
  EXPECT_EQ(w.read().data<double>()[0], 1 - 0.1);
  EXPECT_EQ(w.read().data<double>()[1], 1 - 0.1 - 0.1 * 2);
}

TEST(OptimizerTest, GivesTheSameBitsForAnyNumberOfWorkers) {
  std::vector<float> first;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    const Adam adam({.learning_rate = 0.1});
    const Variable w(numbers({300, 257}, 1), {.name = "w"});
    for (int step = 0; step < 3; ++step) {
      adam->apply_gradients({numbers(w.shape(), 2 + step)}, {w});
    }
    if (first.empty()) first = values_of(w);
    EXPECT_EQ(values_of(w), first) << workers;
  }
}

// ---- Sparse gradients.

class SparseTest : public testing::TestWithParam<const char*> {};

TEST_P(SparseTest, SparseEqualsDenseBitForBit) {
  const Shape shape = {7, 3};
  const OptimizerHandle sparse = optimizers::get(GetParam());
  const OptimizerHandle dense = optimizers::get(GetParam());
  const Variable a(numbers(shape, 1), {.name = "a"}), b(numbers(shape, 1), {.name = "b"});
  for (int step = 0; step < 3; ++step) {
    const Gradient g = slices({5, 2, 5, 0, 2, 5}, numbers({6, 3}, 10 + step), shape);
    sparse->apply_gradients({g}, {a});
    dense->apply_gradients({g.dense()}, {b});
    EXPECT_EQ(values_of(a), values_of(b));
  }
}

TEST_P(SparseTest, AcceptsGradientsWithoutRows) {
  const OptimizerHandle optimizer = optimizers::get(GetParam());
  const Variable w(numbers({3, 2}, 1), {.name = "w"});
  const std::vector<float> before = values_of(w);
  optimizer->apply_gradients({slices({}, Tensor::zeros({0, 2}), {3, 2})}, {w});
  optimizer->apply_gradients({Tensor::zeros({3, 2})}, {w});
  EXPECT_EQ(values_of(w), before);
  EXPECT_EQ(optimizer->iterations(), 2);
}

INSTANTIATE_TEST_SUITE_P(Rules, SparseTest, testing::Values("SGD", "Adagrad"));

TEST(OptimizerTest, LeavesRowsThatAreNotNamedUnchanged) {
  const Adagrad adagrad({.learning_rate = 0.5});
  const Variable w(numbers({4, 2, 2}, 1), {.name = "w"});
  const std::vector<float> before = values_of(w);
  adagrad->apply_gradients({slices({2}, Tensor::full<float>({1, 2, 2}, 1), w.shape())}, {w});
  const std::vector<float> after = values_of(w), squares = values_of(adagrad->slots(w)[0]);
  for (size_t i = 0; i < after.size(); ++i) {
    const bool named = i / 4 == 2;
    EXPECT_EQ(after[i] != before[i], named) << i;
    EXPECT_FLOAT_EQ(squares[i], named ? 1.1f : 0.1f) << i;
  }
}

TEST(OptimizerTest, UpdatesAllRowsIfTheRuleDoes) {
  const Shape shape = {5, 2};
  const Adam sparse({.learning_rate = 0.1}), dense({.learning_rate = 0.1});
  const Variable a(numbers(shape, 1), {.name = "a"}), b(numbers(shape, 1), {.name = "b"});
  const Gradient first = slices({1, 1, 3}, numbers({3, 2}, 2), shape);
  const Gradient second = slices({0}, numbers({1, 2}, 3), shape);
  for (const Gradient& g : {first, second}) {
    sparse->apply_gradients({g}, {a});
    dense->apply_gradients({g.dense()}, {b});
  }
  EXPECT_EQ(values_of(a), values_of(b));
}

// ---- The learning rate.

TEST(OptimizerTest, AcceptsANumberAsRate) {
  const SGD sgd({.learning_rate = 0.5});
  EXPECT_EQ(sgd->learning_rate(), 0.5);
  sgd->set_learning_rate(0.25);
  EXPECT_EQ(sgd->learning_rate(), 0.25);
  EXPECT_EQ(sgd->get_config()["learning_rate"].number(), 0.25);
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  EXPECT_EQ(values_of(w)[0], -0.25f);
}

TEST(OptimizerTest, EvaluatesASchedulePerStep) {
  const SGD sgd({.learning_rate = optimizers::schedules::PiecewiseConstantDecay(
                     {.boundaries = {0}, .values = {1, 0.25}})});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  EXPECT_EQ(values_of(w)[0], -1);
  EXPECT_EQ(sgd->learning_rate(), 0.25);
  sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  EXPECT_EQ(values_of(w)[0], -1.25);
  EXPECT_THROW(sgd->set_learning_rate(1), RuntimeError);
}

TEST(OptimizerTest, CallsACallableOnceForEachStep) {
  int calls = 0;
  const SGD sgd({.learning_rate = [&] { return ++calls; }});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(values_of(w)[0], -3);
  EXPECT_THROW(sgd->set_learning_rate(1), RuntimeError);
  EXPECT_THROW(sgd->get_config(), NotImplementedError);
}

TEST(OptimizerTest, RejectsAnEmptyRate) {
  EXPECT_THROW(SGD({.learning_rate = std::function<double()>()}), ValueError);
  EXPECT_THROW(SGD({.learning_rate = std::shared_ptr<const LearningRateSchedule>()}), ValueError);
  LearningRate rate = 1.0;
  EXPECT_THROW(decode(Config("fast"), rate), TypeError);
}

TEST(OptimizerTest, SetsTheNumberOfSteps) {
  const SGD sgd(SGDOptions{});
  sgd->set_iterations(41);
  EXPECT_EQ(sgd->iterations(), 41);
  EXPECT_THROW(sgd->set_iterations(-1), ValueError);
}

// ---- Errors.

TEST(OptimizerTest, RejectsIncompatibleListsAndShapes) {
  const SGD sgd(SGDOptions{});
  const Variable a(Tensor::zeros({2, 3}), {.name = "a"}), b(Tensor::zeros({2}), {.name = "b"});
  const Tensor g = Tensor::full<float>({2, 3}, 1);
  const Tensor rows = Tensor::full<float>({1, 3}, 1);
  EXPECT_THROW(sgd->apply_gradients({g}, {a, b}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({g, g}, {a, a}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({Gradient(), Gradient()}, {a, b}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({g, Tensor::zeros({3})}, {a, b}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({slices({0}, rows, {3, 3})}, {a}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({slices({0, 1}, rows, {2, 3})}, {a}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({slices({2}, rows, {2, 3})}, {a}), ValueError);
  EXPECT_THROW(sgd->apply_gradients({slices({-1}, rows, {2, 3})}, {a}), ValueError);
  EXPECT_EQ(values_of(a), std::vector<float>(6, 0));
  EXPECT_EQ(sgd->iterations(), 0);
  EXPECT_THAT(message_of([&] { sgd->apply_gradients({{}, {}}, {a, b}); }), HasSubstr("a, b"));
}

TEST(OptimizerTest, RejectsOtherDTypes) {
  const Adagrad adagrad(AdagradOptions{});
  const Variable w(Tensor::zeros({2}), {.name = "w"});
  const Variable i(Tensor::zeros({2}, DType::kInt64), {.name = "i"});
  EXPECT_THROW(adagrad->apply_gradients({Tensor::zeros({2}, DType::kFloat64)}, {w}), TypeError);
  EXPECT_THROW(adagrad->apply_gradients({Tensor::zeros({2}, DType::kInt64)}, {i}), TypeError);
  EXPECT_THROW(adagrad->build({i}), TypeError);
  const IndexedSlices odd = {
      .ids = Tensor::zeros({1}, DType::kInt32), .values = Tensor::zeros({1}), .dense_shape = {2}};
  EXPECT_THROW(adagrad->apply_gradients({odd}, {w}), TypeError);
}

// ---- Several replicas.

class ReplicasTest : public testing::TestWithParam<int> {};

TEST_P(ReplicasTest, AddDenseGradientsBitForBit) {
  const int n = GetParam();
  const Adam one({.learning_rate = 0.1}), many({.learning_rate = 0.1});
  const Variable a(numbers({700, 3}, 1), {.name = "a"}), b(numbers({5}, 2), {.name = "b"});
  const Variable c(a.read().clone(), {.name = "c"}), d(b.read().clone(), {.name = "d"});
  TPUStrategy strategy({.num_cores = n});
  for (int step = 0; step < 3; ++step) {
    const auto gradient = [&](const Variable& v, int r) {
      return numbers(v.shape(), 9 * step + r);
    };
    const auto sum = [&](const Variable& v) {
      return strategy.reduce(
          distribute::ReduceOp::kSum,
          strategy.distribute_values_from_function([&](int r) { return gradient(v, r); }));
    };
    one->apply_gradients({sum(a), sum(b)}, {a, b});
    strategy.run([&] {
      const int r = current_replica_context()->replica;
      many->apply_gradients({gradient(c, r), gradient(d, r)}, {c, d});
      EXPECT_EQ(many->iterations(), step + 1);
    });
    EXPECT_EQ(values_of(c), values_of(a));
    EXPECT_EQ(values_of(d), values_of(b));
  }
  EXPECT_EQ(values_of(many->slots(c)[1]), values_of(one->slots(a)[1]));
}

TEST_P(ReplicasTest, AddSparseGradientsById) {
  const int n = GetParam();
  const Shape shape = {11, 3};
  const Adagrad one({.learning_rate = 0.1}), many({.learning_rate = 0.1});
  const Variable a(numbers(shape, 1), {.name = "a"}), c(numbers(shape, 1), {.name = "c"});
  const Variable b(numbers({2}, 1), {.name = "b"}), d(numbers({2}, 1), {.name = "d"});
  const std::vector<float> before = values_of(c);
  const auto gradient = [&](int r) -> Gradient {
    return slices({r, 4, 9, r, 4}, numbers({5, 3}, r), shape);
  };
  Gradient all, bias;
  for (int r = 0; r < n; ++r) all.add(gradient(r));
  for (int r = 0; r < n; ++r) bias.add(numbers({2}, r));
  one->apply_gradients({all, bias}, {a, b});
  TPUStrategy strategy({.num_cores = n});
  strategy.run([&] {
    const int r = current_replica_context()->replica;
    many->apply_gradients({gradient(r), numbers({2}, r)}, {c, d});
  });
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(values_of(c)[i], values_of(a)[i], 1e-6) << i;
    const int row = static_cast<int>(i) / 3;
    EXPECT_EQ(values_of(c)[i] != before[i], row < n || row == 4 || row == 9) << i;
  }
  EXPECT_NEAR(values_of(d)[1], values_of(b)[1], 1e-6);
}

TEST_P(ReplicasTest, EvaluateTheRateOnce) {
  std::atomic<int> calls = 0;
  const SGD sgd({.learning_rate = [&] { return ++calls; }});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  TPUStrategy strategy({.num_cores = GetParam()});
  strategy.run([&] {
    sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
    sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(sgd->iterations(), 2);
  EXPECT_EQ(values_of(w)[0], -3 * GetParam());
}

TEST_P(ReplicasTest, CountAMissingGradientAsZeros) {
  const int n = GetParam();
  const Adagrad adagrad({.learning_rate = 1, .epsilon = 0});
  const Variable dense(Tensor::zeros({2}), {.name = "dense"});
  const Variable sparse(Tensor::zeros({3, 1}), {.name = "sparse"});
  const Variable mixed(Tensor::zeros({3, 1}), {.name = "mixed"});
  const Variable none(Tensor::zeros({2}), {.name = "none"});
  TPUStrategy strategy({.num_cores = n});
  strategy.run([&] {
    const int r = current_replica_context()->replica;
    const Gradient rows = slices({1, 1}, Tensor::full<float>({2, 1}, 1), {3, 1});
    const bool last = r == n - 1;
    adagrad->apply_gradients(
        {last ? Tensor::full<float>({2}, 2) : Gradient(), last ? rows : Gradient(),
         r == 0 ? Gradient(Tensor::full<float>({3, 1}, 1)) : rows, Gradient()},
        {dense, sparse, mixed, none});
  });
  const auto stepped = [](float g) { return -g / std::sqrt(0.1f + g * g); };
  EXPECT_FLOAT_EQ(values_of(dense)[1], stepped(2));
  EXPECT_FLOAT_EQ(values_of(sparse)[1], stepped(2));
  EXPECT_EQ(values_of(sparse)[0], 0);
  EXPECT_FLOAT_EQ(values_of(mixed)[0], stepped(1));
  EXPECT_FLOAT_EQ(values_of(mixed)[1], stepped(static_cast<float>(2 * n - 1)));
  EXPECT_TRUE(adagrad->slots(none).empty());
}

TEST_P(ReplicasTest, DensifyRowsForRulesThatUpdateAll) {
  const int n = GetParam();
  const Shape shape = {6, 2};
  const Adam one({.learning_rate = 0.1}), many({.learning_rate = 0.1});
  const Variable a(numbers(shape, 1), {.name = "a"}), c(numbers(shape, 1), {.name = "c"});
  const auto gradient = [&](int r) -> Gradient {
    return slices({r, 5, r}, numbers({3, 2}, r), shape);
  };
  TPUStrategy strategy({.num_cores = n});
  const Tensor sum = strategy.reduce(
      distribute::ReduceOp::kSum,
      strategy.distribute_values_from_function([&](int r) { return gradient(r).dense(); }));
  one->apply_gradients({sum}, {a});
  strategy.run([&] { many->apply_gradients({gradient(current_replica_context()->replica)}, {c}); });
  EXPECT_EQ(values_of(c), values_of(a));
}

INSTANTIATE_TEST_SUITE_P(Counts, ReplicasTest, testing::Values(2, 3, 4));

TEST(OptimizerTest, GivesTheSameBitsForAnyNumberOfWorkersUnderReplicas) {
  std::vector<float> first;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    TPUStrategy strategy({.num_cores = 4});
    const Adagrad adagrad({.learning_rate = 0.1});
    const Variable w(numbers({300, 7}, 1), {.name = "w"});
    const Variable table(numbers({50, 3}, 2), {.name = "table"});
    strategy.run([&] {
      const int r = current_replica_context()->replica;
      for (int step = 0; step < 3; ++step) {
        const Gradient rows = slices({3, r, 3, 40}, numbers({4, 3}, step + r), table.shape());
        adagrad->apply_gradients({numbers(w.shape(), step + r), rows}, {w, table});
      }
    });
    std::vector<float> all = values_of(w);
    for (const float x : values_of(table)) all.push_back(x);
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << workers;
  }
}

TEST(OptimizerTest, CountsAVirtualVariableInReplicas) {
  const SGD sgd(SGDOptions{});
  const Variable v = Variable::virtual_trainable("dummy");
  TPUStrategy strategy({.num_cores = 2});
  strategy.run([&] { sgd->apply_gradients({Tensor::zeros({1})}, {v}); });
  EXPECT_EQ(sgd->iterations(), 1);
}

TEST(OptimizerTest, WorksUnderAStrategyOfOneReplicaInsideAndOutsideRun) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const SGD sgd({.learning_rate = 1});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  strategy.run([&] { sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w}); });
  sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w});
  EXPECT_EQ(values_of(w)[0], -2);
}

TEST(OptimizerTest, RejectsToStepOutsideTheReplicasOfSeveral) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const SGD sgd(SGDOptions{});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  EXPECT_THROW(sgd->apply_gradients({Tensor::zeros({1})}, {w}), RuntimeError);
}

TEST(OptimizerTest, RejectsReplicasWithDifferentVariables) {
  TPUStrategy strategy({.num_cores = 2});
  const SGD sgd(SGDOptions{});
  const Variable a(Tensor::zeros({6}), {.name = "a"}), b(Tensor::zeros({2}), {.name = "b"});
  const Variable c(Tensor::zeros({2, 3}), {.name = "c"});
  const auto in_replicas = [&](const std::vector<Variable>& first,
                               const std::vector<Variable>& second) {
    strategy.run([&] {
      const auto& variables = current_replica_context()->replica == 0 ? first : second;
      std::vector<Gradient> gradients;
      for (const Variable& v : variables) gradients.push_back(Tensor::full(v.shape(), 1.0f));
      EXPECT_THROW(sgd->apply_gradients(gradients, variables), RuntimeError);
    });
  };
  in_replicas({a, b}, {a});
  in_replicas({a, b}, {b, a});
  in_replicas({a}, {c});
  EXPECT_EQ(values_of(a), std::vector<float>(6, 0));
  EXPECT_EQ(sgd->iterations(), 0);
}

TEST(OptimizerTest, RejectsReplicasAllWithoutGradient) {
  TPUStrategy strategy({.num_cores = 2});
  const SGD sgd(SGDOptions{});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  strategy.run([&] { EXPECT_THROW(sgd->apply_gradients({{}}, {w}), ValueError); });
  strategy.run([&] { sgd->apply_gradients({}, {}); });
  EXPECT_EQ(sgd->iterations(), 0);
}

TEST(OptimizerTest, RejectsFloat64InSeveralReplicasByName) {
  TPUStrategy strategy({.num_cores = 2});
  const SGD sgd(SGDOptions{});
  const Variable w(Tensor::zeros({1}, DType::kFloat64), {.name = "precise"});
  const std::string message = message_of([&] {
    strategy.run([&] { sgd->apply_gradients({Tensor::zeros({1}, DType::kFloat64)}, {w}); });
  });
  EXPECT_THAT(message, HasSubstr("precise"));
  EXPECT_THROW(
      strategy.run([&] { sgd->apply_gradients({Tensor::zeros({1}, DType::kFloat64)}, {w}); }),
      NotImplementedError);
}

TEST(OptimizerTest, CanBeUsedAgainAfterAReplicaFailed) {
  TPUStrategy strategy({.num_cores = 2});
  const SGD sgd({.learning_rate = 1});
  const Variable w(Tensor::zeros({1}), {.name = "w"});
  EXPECT_THROW(strategy.run([&] {
    const int r = current_replica_context()->replica;
    sgd->apply_gradients({Tensor::full<float>({r + 1}, 1)}, {w});
  }),
               ValueError);
  strategy.run([&] { sgd->apply_gradients({Tensor::full<float>({1}, 1)}, {w}); });
  EXPECT_EQ(values_of(w)[0], -2);
}

TEST(OptimizerTest, ReplicasThatListVariablesInAnotherOrderAreAnError) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Variable a(Tensor::scalar<float>(0), {.name = "a"});
  const Variable b(Tensor::scalar<float>(0), {.name = "b"});
  const optimizers::SGD sgd({.learning_rate = 1});
  EXPECT_THROW(strategy.run([&] {
    const bool first = current_replica_context()->replica == 0;
    sgd->apply_gradients({Tensor::scalar<float>(1), Tensor::scalar<float>(10)},
                         {first ? a : b, first ? b : a});
  }),
               RuntimeError);
  EXPECT_EQ(a.read().item<float>(), 0);
}

}  // namespace keel::optimizer_test

// OptimizerOptions::lazy_rows: tables with deferred rows equal those of steps that update all rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/optimizers/adadelta.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/adam_w.h>
#include <keel/optimizers/adamax.h>
#include <keel/optimizers/ftrl.h>
#include <keel/optimizers/lamb.h>
#include <keel/optimizers/lion.h>
#include <keel/optimizers/nadam.h>
#include <keel/optimizers/rmsprop.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/autodiff/small_tensors.h"
#include "tests/distribute/fake_processes.h"

namespace keel::lazy_rows_test {

using testing_support::message_of;

using distribute::FakeJob;
using distribute::ProcessGroup;
using distribute::TPUStrategy;
using Bits = std::vector<float>;

constexpr int64_t kRows = 60;
constexpr int64_t kDim = 5;

LearningRate falling() {
  return optimizers::schedules::ExponentialDecay(
      {.initial_learning_rate = 0.05, .decay_steps = 7, .decay_rate = 0.9});
}

std::vector<OptimizerHandle> all_kinds(LazyRows lazy) {
  return {
      optimizers::Adam({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::Adam({.learning_rate = 0.1,
                        .amsgrad = true,
                        .clipvalue = 0.3,
                        .loss_scale_factor = 4,
                        .lazy_rows = lazy}),
      optimizers::AdamW({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::SGD({.learning_rate = falling(), .momentum = 0.9, .lazy_rows = lazy}),
      optimizers::SGD(
          {.learning_rate = 0.05, .momentum = 0.8, .nesterov = true, .lazy_rows = lazy}),
      optimizers::SGD({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::Adagrad({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::Adagrad({.learning_rate = 0.1, .lazy_rows = lazy}),
      optimizers::RMSprop({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::RMSprop(
          {.learning_rate = falling(), .momentum = 0.9, .centered = true, .lazy_rows = lazy}),
      optimizers::Adadelta({.learning_rate = 0.5, .lazy_rows = lazy}),
      optimizers::Adamax({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::Nadam({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::Lion({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::Ftrl({.learning_rate = falling(), .lazy_rows = lazy}),
  };
}

Variable table(int64_t rows = kRows, DType dtype = DType::kFloat32) {
  Tensor start = Tensor::zeros({rows, kDim});
  float x = 0;
  for (float& value : start.mutable_data<float>()) value = std::sin(x += 0.37F);
  return Variable(start.cast(dtype), {.name = "table"});
}

Variable bias() { return Variable(Tensor::full({kDim}, 0.5F), {.name = "bias"}); }

// Returns rows, one of them twice, that differ for each step and replica.
IndexedSlices slices(const Variable& of, int64_t step, int64_t replica = 0) {
  std::mt19937 random(static_cast<uint32_t>(1000 * replica + step));
  std::vector<int64_t> ids(6);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % of.shape()[0]);
  ids[1] = ids[0];
  ids[2] = step % 3;  // named by all replicas
  std::vector<float> values(ids.size() * kDim);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  values[3] = -0.0F;
  return {.ids = Tensor::from(ids, {6}),
          .values = Tensor::from(values, {6, kDim}).cast(of.dtype()),
          .dense_shape = of.shape()};
}

Gradient bias_gradient(int64_t step) {
  return Tensor::full({kDim}, static_cast<float>(std::cos(static_cast<double>(step))));
}

Bits bits(const Variable& variable) {
  return variable.read().cast(DType::kFloat32).to_vector<float>();
}

// Returns the table and its slots.
Bits state_of(Optimizer& optimizer, const Variable& of) {
  Bits out;
  // Reads the slots first, because their rows are deferred too.
  for (const Variable& slot : optimizer.slots(of)) {
    for (const float x : bits(slot)) out.push_back(x);
  }
  for (const float x : bits(of)) out.push_back(x);
  return out;
}

void expect_bits(const Bits& received, const Bits& expected, const std::string& what) {
  ASSERT_EQ(received.size(), expected.size());
  ASSERT_EQ(std::memcmp(received.data(), expected.data(), received.size() * sizeof(float)), 0)
      << what;
}

TEST(LazyRowsTest, ReplayGivesTheBitsOfStepsOfAllRows) {
  const auto kinds = all_kinds(LazyRows::kReplay), dense_kinds = all_kinds(LazyRows::kOff);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Variable lazy = table(), dense = table(), b = bias(), dense_b = bias();
    for (int64_t step = 0; step < 60; ++step) {
      kinds[k]->apply_gradients({slices(lazy, step), bias_gradient(step)}, {lazy, b});
      dense_kinds[k]->apply_gradients({slices(dense, step), bias_gradient(step)}, {dense, dense_b});
      if (step == 20 || step == 21) expect_bits(bits(lazy), bits(dense), kinds[k]->name());
    }
    expect_bits(state_of(*kinds[k], lazy), state_of(*dense_kinds[k], dense), kinds[k]->name());
    expect_bits(bits(b), bits(dense_b), kinds[k]->name());
  }
}

TEST(LazyRowsTest, ReplayGivesTheSameFloat64) {
  const auto kinds = all_kinds(LazyRows::kReplay), dense_kinds = all_kinds(LazyRows::kOff);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Variable lazy = table(kRows, DType::kFloat64), dense = table(kRows, DType::kFloat64);
    for (int64_t step = 0; step < 40; ++step) {
      kinds[k]->apply_gradients({slices(lazy, step)}, {lazy});
      dense_kinds[k]->apply_gradients({slices(dense, step)}, {dense});
    }
    EXPECT_EQ(lazy.read().to_vector<double>(), dense.read().to_vector<double>());
  }
}

TEST(LazyRowsTest, TheClosedFormIsWithinAMillionth) {
  const auto kinds = all_kinds(LazyRows::kClosedForm), dense_kinds = all_kinds(LazyRows::kOff);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Variable lazy = table(), dense = table();
    for (int64_t step = 0; step < 150; ++step) {
      kinds[k]->apply_gradients({slices(lazy, step)}, {lazy});
      dense_kinds[k]->apply_gradients({slices(dense, step)}, {dense});
    }
    const Bits received = bits(lazy), expected = bits(dense);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(received[i], expected[i], 2e-6 * std::max(1.0F, std::abs(expected[i])))
          << kinds[k]->name();
    }
  }
}

template <class Made, class Options>
std::function<OptimizerHandle(LazyRows)> maker(Options options) {
  return [options](LazyRows lazy) mutable -> OptimizerHandle {
    options.lazy_rows = lazy;
    return Made(options);
  };
}

// A row is updated once and then misses many steps, which leave little of its weights or lead to
// numbers beyond the range of its dtype.
TEST(LazyRowsTest, TheClosedFormHoldsWhereFactorsAreExtreme) {
  struct Case {
    const char* name;
    std::function<OptimizerHandle(LazyRows)> make;
    int64_t missed;
  };
  using namespace optimizers;
  const auto adam_w = [](AdamWOptions options) { return maker<AdamW>(options); };
  const Case cases[] = {
      {"little left", adam_w({.learning_rate = 0.5, .weight_decay = 0.8}), 100},
      {"nothing left", adam_w({.learning_rate = 0.5, .weight_decay = 0.8}), 300},
      {"slow", adam_w({.learning_rate = 0.1, .weight_decay = 0.3, .beta_1 = 0.99}), 600},
      {"all its rate", adam_w({.learning_rate = 1, .weight_decay = 0.2}), 50},
      {"momentum",
       maker<SGD>(SGDOptions{.learning_rate = 0.25, .momentum = 0.99, .weight_decay = 1}), 2500},
      {"small epsilon",
       maker<Adam>(
           AdamOptions{.learning_rate = 0.01, .beta_1 = 0.95, .beta_2 = 0.95, .epsilon = 1e-16}),
       3000}};
  for (const Case& c : cases) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const auto weight_of = [&](LazyRows lazy) {
        const OptimizerHandle optimizer = c.make(lazy);
        const Variable t(Tensor::full({3, 4}, 1.0F).cast(dtype), {.name = "t"});
        const auto step = [&](int64_t id, float gradient) {
          optimizer->apply_gradients(
              {IndexedSlices{.ids = Tensor::from<int64_t>({id}, {1}),
                             .values = Tensor::full({1, 4}, gradient).cast(dtype),
                             .dense_shape = t.shape()}},
              {t});
        };
        step(2, 1);
        for (int64_t i = 0; i < c.missed; ++i) step(0, 0.5F);
        return t.read().cast(DType::kFloat64).to_vector<double>()[8];
      };
      const double dense = weight_of(LazyRows::kOff);
      EXPECT_NEAR(weight_of(LazyRows::kClosedForm), dense, 1e-5 * std::max(std::abs(dense), 1e-7))
          << c.name << ", " << name_of(dtype);
    }
  }
}

TEST(LazyRowsTest, NormsAreClippedAlike) {
  const auto with = [](LazyRows lazy, bool global) -> OptimizerHandle {
    if (global) return optimizers::Adam({.global_clipnorm = 1.5, .lazy_rows = lazy});
    return optimizers::SGD({.momentum = 0.9, .clipnorm = 0.5, .lazy_rows = lazy});
  };
  for (const bool global : {false, true}) {
    const OptimizerHandle lazily = with(LazyRows::kReplay, global);
    const OptimizerHandle densely = with(LazyRows::kOff, global);
    const Variable lazy = table(), dense = table();
    for (int64_t step = 0; step < 40; ++step) {
      lazily->apply_gradients({slices(lazy, step)}, {lazy});
      densely->apply_gradients({slices(dense, step)}, {dense});
    }
    const Bits received = state_of(*lazily, lazy), expected = state_of(*densely, dense);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(received[i], expected[i], 1e-6);
  }
}

TEST(LazyRowsTest, RowsThatNobodyNeedsWait) {
  const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  const Variable t = table();
  const auto step = [&](int64_t id) {
    const Tensor ids = Tensor::from<int64_t>({id}, {1}), values = Tensor::full({1, kDim}, 0.5F);
    adam->apply_gradients({IndexedSlices{ids, values, t.shape()}}, {t});
  };
  step(3);
  step(4);
  // Returns a value of row 3 after the needed rows have been materialized.
  const auto value = [&](const Tensor& needed) {
    const auto [first, row_step] = t.read_rows(needed).rows<float>();
    return first[3 * row_step];
  };
  const float before = value(Tensor::from<int64_t>({4}, {1}));
  for (int i = 0; i < 5; ++i) step(7);
  EXPECT_EQ(value(Tensor::from<int32_t>({4, -1, 1000}, {3})), before);
  const float there = value(Tensor::from<int64_t>({3}, {1}));
  EXPECT_LT(there, before);
  EXPECT_EQ(t.read().data<float>()[3 * kDim], there);
}

TEST(LazyRowsTest, ReadingRowsBetweenStepsShowsThoseOfNow) {
  const auto kinds = all_kinds(LazyRows::kReplay), dense_kinds = all_kinds(LazyRows::kOff);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Variable lazy = table(), dense = table();
    for (int64_t step = 0; step < 30; ++step) {
      kinds[k]->apply_gradients({slices(lazy, step)}, {lazy});
      dense_kinds[k]->apply_gradients({slices(dense, step)}, {dense});
      const Tensor ids = slices(lazy, 500 + step).ids;
      EXPECT_EQ(ops::gather(lazy.read_rows(ids), ids).to_vector<float>(),
                ops::gather(dense, ids).to_vector<float>());
    }
    expect_bits(state_of(*kinds[k], lazy), state_of(*dense_kinds[k], dense), kinds[k]->name());
  }
}

// Values that were read do not change, and the tape sees the table.
TEST(LazyRowsTest, ValuesThatWereReadDoNotChange) {
  const OptimizerHandle adam =
      optimizers::Adam({.learning_rate = 0.1, .lazy_rows = LazyRows::kReplay});
  const Variable t = table();
  for (int64_t step = 0; step < 5; ++step) adam->apply_gradients({slices(t, step)}, {t});
  const Tensor before = t.read(), slot = adam->slots(t)[0].read();
  const Bits values = before.to_vector<float>(), slot_values = slot.to_vector<float>();
  for (int64_t step = 5; step < 20; ++step) {
    GradientTape tape({.persistent = true});
    const Tensor ids = slices(t, step).ids;
    const Tensor loss = ops::sum(ops::square(ops::gather(t.read_rows(ids), ids)));
    const auto gradients = tape.gradient(loss, {t});
    ASSERT_TRUE(gradients[0].is_slices());
    adam->apply_gradients(gradients, {t});
  }
  EXPECT_EQ(before.to_vector<float>(), values);
  EXPECT_EQ(slot.to_vector<float>(), slot_values);
}

TEST(LazyRowsTest, AssigningTheTableKeepsTheSlots) {
  for (const bool dense_between : {false, true}) {
    const OptimizerHandle lazily = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
    const OptimizerHandle densely = optimizers::Adam({});
    const Variable lazy = table(), dense = table();
    for (int64_t step = 0; step < 40; ++step) {
      const bool whole = dense_between && step % 9 == 5;
      const auto gradient = [&](const Variable& v) -> Gradient {
        if (!whole) return slices(v, step);
        return Gradient(slices(v, step)).dense();
      };
      lazily->apply_gradients({gradient(lazy)}, {lazy});
      densely->apply_gradients({gradient(dense)}, {dense});
      if (step == 20) {
        for (const Variable& v : {lazy, dense}) v.assign(Tensor::full(v.shape(), 0.25F));
      }
      if (step == 30) {
        for (const Variable& v : {lazy, dense}) {
          v.update([](Tensor& value) { value.mutable_data<float>()[7] = 9; });
        }
      }
    }
    expect_bits(state_of(*lazily, lazy), state_of(*densely, dense), "adam");
  }
}

// Two optimizers of one table, tables that are not in every step, and weight decay that is switched
// on and off.
TEST(LazyRowsTest, StepsOfOthersComeBetween) {
  const auto trained = [](LazyRows lazy) {
    const OptimizerHandle adam =
        optimizers::Adam({.learning_rate = 0.05, .weight_decay = 0.2, .lazy_rows = lazy});
    const OptimizerHandle sgd =
        optimizers::SGD({.learning_rate = 0.05, .momentum = 0.9, .lazy_rows = lazy});
    const OptimizerHandle plain = optimizers::RMSprop({.learning_rate = 0.01});
    const Variable a = table(), b = table();
    for (int64_t step = 0; step < 80; ++step) {
      if (step == 30) adam->exclude_from_weight_decay({a});
      if (step == 60) adam->exclude_from_weight_decay({});
      const Gradient of_b = step % 5 == 1 ? Gradient() : slices(b, 200 + step);
      adam->apply_gradients({slices(a, step), of_b}, {a, b});
      if (step % 7 == 3) sgd->apply_gradients({slices(a, 400 + step)}, {a});
      if (step % 20 == 10) plain->apply_gradients({slices(a, 600 + step)}, {a});
    }
    Bits out = state_of(*adam, a);
    for (const auto& [optimizer, of] : {std::pair(adam, b), std::pair(sgd, a)}) {
      for (const float x : state_of(*optimizer, of)) out.push_back(x);
    }
    return out;
  };
  expect_bits(trained(LazyRows::kReplay), trained(LazyRows::kOff), "all");
}

// A tensor that is held when another optimizer takes over keeps its values, and the table gets the
// steps that its rows have missed.
TEST(LazyRowsTest, StepsOfOthersLeaveTensorsThatWereReadAlone) {
  const auto trained = [](LazyRows lazy) {
    const OptimizerHandle adam = optimizers::Adam({.learning_rate = 0.05, .lazy_rows = lazy});
    const OptimizerHandle sgd =
        optimizers::SGD({.learning_rate = 0.05, .momentum = 0.9, .lazy_rows = lazy});
    const Variable t = table();
    Bits out;
    for (int64_t step = 0; step < 30; ++step) {
      const IndexedSlices gradient = slices(t, step);
      const Tensor held = t.read_rows(gradient.ids);
      const Bits before = ops::gather(held, gradient.ids).to_vector<float>();
      (step % 2 == 0 ? adam : sgd)->apply_gradients({gradient}, {t});
      EXPECT_EQ(ops::gather(held, gradient.ids).to_vector<float>(), before);
    }
    for (const auto& optimizer : {adam, sgd}) {
      for (const float x : state_of(*optimizer, t)) out.push_back(x);
    }
    return out;
  };
  expect_bits(trained(LazyRows::kReplay), trained(LazyRows::kOff), "all");
}

// The history of steps is dropped when no row is deferred.
TEST(LazyRowsTest, ReadingAllRowsNowAndThenChangesNothing) {
  const auto kinds = all_kinds(LazyRows::kReplay), dense_kinds = all_kinds(LazyRows::kOff);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Variable lazy = table(), dense = table();
    for (int64_t step = 0; step < 60; ++step) {
      kinds[k]->apply_gradients({slices(lazy, step)}, {lazy});
      dense_kinds[k]->apply_gradients({slices(dense, step)}, {dense});
      if (step % 13 == 5) expect_bits(bits(lazy), bits(dense), kinds[k]->name());
    }
    expect_bits(state_of(*kinds[k], lazy), state_of(*dense_kinds[k], dense), kinds[k]->name());
  }
}

TEST(LazyRowsTest, ATableOutlivesItsOptimizer) {
  const Variable lazy = table(), dense = table();
  Variable slot, dense_slot;
  {
    const OptimizerHandle lazily = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
    const OptimizerHandle densely = optimizers::Adam({});
    for (int64_t step = 0; step < 20; ++step) {
      lazily->apply_gradients({slices(lazy, step)}, {lazy});
      densely->apply_gradients({slices(dense, step)}, {dense});
    }
    slot = lazily->slots(lazy)[1];
    dense_slot = densely->slots(dense)[1];
  }
  expect_bits(bits(slot), bits(dense_slot), "slot");
  expect_bits(bits(lazy), bits(dense), "table");
}

TEST(LazyRowsTest, TrainingGoesOnFromStateThatWasSaved) {
  const auto kinds = all_kinds(LazyRows::kReplay), dense_kinds = all_kinds(LazyRows::kOff);
  const auto others = all_kinds(LazyRows::kReplay);
  for (size_t k = 0; k < kinds.size(); ++k) {
    Variable lazy = table();
    const Variable dense = table();
    for (int64_t step = 0; step < 25; ++step) {
      kinds[k]->apply_gradients({slices(lazy, step)}, {lazy});
      dense_kinds[k]->apply_gradients({slices(dense, step)}, {dense});
    }
    const Variable restored = table();
    const auto from = kinds[k]->variables({lazy}), to = others[k]->variables({restored});
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i) to[i].assign(from[i].read());
    restored.assign(lazy.read());
    for (int64_t step = 25; step < 50; ++step) {
      others[k]->apply_gradients({slices(restored, step)}, {restored});
      dense_kinds[k]->apply_gradients({slices(dense, step)}, {dense});
    }
    expect_bits(state_of(*others[k], restored), state_of(*dense_kinds[k], dense), kinds[k]->name());
  }
}

// Replicas in several processes, which are threads of this process, with lookups and reads between
// the steps.
Bits trained(ProcessGroup& group, const OptimizerHandle& optimizer, int hosts) {
  TPUStrategy strategy({.num_hosts = hosts, .num_cores = 1}, group);
  const auto scope = strategy.scope();
  const Variable t = table(), b = bias();
  t.set_path("layer/table");
  b.set_path("layer/bias");
  Bits out;
  for (int64_t step = 0; step < 20; ++step) {
    strategy.run([&] {
      const int64_t replica = current_replica_context()->replica;
      const Tensor ids = slices(t, 300 + step, replica).ids;
      if (step % 2 == 0) t.read_rows(ids);
      // Some replicas have no gradient of this variable.
      const bool none = replica == 2 && step % 4 == 1;
      optimizer->apply_gradients(
          {none ? Gradient() : slices(t, step, replica), bias_gradient(step + replica)}, {t, b});
    });
    if (step == 9) {
      for (const float x : bits(t)) out.push_back(x);
    }
  }
  for (const float x : state_of(*optimizer, t)) out.push_back(x);
  return out;
}

Bits trained_by(const std::function<OptimizerHandle()>& make, int processes, int hosts,
                int workers) {
  const int before = num_workers();
  set_num_workers(workers);
  FakeJob job(processes);
  std::vector<Bits> all(processes);
  const auto errors =
      job.run([&](ProcessGroup& group) { all[group.rank()] = trained(group, make(), hosts); });
  set_num_workers(before);
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (const Bits& other : all) EXPECT_EQ(other, all[0]);
  return all[0];
}

TEST(LazyRowsTest, ReplicasHaveTheBitsOfStepsOfAllRows) {
  for (size_t k = 0; k < all_kinds(LazyRows::kOff).size(); ++k) {
    const Bits expected = trained_by([&] { return all_kinds(LazyRows::kOff)[k]; }, 1, 4, 1);
    for (const int workers : {1, 3}) {
      expect_bits(trained_by([&] { return all_kinds(LazyRows::kReplay)[k]; }, 1, 4, workers),
                  expected, all_kinds(LazyRows::kOff)[k]->name());
    }
  }
}

TEST(LazyRowsTest, ProcessesHaveTheBitsOfStepsOfAllRows) {
  for (const size_t k : {0, 2, 3, 12}) {
    const auto lazily = [&] { return all_kinds(LazyRows::kReplay)[k]; };
    const Bits expected = trained_by([&] { return all_kinds(LazyRows::kOff)[k]; }, 1, 6, 2);
    expect_bits(trained_by(lazily, 1, 6, 2), expected, "1 process");
    expect_bits(trained_by(lazily, 2, 6, 1), expected, "2 processes");
    expect_bits(trained_by(lazily, 3, 6, 2), expected, "3 processes");
  }
}

// Each process reads other rows, and a read rounds the rows that it materializes.
TEST(LazyRowsTest, ProcessesRefuseTheClosedForm) {
  FakeJob job(2);
  const auto errors = job.run([&](ProcessGroup& group) {
    trained(group, optimizers::Adam({.lazy_rows = LazyRows::kClosedForm}), 2);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("closed_form"), std::string::npos) << error;
    EXPECT_NE(error.find("replay"), std::string::npos) << error;
  }
}

// Rows with steps missed before the last run of steps are mixed with other rows, in batches that
// depend on the number of workers.
TEST(LazyRowsTest, TheClosedFormHasTheSameBitsForAnyNumberOfWorkers) {
  const auto trained_by_workers = [](int workers) {
    const int before = num_workers();
    set_num_workers(workers);
    constexpr int64_t kMany = 4096;
    const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kClosedForm});
    const Variable t = table(kMany), other = table();
    for (int64_t step = 0; step < 12; ++step) {
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < kMany; ++i) {
        if (step < 3 || (step == 9 ? i % 211 != 0 : i % 97 == step)) ids.push_back(i);
      }
      const auto n = static_cast<int64_t>(ids.size());
      const Gradient of_t = IndexedSlices{.ids = Tensor::from(ids, {n}),
                                          .values = Tensor::full({n, kDim}, 0.5F),
                                          .dense_shape = t.shape()};
      const bool in_step = step != 4 && step != 8;
      adam->apply_gradients({in_step ? of_t : Gradient(), slices(other, step)}, {t, other});
    }
    std::vector<int64_t> third;
    for (int64_t i = 0; i < kMany; i += 3) third.push_back(i);
    const Tensor ids = Tensor::from(third, {static_cast<int64_t>(third.size())});
    const Bits out = ops::gather(t.read_rows(ids), ids).to_vector<float>();
    set_num_workers(before);
    return out;
  };
  expect_bits(trained_by_workers(3), trained_by_workers(1), "3 workers");
}

TEST(LazyRowsTest, ManyThreadsMayReadAtOnce) {
  const OptimizerHandle lazily = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  const OptimizerHandle densely = optimizers::Adam({});
  const Variable lazy = table(5000), dense = table(5000);
  for (int64_t step = 0; step < 400; ++step) {
    lazily->apply_gradients({slices(lazy, step)}, {lazy});
    densely->apply_gradients({slices(dense, step)}, {dense});
  }
  std::vector<int64_t> all(5000);
  for (int64_t i = 0; i < 5000; ++i) all[i] = (i * 37) % 5000;
  const Tensor ids = Tensor::from(all, {5000});
  std::vector<Bits> read(4);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (i % 2 == 0) lazy.read_rows(ids);
        read[i] = lazy.read().to_vector<float>();
      });
    }
  }
  for (const Bits& r : read) expect_bits(r, bits(dense), "thread");
}

TEST(LazyRowsTest, RefusesWhatNeedsAllRows) {
  const auto both = [](const std::string& message, const char* other) {
    EXPECT_NE(message.find("lazy_rows"), std::string::npos) << message;
    EXPECT_NE(message.find(other), std::string::npos) << message;
  };
  both(message_of<ValueError>(
           [] { optimizers::Adam({.use_ema = true, .lazy_rows = LazyRows::kReplay}); }),
       "use_ema");
  both(message_of<ValueError>([] {
         optimizers::SGD({.gradient_accumulation_steps = 2, .lazy_rows = LazyRows::kClosedForm});
       }),
       "gradient_accumulation_steps");
  both(message_of<ValueError>([] { optimizers::Lamb({.lazy_rows = LazyRows::kReplay}); }), "Lamb");
  both(message_of<ValueError>(
           [] { optimizers::SGD({.momentum = 1, .lazy_rows = LazyRows::kClosedForm}); }),
       "closed_form");
  // The momentum underflows, and then rows do not change any more.
  both(message_of<ValueError>([] {
         optimizers::Lion({.beta_1 = 0.9, .beta_2 = 0.4, .lazy_rows = LazyRows::kClosedForm});
       }),
       "closed_form");
  const auto keep = [](const Tensor& w) { return w; };
  const Variable bound(Tensor::zeros({4, kDim}), {.name = "bound", .constraint = keep});
  const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  both(message_of<ValueError>([&] { adam->apply_gradients({slices(bound, 0)}, {bound}); }),
       "constraint");
  EXPECT_EQ(adam->iterations(), 0);
  adam->apply_gradients({Gradient(slices(bound, 0)).dense()}, {bound});
  // A rule that does not move rows without a gradient.
  optimizers::Adagrad({.lazy_rows = LazyRows::kReplay})
      ->apply_gradients({slices(bound, 0)}, {bound});
}

TEST(LazyRowsTest, ConfigsHaveTheKeyWhereItIsSet) {
  EXPECT_EQ(optimizers::Adam({})->get_config().find("lazy_rows"), nullptr);
  EXPECT_EQ(optimizers::serialize(*optimizers::Adam({})).find("lazy_rows"), nullptr);
  const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kClosedForm});
  EXPECT_EQ(adam->get_config()["lazy_rows"].string(), "closed_form");
  // The key is in a place that Keras's reader ignores.
  const Config whole = optimizers::serialize(*adam);
  EXPECT_EQ(whole["config"].find("lazy_rows"), nullptr);
  EXPECT_EQ(whole["lazy_rows"].string(), "closed_form");
  const OptimizerHandle copy = optimizers::deserialize(whole);
  EXPECT_EQ(copy->get_config()["lazy_rows"].string(), "closed_form");
  Config other = whole;
  other.set("lazy_rows", "always");
  EXPECT_NE(message_of<ValueError>([&] { optimizers::deserialize(other); }).find("replay"),
            std::string::npos);
}

}  // namespace keel::lazy_rows_test

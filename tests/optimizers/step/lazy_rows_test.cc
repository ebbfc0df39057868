// OptimizerOptions::lazy_rows: tables with deferred rows equal those of steps that update all rows.
// Tests optimizers/step/lazy_table.cc.
#include "tests/optimizers/step/lazy_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::lazy_rows_test {

using namespace lazy_rows_testing;  // NOLINT: what these tests are about
using testing::HasSubstr;
using testing_support::message_of;

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

TEST(LazyRowsTest, NormsAreClippedAsInStepsOfAllRows) {
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

TEST(LazyRowsTest, UnusedRowsAreDeferred) {
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

TEST(LazyRowsTest, ReadingRowsBetweenStepsReturnsCurrentValues) {
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
TEST(LazyRowsTest, StepsOfOtherOptimizersMayInterleave) {
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
TEST(LazyRowsTest, StepsOfOtherOptimizersDoNotChangeReadTensors) {
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
TEST(LazyRowsTest, ReadingAllRowsDoesNotChangeResults) {
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

TEST(LazyRowsTest, TrainingContinuesFromSavedState) {
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

TEST(LazyRowsTest, RejectsOptionsThatNeedAllRows) {
  const auto both = [](const std::string& message, const char* other) {
    EXPECT_THAT(message, HasSubstr("lazy_rows"));
    EXPECT_THAT(message, HasSubstr(other));
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

TEST(LazyRowsTest, ConfigsHaveTheKeyOnlyIfSet) {
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
  EXPECT_THAT(message_of<ValueError>([&] { optimizers::deserialize(other); }), HasSubstr("replay"));
}

}  // namespace keel::lazy_rows_test

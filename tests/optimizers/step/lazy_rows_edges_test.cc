// OptimizerOptions::lazy_rows gives the same values as without it when steps fail, tables are
// destroyed, or values are not finite.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/autodiff/small_tensors.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::lazy_rows_edges_test {

using distribute::TPUStrategy;
using testing_support::message_of;
using testing_support::values_of;
using Floats = std::vector<float>;
using Make = std::function<OptimizerHandle(LazyRows)>;

Variable table(int64_t rows, int64_t dim) {
  return Variable(Tensor::full({rows, dim}, 1.0F), {.name = "table"});
}

IndexedSlices rows_from(const Variable& of, int64_t first, int64_t n, float gradient = 0.5F) {
  std::vector<int64_t> ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return {.ids = Tensor::from(ids, {n}),
          .values = Tensor::full(of.shape().with(0, n), gradient),
          .dense_shape = of.shape()};
}
IndexedSlices one_row(const Variable& of, int64_t id, float gradient = 0.5F) {
  return rows_from(of, id, 1, gradient);
}

// Returns the slots, whose rows are deferred too, then the table.
Floats state_of(const Optimizer& optimizer, const Variable& of) {
  Floats out;
  for (const Variable& slot : optimizer.slots(of)) {
    for (const float x : values_of(slot)) out.push_back(x);
  }
  for (const float x : values_of(of)) out.push_back(x);
  return out;
}

// All NaNs are treated as equal.
std::vector<uint32_t> bits(const Floats& of) {
  std::vector<uint32_t> out;
  for (const float x : of) out.push_back(std::isnan(x) ? 0x7FC00000U : std::bit_cast<uint32_t>(x));
  return out;
}

// The result of `make` is the same with and without lazy rows.
void expect_alike(const std::function<Floats(LazyRows)>& make) {
  EXPECT_EQ(bits(make(LazyRows::kReplay)), bits(make(LazyRows::kOff)));
}

TEST(LazyRowsEdgesTest, AStepThatRunsOutOfMemoryChangesNothing) {
  // Nadam has state shared by all variables in addition to slots.
  const auto nadam = [](LazyRows lazy) { return optimizers::Nadam({.lazy_rows = lazy}); };
  const auto adam = [](LazyRows lazy) { return optimizers::Adam({.lazy_rows = lazy}); };
  for (const Make& make : std::vector<Make>{adam, nadam}) {
    expect_alike([&](LazyRows lazy) {
      const OptimizerHandle optimizer = make(lazy);
      const Variable of = table(512, 16);
      optimizer->apply_gradients({one_row(of, 0)}, {of});
      const std::vector<Gradient> next = {rows_from(of, 1, 64)};  // 4096 bytes in total
      for (const int64_t bytes : {1, 600, 1500, 4000}) {
        const MemoryLimit limit(bytes);
        EXPECT_THROW(optimizer->apply_gradients(next, {of}), ValueError) << bytes;
      }
      EXPECT_EQ(optimizer->iterations(), 1);
      Floats out = state_of(*optimizer, of);
      optimizer->apply_gradients(next, {of});
      for (const float x : state_of(*optimizer, of)) out.push_back(x);
      return out;
    });
  }
}

TEST(LazyRowsEdgesTest, AReplicatedStepThatRunsOutOfMemoryChangesNothing) {
  expect_alike([](LazyRows lazy) {
    const OptimizerHandle nadam = optimizers::Nadam({.lazy_rows = lazy});
    const Variable of = table(512, 16);
    TPUStrategy strategy({.num_cores = 2});
    const auto step = [&](int64_t id, std::optional<int64_t> bytes) {
      strategy.run([&] {
        const int replica = current_replica_context()->replica;
        const Gradient gradient = one_row(of, id + replica);
        std::optional<MemoryLimit> limit;
        if (bytes && replica == 1) limit.emplace(*bytes);
        nadam->apply_gradients({gradient}, {of});
      });
    };
    step(0, std::nullopt);
    EXPECT_THROW(step(2, 1), ValueError);
    Floats out = state_of(*nadam, of);
    step(2, std::nullopt);
    EXPECT_EQ(nadam->iterations(), 2);
    for (const float x : state_of(*nadam, of)) out.push_back(x);
    return out;
  });
}

TEST(LazyRowsEdgesTest, SlotsOutliveTheirTable) {
  for (const bool trains_on : {false, true}) {
    for (const bool optimizer_goes : {false, true}) {
      expect_alike([&](LazyRows lazy) {
        OptimizerHandle adam = optimizers::Adam({.learning_rate = 0.1, .lazy_rows = lazy});
        Variable of = table(300, 3);
        for (int64_t step = 0; step < 10; ++step) adam->apply_gradients({one_row(of, step)}, {of});
        const Variable slot = adam->slots(of)[1];
        of = Variable();
        const Variable other = table(4, 2);
        for (int64_t step = 0; trains_on && step < 3; ++step) {
          adam->apply_gradients({one_row(other, step)}, {other});
        }
        if (optimizer_goes) adam = optimizers::Adam({});
        Floats out = values_of(slot);
        for (const float x : values_of(other)) out.push_back(x);
        return out;
      });
    }
  }
}

// The memory of a destroyed table is freed and may belong to another tensor.
TEST(LazyRowsEdgesTest, TablesWithoutSlotsLeaveNoState) {
  const OptimizerHandle sgd =
      optimizers::SGD({.learning_rate = 0.1, .weight_decay = 0.5, .lazy_rows = LazyRows::kReplay});
  const Variable other = table(4, 2);
  {
    const Variable of = table(64, 16);
    for (int64_t step = 0; step < 6; ++step) sgd->apply_gradients({one_row(of, step)}, {of});
  }
  const Tensor bystander = Tensor::full({64, 16}, 7.0F);
  for (int64_t step = 0; step < 3; ++step) sgd->apply_gradients({one_row(other, step)}, {other});
  EXPECT_EQ(bystander.to_vector<float>(), Floats(64 * 16, 7.0F));
}

TEST(LazyRowsEdgesTest, ATableThatRunsOutOfMemoryLeavesOthersAlone) {
  expect_alike([](LazyRows lazy) {
    const OptimizerHandle adam = optimizers::Adam({.lazy_rows = lazy});
    const Variable small = table(4, 2), large = table(512, 16);
    adam->apply_gradients({one_row(small, 0)}, {small});
    {
      const std::vector<Gradient> gradient = {one_row(large, 1)};
      const MemoryLimit limit(1);
      EXPECT_THROW(adam->apply_gradients(gradient, {large}), ValueError);
    }
    adam->apply_gradients({one_row(small, 1)}, {small});
    adam->apply_gradients({one_row(large, 1)}, {large});
    Floats out = state_of(*adam, small);
    for (const float x : state_of(*adam, large)) out.push_back(x);
    return out;
  });
}

TEST(LazyRowsEdgesTest, SnapshotsOfVariablesAreNotUpdated) {
  for (const LazyRows lazy : {LazyRows::kOff, LazyRows::kReplay}) {
    const OptimizerHandle adam = optimizers::Adam({.lazy_rows = lazy});
    const Variable of = table(8, 2);
    adam->apply_gradients({one_row(of, 0)}, {of});
    const Floats before = values_of(of);
    VariableSnapshot copies;
    copies.add(of);
    {
      const VariableSnapshot::Scope scope(copies);
      EXPECT_EQ(
          message_of<RuntimeError>([&] { adam->apply_gradients({one_row(of, 1)}, {of}); }),
          "Adam.apply_gradients: must not be called in a VariableSnapshot::Scope, where copies "
          "replace the variables; leave the scope first");
    }
    EXPECT_EQ(values_of(of), before);
    EXPECT_EQ(adam->iterations(), 1);
  }
}

// Row 0 has a value or slot that is not finite or leads to a division by zero; then steps of other
// rows follow.
TEST(LazyRowsEdgesTest, NaNPropagatesAsInStepsOfAllRows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto ftrl = [](LazyRows lazy) {
    return optimizers::Ftrl({.learning_rate = 0.1, .lazy_rows = lazy});
  };
  const auto adagrad = [](LazyRows lazy) {
    return optimizers::Adagrad({.learning_rate = 0.1, .weight_decay = 0.1, .lazy_rows = lazy});
  };
  const auto amsgrad = [](LazyRows lazy) {
    return optimizers::Adam({.learning_rate = 0.1, .amsgrad = true, .lazy_rows = lazy});
  };
  const auto momentum = [](LazyRows lazy) {
    return optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9, .lazy_rows = lazy});
  };
  for (const Make& make : std::vector<Make>{ftrl, adagrad, amsgrad, momentum}) {
    const auto slots = static_cast<int64_t>(make(LazyRows::kOff)->slot_specs().size());
    for (int64_t part = -1; part < slots; ++part) {
      for (const float value : {0.0F, -1.0F, NAN, kInfinity, -kInfinity, 1e38F}) {
        for (const bool looks : {false, true}) {
          SCOPED_TRACE(testing::Message() << make(LazyRows::kOff)->class_name() << " part " << part
                                          << " value " << value << " looks " << looks);
          expect_alike([&](LazyRows lazy) {
            const OptimizerHandle optimizer = make(lazy);
            const Variable of = table(2, 3);
            optimizer->apply_gradients({one_row(of, 0, 2.0F)}, {of});
            const Variable changed = part < 0 ? of : optimizer->slots(of)[part];
            changed.assign(Tensor::full({2, 3}, value));
            for (int64_t step = 0; step < 7; ++step) {
              optimizer->apply_gradients({one_row(of, 1)}, {of});
              if (looks) values_of(of);
            }
            return state_of(*optimizer, of);
          });
        }
      }
    }
  }
}

}  // namespace keel::lazy_rows_edges_test

// The memory layout of tables and their slots, and tensors that share the memory.
#include <keel/optimizers/step/variable_memory.h>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

namespace keel::variable_memory_test {

using Floats = std::vector<float>;

Variable variable(const Floats& values, const Shape& shape) {
  return Variable(Tensor::from(values, shape), {});
}

const float* first_of(const Variable& variable) {
  return VariableStorage(variable).value().rows<float>().first;
}

TEST(VariableMemoryTest, PartsOfARowAreContiguous) {
  const Variable table = variable({1, 2, 3, 4}, {2, 2}), m = variable({5, 6, 7, 8}, {2, 2});
  const Variable repeated(Tensor::full({2}, 9.0F).repeated(2), {});
  const VariableMemory memory = packed_memory_of(table, {m, repeated});
  EXPECT_EQ(memory.row_step, 6);
  const auto* all = static_cast<const float*>(memory.values);
  EXPECT_EQ(Floats(all, all + 12), (Floats{1, 2, 5, 6, 9, 9, 3, 4, 7, 8, 9, 9}));
  EXPECT_EQ(memory.slots, (std::vector<void*>{static_cast<float*>(memory.values) + 2,
                                              static_cast<float*>(memory.values) + 4}));
  EXPECT_EQ(table.read().to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(m.read().to_vector<float>(), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(repeated.read().to_vector<float>(), (Floats{9, 9, 9, 9}));
}

TEST(VariableMemoryTest, PackedVariablesStayInPlace) {
  const Variable table = variable({1, 2, 3, 4}, {2, 2}), m = variable({5, 6, 7, 8}, {2, 2});
  void* const first = packed_memory_of(table, {m}).values;
  EXPECT_EQ(packed_memory_of(table, {m}).values, first);
  const Tensor copy = table.read();
  EXPECT_EQ(copy.id(), table.read().id());
  EXPECT_EQ(packed_memory_of(table, {m}).values, first);
  EXPECT_NE(copy.id(), table.read().id());  // the memory is about to change
}

// A tensor that views the rows keeps its values.
TEST(VariableMemoryTest, CopiesSharedMemoryBeforePacking) {
  const Variable table = variable({1, 2, 3, 4}, {2, 2}), m = variable({5, 6, 7, 8}, {2, 2});
  packed_memory_of(table, {m});
  const Tensor held = table.read_rows(Tensor::from<int64_t>({0}, {1}));
  const VariableMemory memory = packed_memory_of(table, {m});
  EXPECT_NE(held.rows<float>().first, memory.values);
  static_cast<float*>(memory.values)[0] = 100;
  EXPECT_EQ(held.clone().to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(table.read().to_vector<float>(), (Floats{100, 2, 3, 4}));
}

TEST(VariableMemoryTest, PacksAssignedValues) {
  const Variable table = variable({1, 2, 3, 4}, {2, 2}), m = variable({5, 6, 7, 8}, {2, 2});
  packed_memory_of(table, {m});
  m.assign(Tensor::zeros({2, 2}));
  const auto* all = static_cast<const float*>(packed_memory_of(table, {m}).values);
  EXPECT_EQ(Floats(all, all + 8), (Floats{1, 2, 0, 0, 3, 4, 0, 0}));
}

TEST(VariableMemoryTest, PacksRowsOfAnyRankAndEmptyTables) {
  const Variable numbers = variable({1, 2}, {2}), slot = variable({3, 4}, {2});
  const auto* all = static_cast<const float*>(packed_memory_of(numbers, {slot}).values);
  EXPECT_EQ(Floats(all, all + 4), (Floats{1, 3, 2, 4}));
  const Variable cubes = variable({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}),
                 zeros = variable(Floats(8), {2, 2, 2});
  EXPECT_EQ(packed_memory_of(cubes, {zeros}).row_step, 8);
  EXPECT_EQ(cubes.read().to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  const Variable none = variable({}, {0, 4}), of_none = variable({}, {0, 4});
  packed_memory_of(none, {of_none});
  EXPECT_EQ(none.read().size(), 0);
}

TEST(VariableMemoryTest, PlacesTablesWithoutSlotsContiguously) {
  const Variable table = variable({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(packed_memory_of(table, {}).row_step, 2);
  EXPECT_FALSE(VariableStorage(table).value().is_view());
}

TEST(VariableMemoryTest, SupportsFloat64) {
  const Variable table(Tensor::from<double>({1, 2}, {2, 1}), {});
  const Variable slot(Tensor::from<double>({3, 4}, {2, 1}), {});
  const auto* all = static_cast<const double*>(packed_memory_of(table, {slot}).values);
  EXPECT_EQ(std::vector<double>(all, all + 4), (std::vector<double>{1, 3, 2, 4}));
}

// Three gradients of one row are summed in the same order whether rows are read in place or as
// tensors. In another order the sums round differently.
TEST(VariableMemoryTest, TheTapeSeesOneTable) {
  const auto trained = [](LazyRows lazy) {
    const OptimizerHandle adam = optimizers::Adam({.learning_rate = 0.1, .lazy_rows = lazy});
    const Variable table = variable({1.1F, 2.2F, 3.3F, 4.4F}, {2, 2});
    const Tensor history = Tensor::from<int64_t>({1, 1}, {2}),
                 target = Tensor::from<int64_t>({1}, {1});
    for (int i = 0; i < 5; ++i) {
      GradientTape tape;
      const Tensor first = ops::gather(table.read_rows(history), history);
      const Tensor second = ops::gather(table.read_rows(target), target);
      const Tensor weights = Tensor::from<float>({1e7F, -1e7F, 0.3F, 0.7F}, {2, 2});
      const Tensor loss = ops::add(ops::sum(ops::multiply(first, weights)),
                                   ops::sum(ops::multiply(second, ops::square(second))));
      adam->apply_gradients(tape.gradient(loss, {table}), {table});
    }
    return table.read().to_vector<float>();
  };
  EXPECT_EQ(trained(LazyRows::kReplay), trained(LazyRows::kOff));
}

TEST(VariableMemoryTest, AStepThatRunsOutOfMemoryChangesNothing) {
  const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  const Variable table(Tensor::full({4096, 16}, 1.0F), {});
  const auto step = [&](int64_t id) {
    adam->apply_gradients({IndexedSlices{.ids = Tensor::from<int64_t>({id}, {1}),
                                         .values = Tensor::full({1, 16}, 0.5F),
                                         .dense_shape = {4096, 16}}},
                          {table});
  };
  for (const bool first : {true, false}) {
    const Floats before = table.read().to_vector<float>();
    {
      const Tensor held = table.read_rows(Tensor::from<int64_t>({0}, {1}));
      const MemoryLimit limit(500'000);  // bytes; a table has 262,144
      EXPECT_THROW(step(3), ValueError);
    }
    EXPECT_EQ(table.read().to_vector<float>(), before);
    EXPECT_EQ(adam->iterations(), first ? 0 : 2);
    step(3);
    step(4);
  }
}

// A table with deferred rows is looked up in place; a step of all its elements moves it out of the
// shared memory.
TEST(VariableMemoryTest, LazyRowsPackATableAndItsSlots) {
  const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  const Variable table = variable({1, 2, 3, 4, 5, 6}, {3, 2});
  const IndexedSlices slices = {.ids = Tensor::from<int64_t>({1}, {1}),
                                .values = Tensor::full({1, 2}, 0.5F),
                                .dense_shape = {3, 2}};
  adam->apply_gradients({slices}, {table});
  const std::vector<Variable> slots = adam->slots(table);
  EXPECT_EQ(first_of(slots[0]), first_of(table) + 2);
  EXPECT_EQ(first_of(slots[1]), first_of(table) + 4);
  const float* const before = first_of(table);
  {
    const Tensor ids = Tensor::from<int64_t>({2, 1}, {2});
    const Tensor rows = table.read_rows(ids);
    EXPECT_EQ(rows.rows<float>().first, before);
    const Tensor splits = Tensor::from<int64_t>({0, 2}, {2});
    const Tensor sum = ops::embedding_pool(rows, ids, splits, {}, ops::Combiner::kSum);
    const Floats all = table.read().to_vector<float>();
    EXPECT_EQ(sum.to_vector<float>(), (Floats{all[4] + all[2], all[5] + all[3]}));
    EXPECT_EQ(ops::gather(rows, ids).to_vector<float>(), (Floats{all[4], all[5], all[2], all[3]}));
  }
  adam->apply_gradients({slices}, {table});
  EXPECT_EQ(first_of(table), before);
  adam->apply_gradients({Gradient(slices).dense()}, {table});
  EXPECT_FALSE(VariableStorage(table).value().is_view());
  EXPECT_FALSE(VariableStorage(slots[0]).value().is_view());
}

// Before the first step a slot stores one row, however large the table is.
TEST(VariableMemoryTest, SlotsTakeNoMemoryBeforeTheFirstStep) {
  const OptimizerHandle sgd = optimizers::SGD({.momentum = 0.9});
  const Variable table = variable({1, 2, 3, 4, 5, 6}, {3, 2});
  sgd->build({table});
  const Variable momentum = sgd->slots(table)[0];
  EXPECT_EQ(VariableStorage(momentum).value().rows<float>().step, 0);
  EXPECT_EQ(momentum.read().to_vector<float>(), Floats(6));
}

}  // namespace keel::variable_memory_test

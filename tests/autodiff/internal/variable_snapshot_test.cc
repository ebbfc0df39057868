#include <keel/autodiff/internal/variable_snapshot.h>

#include <thread>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/variable_storage.h>

#include "tests/autodiff/small_tensors.h"

namespace keel::variable_snapshot_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

TEST(VariableSnapshot, ReplaceVariablesWithinAScope) {
  const Variable v(row({1, 2}), {.name = "v"}), other(row({5}), {.name = "other"});
  v.set_path("layer/v");
  VariableSnapshot copies;
  copies.add(v);
  v.assign(row({3, 4}));
  const uint64_t id = v.id();
  {
    const VariableSnapshot::Scope scope(copies);
    expect_floats(v, {2}, {1, 2});
    expect_floats(other, {1}, {5});
    EXPECT_EQ(v.id(), id);
    EXPECT_EQ(v.path(), "layer/v");
    std::thread([&] { expect_floats(v, {2}, {3, 4}); }).join();
  }
  expect_floats(v, {2}, {3, 4});
}

TEST(VariableSnapshot, KeepAssignedValues) {
  const Variable v(row({1, 2}), {.name = "v"});
  VariableSnapshot copies;
  copies.add(v);
  copies.add(v);
  {
    const VariableSnapshot::Scope scope(copies);
    v.assign_add(row({10, 10}));
    v.update([](Tensor& value) { value.mutable_data<float>()[0] = 7; });
  }
  expect_floats(v, {2}, {1, 2});
  copies.add(v);
  const VariableSnapshot::Scope scope(copies);
  expect_floats(v, {2}, {7, 12});
}

TEST(VariableSnapshot, CopyNoBytesBeforeAnAssignment) {
  const Variable v(row({1, 2}), {.name = "v"});
  const float* const data = v.read().data<float>().data();
  VariableSnapshot copies;
  copies.add(v);
  v.update([](Tensor& value) { value.mutable_data<float>()[0] = 7; });
  EXPECT_NE(v.read().data<float>().data(), data);
  const VariableSnapshot::Scope scope(copies);
  EXPECT_EQ(v.read().data<float>().data(), data);
  expect_floats(v, {2}, {1, 2});
}

TEST(VariableSnapshot, InnerScopesHideOuterOnes) {
  const Variable v(row({1}), {.name = "v"}), w(row({2}), {.name = "w"});
  VariableSnapshot outer, inner;
  outer.add(v);
  inner.add(w);
  v.assign(row({10}));
  w.assign(row({20}));
  const VariableSnapshot::Scope scope(outer);
  expect_floats(v, {1}, {1});
  {
    const VariableSnapshot::Scope nested(inner);
    expect_floats(v, {1}, {10});
    expect_floats(w, {1}, {2});
  }
  expect_floats(v, {1}, {1});
  expect_floats(w, {1}, {20});
}

// Counts how often deferred updates are applied.
class CountingRows final : public DeferredRows {
 public:
  void materialize(std::span<const int64_t>) override { ++some; }
  void materialize_all() override { ++all; }
  int some = 0, all = 0;
};

TEST(VariableSnapshot, HaveAllRowsWithoutMaterializingTheVariables) {
  const Variable v(row({1, 2}), {.name = "v"});
  const auto waiting = std::make_shared<CountingRows>();
  VariableStorage(v).set_deferred_rows(waiting);
  VariableSnapshot copies;
  copies.add(v);
  EXPECT_EQ(waiting->all, 1);
  const VariableSnapshot::Scope scope(copies);
  const Tensor id = Tensor::from<int64_t>({0}, {1});
  expect_floats(v.read_rows(id), {2}, {1, 2});
  expect_floats(v, {2}, {1, 2});
  EXPECT_EQ(waiting->all, 1);
  EXPECT_EQ(waiting->some, 0);
}

TEST(VariableSnapshot, LeaveOutVirtualVariables) {
  const Variable v = Variable::virtual_trainable("tables");
  VariableSnapshot copies;
  copies.add(v);
  const VariableSnapshot::Scope scope(copies);
  EXPECT_TRUE(v.is_virtual());
}

}  // namespace keel::variable_snapshot_test

#include <keel/autodiff/variable.h>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>

#include "tests/autodiff/small_tensors.h"

namespace keel::variable_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

Variable variable(std::initializer_list<float> values) {
  return Variable(row(values), {.name = "v"});
}

void add_one(Tensor& value) {
  for (float& x : value.mutable_data<float>()) x += 1;
}

TEST(VariableTest, ChangesByAssignmentOnly) {
  const Variable v = variable({1, 2});
  const Tensor before = v;
  v.assign(row({3, 4}));
  expect_floats(before, {2}, {1, 2});
  expect_floats(v, {2}, {3, 4});
  v.assign_add(row({10, 10}));
  expect_floats(v, {2}, {13, 14});
}

TEST(VariableTest, IsIndependentOfTheAssignedTensor) {
  const Variable a = variable({1}), b = variable({2});
  a.assign(b);
  a.update(add_one);
  expect_floats(a, {1}, {3});
  expect_floats(b, {1}, {2});
}

TEST(VariableTest, RejectsOtherShapesAndDtypes) {
  const Variable v = variable({1, 2});
  EXPECT_THROW(v.assign(row({1})), ValueError);
  EXPECT_THROW(v.assign(Tensor::zeros({2}, DType::kFloat64)), ValueError);
  EXPECT_THROW(v.assign_add(row({1, 2, 3})), ValueError);
  expect_floats(v, {2}, {1, 2});
}

TEST(VariableTest, IsUpdatedInPlaceUnlessItsValueIsShared) {
  const Variable v = variable({1, 2});
  VariableStorage(v).make_unique();
  const float* address = VariableStorage(v).elements<float>().data();
  v.update(add_one);
  EXPECT_EQ(VariableStorage(v).elements<float>().data(), address);
  expect_floats(v, {2}, {2, 3});
}

TEST(VariableTest, IsCopiedBeforeAnUpdateIfItsValueIsShared) {
  const Variable v = variable({1, 2});
  const Tensor held = v;
  v.update(add_one);
  expect_floats(held, {2}, {1, 2});
  expect_floats(v, {2}, {2, 3});
  const Tensor reshaped = ops::reshape(v, {2, 1});
  v.update(add_one);
  expect_floats(reshaped, {2, 1}, {2, 3});
}

TEST(VariableTest, HasTheIdentityOfItsHandle) {
  const Variable v = variable({1}), same = v, other = variable({1});
  EXPECT_EQ(v, same);
  EXPECT_EQ(v.id(), same.id());
  EXPECT_FALSE(v == other);
  EXPECT_EQ(v.path(), "v");
  v.set_path("layer/v");
  EXPECT_EQ(same.path(), "layer/v");
  EXPECT_EQ(same.name(), "v");
}

TEST(VariableTest, AnEmptyHandleThrows) {
  const Variable empty;
  EXPECT_FALSE(empty);
  EXPECT_THROW(empty.read(), RuntimeError);
  EXPECT_THROW(empty.assign(row({1})), RuntimeError);
}

TEST(VariableTest, RejectsASymbolicInitialValue) {
  EXPECT_THROW(Variable(Tensor::symbolic({.shape = {2}}), {}), ValueError);
}

TEST(VariableTest, VirtualVariablesStandForExternalParameters) {
  const Variable v = Variable::virtual_trainable("anchor");
  EXPECT_TRUE(v.is_virtual());
  EXPECT_TRUE(v.trainable());
  EXPECT_EQ(v.shape(), Shape({1}));
  EXPECT_FALSE(variable({1}).is_virtual());
}

TEST(VariableTest, AssignsWithoutRecordingTheSum) {
  const Variable v = variable({1});
  GradientTape tape;
  v.assign_add(row({1}));
  EXPECT_FALSE(tape.gradient(row({1}), {v})[0]);
}

// ---- Inside replicas.

ReplicaContext replica(int number, int of) {
  return {.replica = number, .replicas = of, .local_replica = number, .local_replicas = of};
}

class ReplicaVariableTest : public testing::Test {
 protected:
  static Variable make(VariableAggregation aggregation) {
    const ReplicatedVariables scope(3);
    return Variable(row({0}), {.name = "statistics",
                               .trainable = false,
                               .synchronization = VariableSynchronization::kOnRead,
                               .aggregation = aggregation});
  }
  // Returns a variable whose value is 2^r in replica r.
  static Variable filled(VariableAggregation aggregation) {
    const Variable v = make(aggregation);
    for (int r = 0; r < 3; ++r) {
      const ReplicaScope scope(replica(r, 3));
      v.assign(row({static_cast<float>(1 << r)}));
    }
    return v;
  }
  static float value_in(const Variable& v, int r) {
    const ReplicaScope scope(replica(r, 3));
    return v.read().item<float>();
  }
};

TEST_F(ReplicaVariableTest, KeepsAValueForEachReplica) {
  const Variable v = filled(VariableAggregation::kSum);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(value_in(v, r), 1 << r);
}

TEST_F(ReplicaVariableTest, CombinesValuesOutsideTheReplicas) {
  EXPECT_EQ(filled(VariableAggregation::kSum).read().item<float>(), 7);
  EXPECT_FLOAT_EQ(filled(VariableAggregation::kMean).read().item<float>(), 7.0F / 3);
  EXPECT_EQ(filled(VariableAggregation::kOnlyFirstReplica).read().item<float>(), 1);
  EXPECT_THROW(filled(VariableAggregation::kNone).read(), RuntimeError);
}

TEST_F(ReplicaVariableTest, AnAssignmentOutsideReachesAllReplicas) {
  const Variable mean = make(VariableAggregation::kMean);
  mean.assign(row({6}));
  EXPECT_EQ(value_in(mean, 0), 6);
  EXPECT_EQ(value_in(mean, 2), 6);
  const Variable sum = make(VariableAggregation::kSum);
  sum.assign(row({6}));
  EXPECT_FLOAT_EQ(value_in(sum, 1), 2);
  EXPECT_FLOAT_EQ(sum.read().item<float>(), 6);
}

TEST_F(ReplicaVariableTest, IsUpdatedInItsReplicaOnly) {
  const Variable v = filled(VariableAggregation::kSum);
  {
    const ReplicaScope scope(replica(1, 3));
    v.update(add_one);
  }
  EXPECT_EQ(v.read().item<float>(), 8);
  EXPECT_EQ(value_in(v, 0), 1);
  EXPECT_THROW(v.update(add_one), RuntimeError);
}

TEST_F(ReplicaVariableTest, RejectsStrategiesOfAnotherSize) {
  const Variable v = filled(VariableAggregation::kSum);
  const ReplicaScope scope(replica(0, 2));
  EXPECT_THROW(v.read(), RuntimeError);
}

TEST_F(ReplicaVariableTest, ReplicasCannotAssignSharedVariables) {
  const Variable v = variable({1});
  {
    const ReplicaScope scope(replica(0, 3));
    EXPECT_THROW(v.assign(row({2})), RuntimeError);
    EXPECT_THROW(v.assign_add(row({2})), RuntimeError);
    EXPECT_THROW(v.update(add_one), RuntimeError);
    expect_floats(v, {1}, {1});
  }
  const ReplicaScope alone(replica(0, 1));
  v.assign(row({2}));
  expect_floats(v, {1}, {2});
}

TEST_F(ReplicaVariableTest, HasOneSharedValueUnlessOnRead) {
  const ReplicatedVariables scope(3);
  const Variable v = variable({5});
  EXPECT_EQ(value_in(v, 2), 5);
  EXPECT_EQ(v.read().item<float>(), 5);
}

TEST_F(ReplicaVariableTest, AnAssignedMeanIsReadBackBitForBit) {
  const ReplicatedVariables scope(6);
  const Variable v(Tensor::zeros({64}), {.trainable = false,
                                         .synchronization = VariableSynchronization::kOnRead,
                                         .aggregation = VariableAggregation::kMean});
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(1.0F / static_cast<float>(i + 3));
  v.assign(Tensor::from(values, {64}));
  EXPECT_EQ(v.read().to_vector<float>(), values);
}

TEST_F(ReplicaVariableTest, AveragesFloatsOnly) {
  const ReplicatedVariables scope(2);
  const Variable v(ids({1}), {.trainable = false,
                              .synchronization = VariableSynchronization::kOnRead,
                              .aggregation = VariableAggregation::kMean});
  EXPECT_THROW(v.read(), TypeError);
}

// Records the calls.
struct Asked final : DeferredRows {
  void materialize(std::span<const int64_t> ids) override {
    for (const int64_t id : ids) rows += " " + std::to_string(id);
  }
  void materialize_all() override { rows += " all"; }
  std::string rows;
};

TEST(VariableTest, DeferredRowsAreMaterializedBeforeReads) {
  const Variable v(Tensor::zeros({4, 2}), {});
  const Tensor ids = Tensor::from<int32_t>({3, 1}, {2});
  EXPECT_EQ(v.read_rows(ids).shape(), Shape({4, 2}));
  const auto asked = std::make_shared<Asked>();
  VariableStorage(v).set_deferred_rows(asked);
  const auto by = [&](const auto& look) {
    asked->rows.clear();
    look();
    return asked->rows;
  };
  EXPECT_EQ(by([&] { v.read_rows(ids); }), " 3 1");
  EXPECT_EQ(by([&] { v.read_rows(ids.cast(DType::kInt64)); }), " 3 1");
  EXPECT_EQ(by([&] { v.read_rows(ids.cast(DType::kFloat32)); }), " all");
  EXPECT_EQ(by([&] { v.read(); }), " all");
  EXPECT_EQ(by([&] { v.assign(Tensor::zeros({4, 2})); }), " all");
  EXPECT_EQ(by([&] { v.update([](Tensor&) {}); }), " all");
  EXPECT_EQ(by([&] {
              VariableStorage(v).make_unique();
              VariableStorage(v).elements<float>();
            }),
            "");
  VariableStorage(v).replace(Tensor::zeros({2}).repeated(4));
  EXPECT_EQ(by([&] { VariableStorage(v).make_unique(); }), " all");  // or they would be lost
  VariableStorage(v).set_deferred_rows(nullptr);
  EXPECT_EQ(by([&] { v.read(); }), "");
}

// Optimizers store tables this way.
TEST(VariableTest, ReadsItsValueFromAView) {
  const Tensor memory = Tensor::from<float>({1, 2, 0, 3, 4, 0}, {2, 3});
  const Variable v(Tensor::zeros({2, 2}), {.name = "v"});
  VariableStorage(v).replace(memory.columns(0, {2, 2}));
  GradientTape tape({.persistent = true});
  const Tensor ids = Tensor::from<int64_t>({1}, {1});
  const Tensor rows = v.read_rows(ids), all = v.read();
  EXPECT_TRUE(rows.is_view());
  EXPECT_EQ(rows.rows<float>().first, memory.data<float>().data());
  EXPECT_EQ(rows.id(), all.id());  // the tape sees a single tensor
  expect_floats(all, {2, 2}, {1, 2, 3, 4});
  const Tensor loss = ops::add(ops::sum(ops::gather(rows, ids)), ops::sum(all));
  expect_floats(tape.gradient(loss, {v})[0].dense(), {2, 2}, {1, 1, 2, 2});
  v.update(add_one);
  EXPECT_FALSE(VariableStorage(v).value().is_view());
  expect_floats(v, {2, 2}, {2, 3, 4, 5});
  expect_floats(rows.clone(), {2, 2}, {1, 2, 3, 4});
}

TEST(VariableTest, AWeakHandleDoesNotKeepTheVariable) {
  auto v = std::make_unique<Variable>(Tensor::zeros({1}), VariableOptions());
  const Variable::Weak weak(*v);
  EXPECT_EQ(weak.lock(), *v);
  v.reset();
  EXPECT_FALSE(weak.lock());
}

}  // namespace keel::variable_test

#include <gtest/gtest.h>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>

#include "tests/autodiff/small_tensors.h"

namespace keel::graph_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

// A source of symbolic tensors, like an input layer.
class Source final : public Operation {
 public:
  const std::string& class_name() const override { return name_; }
  Tensors replay(const Tensors& inputs, const CallOptions&) override { return inputs; }

 private:
  const std::string name_ = "Source";
};

Tensor source(const Shape& shape) {
  return make_outputs(std::make_shared<Source>(), Tensors(), Specs(TensorSpec{.shape = shape}))
      .tensor();
}

std::vector<std::string> names(const std::vector<std::shared_ptr<const GraphNode>>& nodes) {
  std::vector<std::string> out;
  for (const auto& node : nodes) out.push_back(node->operation->class_name());
  return out;
}

TEST(GraphTest, RecordsOpsOnSymbolicTensors) {
  const Tensor x = source({kUnknown, 3});
  const Tensor y = ops::relu(x);
  ASSERT_TRUE(y.is_symbolic());
  EXPECT_EQ(y.shape(), Shape({kUnknown, 3}));
  ASSERT_NE(y.producer(), nullptr);
  EXPECT_EQ(y.producer()->operation->class_name(), "Relu");
  EXPECT_EQ(flatten(y.producer()->inputs)[0].tensor().id(), x.id());
  EXPECT_GT(y.producer()->sequence, x.producer()->sequence);
}

TEST(GraphTest, NumbersTheOutputsOfANode) {
  const std::vector<Tensor> parts = ops::split(source({kUnknown, 4}), 2);
  EXPECT_EQ(parts[0].producer(), parts[1].producer());
  EXPECT_EQ(parts[0].producer_output(), 0);
  EXPECT_EQ(parts[1].producer_output(), 1);
  EXPECT_EQ(flatten(parts[0].producer()->output_specs).size(), 2u);
}

TEST(GraphTest, KeepsConcreteInputsOfSymbolicCalls) {
  const Tensor y = source({kUnknown, 2}) * row({1, 2});
  const auto inputs = flatten(y.producer()->inputs);
  EXPECT_TRUE(inputs[0].is_symbolic());
  EXPECT_FALSE(inputs[1].is_symbolic());
}

TEST(GraphTest, ChecksShapesWhenNodesAreMade) {
  const Tensor x = source({kUnknown, 3});
  EXPECT_THROW(ops::matmul(x, Tensor::zeros({4, 2})), ValueError);
  EXPECT_THROW(ops::add(x, row({1, 2})), ValueError);
}

TEST(GraphTest, RecordsNoNodesUnderNoGraphScope) {
  const Tensor x = source({kUnknown, 3});
  {
    const NoGraphScope outer;
    {
      const NoGraphScope inner;
    }
    EXPECT_TRUE(NoGraphScope::active());
    const Tensor y = ops::relu(x);
    EXPECT_TRUE(y.is_symbolic());
    EXPECT_EQ(y.producer(), nullptr);
  }
  EXPECT_FALSE(NoGraphScope::active());
  EXPECT_NE(ops::relu(x).producer(), nullptr);
}

TEST(GraphTest, OrdersProducersBeforeConsumers) {
  const Tensor a = source({kUnknown, 3}), b = source({kUnknown, 3});
  const Tensor shared = ops::exp(a);
  const Tensor y = ops::multiply(shared, ops::relu(ops::add(shared, b)));
  EXPECT_EQ(names(topological_order(y)),
            (std::vector<std::string>{"Source", "Exp", "Source", "Add", "Relu", "Multiply"}));
}

TEST(GraphTest, RejectsOutputsWithoutAProducer) {
  EXPECT_THROW(topological_order(Tensors(row({1}))), ValueError);
  EXPECT_THROW(topological_order(Tensors(Tensor::symbolic({.shape = {1}}))), ValueError);
}

TEST(GraphTest, ReplaysOpsOnValues) {
  const Tensor x = source({kUnknown, 2});
  const Tensor y = ops::scale(x, 3);
  Tensors::Items inputs;
  inputs.emplace_back(row({1, 2}).reshaped({1, 2}));
  const Tensors replayed = y.producer()->operation->replay(Tensors::list(std::move(inputs)), {});
  expect_floats(flatten(replayed)[0].tensor(), {1, 2}, {3, 6});
}

TEST(GraphTest, MakesThePartsOfRaggedAndSparseTensors) {
  const TensorLike ragged = make_symbolic(
      {.shape = {8, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}, nullptr, 0);
  EXPECT_EQ(ragged.ragged().row_splits.shape(), Shape({9}));
  EXPECT_EQ(ragged.ragged().values.spec(),
            (TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  const TensorLike sparse =
      make_symbolic({.shape = {kUnknown, 5}, .layout = Layout::kSparse}, nullptr, 0);
  EXPECT_EQ(sparse.sparse().indices.shape(), Shape({kUnknown, 2}));
  EXPECT_EQ(sparse.sparse().dense_shape, Shape({kUnknown, 5}));
}

}  // namespace keel::graph_test

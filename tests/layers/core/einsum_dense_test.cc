#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::einsum_dense_test {

using layers::EinsumDense;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(EinsumDenseTest, TheSimplestEquationIsDense) {
  const EinsumDense layer({.equation = "ab,bc->ac",
                           .output_shape = 2,
                           .activation = "relu",
                           .bias_axes = "c",
                           .kernel_initializer = "ones",
                           .bias_initializer = "ones"});
  EXPECT_EQ(layer(Tensor::from<float>({1, 2, -3, -4}, {2, 2})).to_vector<float>(),
            (std::vector<float>{4, 4, 0, 0}));
  EXPECT_EQ(layer->kernel().shape(), Shape({2, 2}));
  EXPECT_EQ(layer->bias().shape(), Shape({2}));
}

TEST(EinsumDenseTest, TheKernelShapeFollowsFromInputAndOutput) {
  const EinsumDense layer(
      {.equation = "abc,cde->abde", .output_shape = {kUnknown, 2, 3}, .bias_axes = "de"});
  EXPECT_EQ(layer(layers::input({.shape = {kUnknown, 4}})).shape(),
            Shape({kUnknown, kUnknown, 2, 3}));
  EXPECT_EQ(layer->kernel().shape(), Shape({4, 2, 3}));
  EXPECT_EQ(layer->bias().shape(), Shape({2, 3}));
  EXPECT_EQ(layer(Tensor::zeros({2, 5, 4})).shape(), Shape({2, 5, 2, 3}));
}

TEST(EinsumDenseTest, EllipsisStandsForTheFirstOrLastDimensions) {
  const EinsumDense first({.equation = "...x,xy->...y", .output_shape = 3, .bias_axes = "y"});
  EXPECT_EQ(first(Tensor::zeros({2, 4, 5})).shape(), Shape({2, 4, 3}));
  EXPECT_EQ(first->bias().shape(), Shape({3}));
  const EinsumDense last({.equation = "ab...,bc->ac...", .output_shape = 3, .bias_axes = "c"});
  EXPECT_EQ(last(Tensor::zeros({2, 4, 5, 6})).shape(), Shape({2, 3, 5, 6}));
  EXPECT_EQ(last->kernel().shape(), Shape({4, 3}));
  EXPECT_EQ(last->bias().shape(), Shape({3, 1, 1}));
}

TEST(EinsumDenseTest, ABiasMayHaveSomeAxes) {
  const EinsumDense layer(
      {.equation = "abc,cde->abde", .output_shape = {3, 2, 4}, .bias_axes = "be"});
  layer(layers::input({.shape = {3, 5}}));
  EXPECT_EQ(layer->bias().shape(), Shape({3, 1, 4}));
}

TEST(EinsumDenseTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(EinsumDense({.equation = "abc,cd->adb",
                                                            .output_shape = {2, 3},
                                                            .bias_axes = "d",
                                                            .dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(EinsumDenseTest, AcceptsRegularizersAndConstraints) {
  const EinsumDense layer({.equation = "ab,bc->ac",
                           .output_shape = 2,
                           .bias_axes = "c",
                           .kernel_regularizer = "l2",
                           .bias_regularizer = "l1",
                           .activity_regularizer = "l2",
                           .kernel_constraint = "non_neg",
                           .bias_constraint = "non_neg"});
  layer(Tensor::zeros({1, 2}));
  EXPECT_EQ(layer->losses().size(), 3u);
  for (const Variable& v : layer->trainable_variables()) EXPECT_TRUE(v.constraint()) << v.name();
}

TEST(EinsumDenseTest, ReadsAnOutputShapeOfOneNumber) {
  const auto layer = layers::deserialize(parse_json(
      R"({"class_name": "EinsumDense", "config": {"equation": "ab,bc->ac", "output_shape": 3}})"));
  EXPECT_EQ(to_json(layer->get_config()["output_shape"]), "[3]");
}

TEST(EinsumDenseTest, RejectsInvalidEquations) {
  for (const char* equation : {"", "ab->ab", "ab,bc", "ab...,bc->...ac", "a1,1c->ac", "ab,->ab"}) {
    EXPECT_THROW(EinsumDense({.equation = equation, .output_shape = 2}), ValueError) << equation;
  }
}

TEST(EinsumDenseTest, RejectsIncompatibleShapes) {
  const auto build = [](const EinsumDenseOptions& options, const Shape& input) {
    make_layer<EinsumDenseLayer>(options)->build(TensorSpec{.shape = input});
  };
  EXPECT_THROW(build({.equation = "ab,bc->ac", .output_shape = 2}, {2, 3, 4}), ValueError);
  EXPECT_THROW(build({.equation = "ab,bc->ac", .output_shape = {2, 2}}, {2, 3}), ValueError);
  EXPECT_THROW(build({.equation = "ab,bc->ac", .output_shape = 2}, {2, kUnknown}), ValueError);
  EXPECT_THROW(build({.equation = "abc,cd->abd", .output_shape = {4, 2}}, {2, 3, 5}), ValueError);
  EXPECT_THROW(build({.equation = "ab,bcd->ac", .output_shape = 2}, {2, 3}), ValueError);
  EXPECT_THROW(build({.equation = "ab,bc->ac", .output_shape = 2, .bias_axes = "b"}, {2, 3}),
               ValueError);
}

TEST(EinsumDenseTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "EinsumDense",
       .config = R"({"equation": "abc,cd->abd", "output_shape": [null, 4], "bias_axes": "d"})",
       .inputs = float_spec({2, 3, 5}),
       .output = float_spec({2, 3, 4}),
       .trainable_weights = 2,
       .weights = 2});
}

}  // namespace keel::einsum_dense_test

#include <keel/layers/core/dense.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>

#include "tests/support/layer_contract.h"

namespace keel::dense_test {

using layers::Dense;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(DenseTest, ComputesTheActivationOfAnAffineMap) {
  const Dense dense({.units = 2, .activation = "relu", .kernel_initializer = "ones"});
  const Tensor y = dense(Tensor::from<float>({1, 2, -3, 1}, {2, 2}));
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 3, 0, 0}));
}

TEST(DenseTest, AUserFunctionIsUsedForAnyName) {
  const Dense dense({.units = 1,
                     .activation = Activation("relu", [](const Tensor& x) { return x + 1.0; }),
                     .kernel_initializer = "ones"});
  EXPECT_EQ(dense(Tensor::from<float>({-3, 2}, {2, 1})).to_vector<float>(),
            (std::vector<float>{-2, 3}));
}

TEST(DenseTest, BuildsOnTheFirstCallFromTheLastAxis) {
  const Dense dense({.units = 4});
  EXPECT_FALSE(dense->built());
  dense(layers::input({.shape = {3}}));
  EXPECT_EQ(dense->kernel().shape(), Shape({3, 4}));
  EXPECT_EQ(dense->bias().shape(), Shape({4}));
  EXPECT_EQ(dense->count_params(), 16);
}

TEST(DenseTest, MapsTheLastAxisOfAnyRank) {
  const Dense dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"});
  const Tensor y = dense(Tensor::full<float>({2, 3, 4}, 1));
  EXPECT_EQ(y.shape(), Shape({2, 3, 1}));
  EXPECT_EQ(y.data<float>()[5], 4);
}

TEST(DenseTest, CopiesOfAHandleShareWeights) {
  const Dense a({.units = 1});
  const Dense b = a;
  const Tensor x = Tensor::full<float>({1, 2}, 1);
  GradientTape tape;
  const Tensor loss = ops::sum(a(x) + b(x));
  const auto gradients = tape.gradient(loss, {a->kernel()});
  EXPECT_EQ(gradients[0].dense().data<float>()[0], 2);
  EXPECT_EQ(a, b);
}

TEST(DenseTest, CastsIntegersAndComputesInItsOwnDtype) {
  const Dense dense({.units = 1, .kernel_initializer = "ones", .dtype = DType::kFloat64});
  const Tensor y = dense(Tensor::from<int32_t>({1, 2}, {1, 2}));
  EXPECT_EQ(y.dtype(), DType::kFloat64);
  EXPECT_EQ(y.item<double>(), 3);
}

TEST(DenseTest, NamesItsWeightsAsKerasDoes) {
  const Dense dense({.units = 1, .name = "DenseTest_names"});
  dense(Tensor::full<float>({1, 2}, 1));
  EXPECT_EQ(dense->kernel().path(), "DenseTest_names/kernel");
  EXPECT_EQ(dense->bias().path(), "DenseTest_names/bias");
}

TEST(DenseTest, RejectsInvalidOptions) {
  EXPECT_THROW(Dense({.units = 0}), ValueError);
  EXPECT_THROW(Dense({.units = 1, .activation = "rleu"}), ValueError);
}

TEST(DenseTest, RejectsInputsOfInvalidRankOrUnknownSize) {
  const Dense dense({.units = 1});
  EXPECT_THROW(dense(Tensor::full<float>({3}, 1)), ValueError);
  EXPECT_THROW(dense(layers::input({.shape = {kUnknown}})), ValueError);
  EXPECT_FALSE(dense->built());
}

TEST(DenseTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Dense",
                         .config = R"({"units": 4, "activation": "tanh"})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 4}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::dense_test

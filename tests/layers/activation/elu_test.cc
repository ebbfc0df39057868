#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/activation/activation.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::elu_test {

using layers::ELU;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(ELUTest, IsExponentialBelowZero) {
  const Tensor y = ELU({.alpha = 0.5})(Tensor::from<double>({-2, 0, 3}, {3}));
  EXPECT_NEAR(y.data<double>()[0], 0.5 * std::expm1(-2), 1e-12);
  EXPECT_EQ(y.data<double>()[1], 0);
  EXPECT_EQ(y.data<double>()[2], 3);
}

TEST(ELUTest, GradientsMatchFiniteDifferences) {
  for (const double alpha : {1.0, 0.7}) {
    testing_support::expect_gradients_are_slopes(ELU({.alpha = alpha, .dtype = DType::kFloat64}),
                                                 testing_support::distinct_doubles({2, 4}));
  }
}

TEST(ELUTest, CastsIntegersAndKeepsMasks) {
  const Tensor x = Tensor::from<int32_t>({5, 4}, {1, 2});
  const Tensor y = ELU({})(x.with_mask(Tensor::full<bool>({1}, true)));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{5, 4}));
  EXPECT_TRUE(y.mask());
}

TEST(ELUTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "ELU",
                         .config = R"({"alpha": 0.5})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::elu_test

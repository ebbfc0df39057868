#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/layer_contract.h"

namespace keel::dropout_test {

using layers::Dropout;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

constexpr int64_t kSize = 100'000;

std::vector<float> drop(const Dropout& dropout, int64_t size = kSize) {
  return dropout(Tensor::full<float>({size}, 1), {.training = true}).to_vector<float>();
}

TEST(DropoutTest, IsTheIdentityOutsideTraining) {
  const Dropout dropout({.rate = 0.9});
  const Tensor x = Tensor::full<float>({4}, 2);
  EXPECT_EQ(dropout(x).id(), x.id());
}

TEST(DropoutTest, DropsAtTheRateAndScalesTheRest) {
  const std::vector<float> y = drop(Dropout({.rate = 0.2}));
  const auto dropped = static_cast<double>(std::ranges::count(y, 0.0F));
  // Five standard deviations of a binomial distribution.
  EXPECT_NEAR(dropped / kSize, 0.2, 5 * std::sqrt(0.2 * 0.8 / kSize));
  EXPECT_EQ(std::ranges::count(y, 1.25F), kSize - static_cast<int64_t>(dropped));
}

TEST(DropoutTest, RatesAtTheEndsDropNothingOrAll) {
  EXPECT_EQ(drop(Dropout({.rate = 0}), 3), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(drop(Dropout({.rate = 1}), 3), (std::vector<float>{0, 0, 0}));
}

TEST(DropoutTest, EachCallDropsDifferentElements) {
  const Dropout dropout({.rate = 0.5, .seed = 1});
  EXPECT_NE(drop(dropout), drop(dropout));
}

TEST(DropoutTest, TheSeedDecidesWhatIsDropped) {
  const Dropout a({.rate = 0.5, .seed = 3});
  const Dropout b({.rate = 0.5, .seed = 3});
  EXPECT_EQ(drop(a), drop(b));
  EXPECT_EQ(drop(a), drop(b));
  EXPECT_NE(drop(a), drop(Dropout({.rate = 0.5, .seed = 4})));
}

TEST(DropoutTest, ResultsDoNotDependOnTheNumberOfWorkers) {
  const Dropout a({.rate = 0.5, .seed = 3});
  const Dropout b({.rate = 0.5, .seed = 3});
  const int workers = num_workers();
  set_num_workers(1);
  const std::vector<float> alone = drop(a);
  set_num_workers(3);
  const std::vector<float> together = drop(b);
  set_num_workers(workers);
  EXPECT_EQ(alone, together);
}

TEST(DropoutTest, TheGradientPassesThroughKeptElements) {
  const Dropout dropout({.rate = 0.5});
  const Tensor x = Tensor::full<float>({1000}, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = dropout(x, {.training = true});
  const auto gradient = tape.input_gradient(ops::sum(y), {x})[0].dense();
  EXPECT_EQ(gradient.to_vector<float>(), y.to_vector<float>());
}

TEST(DropoutTest, TheNumberOfCallsRestoresTheSequence) {
  const Dropout dropout({.rate = 0.5});
  drop(dropout);
  ASSERT_EQ(dropout->variables().size(), 1u);
  EXPECT_TRUE(dropout->weights().empty());
  const Variable calls = dropout->variables()[0];
  EXPECT_EQ(calls.read().item<int64_t>(), 1);
  const std::vector<float> second = drop(dropout);
  calls.assign(Tensor::full<int64_t>({1}, 1));
  EXPECT_EQ(drop(dropout), second);
}

TEST(DropoutTest, ReplicasDropDifferentElements) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Dropout dropout({.rate = 0.5});
  const auto x =
      strategy.distribute_values_from_function([](int) { return Tensor::full<float>({1000}, 1); });
  const auto y = strategy.run([&](const Tensor& t) { return dropout(t, {.training = true}); }, x);
  EXPECT_NE(y[0].to_vector<float>(), y[1].to_vector<float>());
  EXPECT_EQ(dropout->variables()[0].read().item<int64_t>(), 1);
}

TEST(DropoutTest, SymbolicCallsAreNotCounted) {
  const Dropout dropout({.rate = 0.5});
  const Tensor y = dropout(layers::input({.shape = {3}}), {.training = true});
  EXPECT_EQ(y.shape(), Shape({kUnknown, 3}));
  EXPECT_EQ(dropout->variables()[0].read().item<int64_t>(), 0);
}

TEST(DropoutTest, OneChoiceForAllAlongANoiseShape) {
  const Dropout dropout({.rate = 0.5, .noise_shape = {{kUnknown, 1, 2}}, .seed = 3});
  const Tensor x = Tensor::full<float>({100, 3, 2}, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = dropout(x, {.training = true});
  const auto gradient = tape.input_gradient(ops::sum(y), {x})[0].dense();
  EXPECT_EQ(gradient.to_vector<float>(), y.to_vector<float>());
  for (int64_t i = 0; i < 100; ++i) {
    const float* row = y.data<float>().data() + 6 * i;
    EXPECT_TRUE(row[0] == 0 || row[0] == 2);
    EXPECT_TRUE(row[0] == row[2] && row[2] == row[4]);
    EXPECT_TRUE(row[1] == row[3] && row[3] == row[5]);
  }
}

TEST(DropoutTest, RejectsInvalidRatesAndInputs) {
  EXPECT_THROW(Dropout({.noise_shape = {{0, 1}}}), ValueError);
  const Dropout wide({.noise_shape = {{kUnknown, 2}}});
  EXPECT_THROW(wide(Tensor::zeros({1, 3}), {.training = true}), ValueError);
  EXPECT_THROW(Dropout({.rate = -0.1}), ValueError);
  EXPECT_THROW(Dropout({.rate = 1.5}), ValueError);
  const Dropout dropout({.rate = 0.5});
  EXPECT_THROW(dropout(Tensor::full<int32_t>({2}, 1), {.training = true}), TypeError);
}

TEST(DropoutTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Dropout",
                         .config = R"({"rate": 0.5, "seed": 3})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::dropout_test

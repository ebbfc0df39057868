#include <gtest/gtest.h>

#include <keel/optimizers/adam.h>

#include "tests/optimizers/golden.h"

namespace keel::adam_w_test {

using optimizers::Adam;
using optimizers::AdamW;
using testing_support::expect_config_round_trip;

TEST(AdamWTest, IsAdamWithWeightDecay) {
  const AdamW adam_w({.learning_rate = 0.1, .weight_decay = 0.5, .amsgrad = true});
  const Adam adam({.learning_rate = 0.1, .amsgrad = true, .weight_decay = 0.5});
  const Variable a(Tensor::full<float>({2}, 3), {.name = "a"});
  const Variable b(Tensor::full<float>({2}, 3), {.name = "b"});
  for (const float g : {1.0F, -2.0F, 0.5F}) {
    adam_w->apply_gradients({Tensor::full<float>({2}, g)}, {a});
    adam->apply_gradients({Tensor::full<float>({2}, g)}, {b});
  }
  EXPECT_EQ(a.read().to_vector<float>(), b.read().to_vector<float>());
  EXPECT_EQ(testing_support::slot_names(adam_w), testing_support::slot_names(adam));
}

TEST(AdamWTest, DecaysByDefault) {
  const Config config = AdamW(AdamWOptions{})->get_config();
  EXPECT_EQ(config["name"].string(), "adam_w");
  EXPECT_EQ(config["weight_decay"].number(), 0.004);
  EXPECT_FALSE(config["amsgrad"].boolean());
  expect_config_round_trip(AdamW({.weight_decay = 0.25, .beta_1 = 0.5, .beta_2 = 0.25}));
}

TEST(AdamWTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(AdamW({.weight_decay = {}}), ValueError);
  EXPECT_THROW(AdamW({.weight_decay = -1}), ValueError);
  EXPECT_THROW(AdamW({.beta_1 = 1.0}), ValueError);
  EXPECT_THROW(AdamW({.beta_2 = -0.1}), ValueError);
  EXPECT_THROW(AdamW({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::adam_w_test

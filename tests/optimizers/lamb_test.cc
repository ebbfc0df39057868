#include <gtest/gtest.h>

#include <keel/optimizers/adam.h>

#include "tests/optimizers/golden.h"

namespace keel::lamb_test {

using optimizers::Lamb;
using testing_support::common_config;
using testing_support::expect_config_round_trip;

TEST(LambTest, HasTheSlotsOfKeras) {
  EXPECT_EQ(testing_support::slot_names(Lamb(LambOptions{})),
            (std::vector<std::string>{"momentum", "velocity"}));
}

TEST(LambTest, WritesKerasKeys) {
  EXPECT_EQ(
      to_json(Lamb(LambOptions{})->get_config()),
      common_config("lamb", "0.001") + R"("beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07})");
  expect_config_round_trip(
      Lamb({.learning_rate = 0.3, .beta_1 = 0.5, .beta_2 = 0.25, .epsilon = 1e-4}));
}

TEST(LambTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Lamb({.beta_1 = 1.0}), ValueError);
  EXPECT_THROW(Lamb({.beta_1 = -0.1}), ValueError);
  EXPECT_THROW(Lamb({.beta_2 = 1.0}), ValueError);
  EXPECT_THROW(Lamb({.beta_2 = -0.1}), ValueError);
  EXPECT_THROW(Lamb({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::lamb_test

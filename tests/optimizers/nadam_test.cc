#include <gtest/gtest.h>

#include <keel/optimizers/adam.h>

#include "tests/optimizers/golden.h"

namespace keel::nadam_test {

using optimizers::Nadam;
using testing_support::common_config;
using testing_support::expect_config_round_trip;

TEST(NadamTest, HasTheSlotsOfKeras) {
  EXPECT_EQ(testing_support::slot_names(Nadam(NadamOptions{})),
            (std::vector<std::string>{"momentum", "velocity"}));
}

TEST(NadamTest, WritesKerasKeys) {
  EXPECT_EQ(
      to_json(Nadam(NadamOptions{})->get_config()),
      common_config("nadam", "0.001") + R"("beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07})");
  expect_config_round_trip(
      Nadam({.learning_rate = 0.3, .beta_1 = 0.5, .beta_2 = 0.25, .epsilon = 1e-4}));
}

TEST(NadamTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Nadam({.beta_1 = 1.0}), ValueError);
  EXPECT_THROW(Nadam({.beta_1 = -0.1}), ValueError);
  EXPECT_THROW(Nadam({.beta_2 = 1.0}), ValueError);
  EXPECT_THROW(Nadam({.beta_2 = -0.1}), ValueError);
  EXPECT_THROW(Nadam({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::nadam_test

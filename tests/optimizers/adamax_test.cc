#include <gtest/gtest.h>

#include <keel/optimizers/adam.h>

#include "tests/optimizers/golden.h"

namespace keel::adamax_test {

using optimizers::Adamax;
using testing_support::common_config;
using testing_support::expect_config_round_trip;

TEST(AdamaxTest, HasTheSlotsOfKeras) {
  EXPECT_EQ(testing_support::slot_names(Adamax(AdamaxOptions{})),
            (std::vector<std::string>{"momentum", "norm"}));
}

TEST(AdamaxTest, WritesKerasKeys) {
  EXPECT_EQ(
      to_json(Adamax(AdamaxOptions{})->get_config()),
      common_config("adamax", "0.001") + R"("beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07})");
  expect_config_round_trip(
      Adamax({.learning_rate = 0.3, .beta_1 = 0.5, .beta_2 = 0.25, .epsilon = 1e-4}));
}

TEST(AdamaxTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Adamax({.beta_1 = 1.0}), ValueError);
  EXPECT_THROW(Adamax({.beta_1 = -0.1}), ValueError);
  EXPECT_THROW(Adamax({.beta_2 = 1.0}), ValueError);
  EXPECT_THROW(Adamax({.beta_2 = -0.1}), ValueError);
  EXPECT_THROW(Adamax({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::adamax_test

#include <gtest/gtest.h>

#include <keel/optimizers/sgd.h>

#include "tests/optimizers/golden.h"

namespace keel::lion_test {

using optimizers::Lion;
using testing_support::common_config;
using testing_support::expect_config_round_trip;

TEST(LionTest, HasTheSlotsOfKeras) {
  EXPECT_EQ(testing_support::slot_names(Lion(LionOptions{})),
            (std::vector<std::string>{"momentum"}));
}

TEST(LionTest, WritesKerasKeys) {
  EXPECT_EQ(to_json(Lion(LionOptions{})->get_config()),
            common_config("lion", "0.001") + R"("beta_1": 0.9, "beta_2": 0.99})");
  expect_config_round_trip(Lion({.learning_rate = 0.3, .beta_1 = 0.5, .beta_2 = 0.25}));
}

TEST(LionTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Lion({.beta_1 = 0}), ValueError);
  EXPECT_THROW(Lion({.beta_1 = 1.1}), ValueError);
  EXPECT_THROW(Lion({.beta_2 = -0.1}), ValueError);
  EXPECT_THROW(Lion({.beta_2 = 1.1}), ValueError);
}

}  // namespace keel::lion_test

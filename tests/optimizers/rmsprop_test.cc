#include <gtest/gtest.h>

#include <keel/optimizers/adagrad.h>

#include "tests/optimizers/golden.h"

namespace keel::rmsprop_test {

using optimizers::RMSprop;
using testing_support::common_config;
using testing_support::expect_config_round_trip;

TEST(RMSpropTest, HasTheSlotsOfKeras) {
  EXPECT_EQ(testing_support::slot_names(RMSprop(RMSpropOptions{})),
            (std::vector<std::string>{"velocity"}));
  EXPECT_EQ(testing_support::slot_names(RMSprop({.momentum = 0.5})),
            (std::vector<std::string>{"velocity", "momentum"}));
  EXPECT_EQ(testing_support::slot_names(RMSprop({.centered = true})),
            (std::vector<std::string>{"velocity", "average_gradient"}));
  EXPECT_EQ(testing_support::slot_names(RMSprop({.momentum = 0.5, .centered = true})),
            (std::vector<std::string>{"velocity", "momentum", "average_gradient"}));
}

TEST(RMSpropTest, WritesKerasKeys) {
  EXPECT_EQ(to_json(RMSprop(RMSpropOptions{})->get_config()),
            common_config("rm_sprop", "0.001") +
                R"("rho": 0.9, "momentum": 0.0, "epsilon": 1e-07, "centered": false})");
  expect_config_round_trip(
      RMSprop({.learning_rate = 0.3, .rho = 0.5, .momentum = 0.25, .centered = true}));
}

TEST(RMSpropTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(RMSprop({.rho = 1.1}), ValueError);
  EXPECT_THROW(RMSprop({.rho = -0.1}), ValueError);
  EXPECT_THROW(RMSprop({.momentum = -0.1}), ValueError);
  EXPECT_THROW(RMSprop({.momentum = 1.1}), ValueError);
  EXPECT_THROW(RMSprop({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::rmsprop_test

#include <gtest/gtest.h>

#include <keel/optimizers/adagrad.h>

#include "tests/optimizers/golden.h"

namespace keel::adadelta_test {

using optimizers::Adadelta;
using testing_support::common_config;
using testing_support::expect_config_round_trip;

TEST(AdadeltaTest, HasTheSlotsOfKeras) {
  EXPECT_EQ(testing_support::slot_names(Adadelta(AdadeltaOptions{})),
            (std::vector<std::string>{"accumulated_grad", "accumulated_delta_var"}));
}

TEST(AdadeltaTest, WritesKerasKeys) {
  EXPECT_EQ(to_json(Adadelta(AdadeltaOptions{})->get_config()),
            common_config("adadelta", "0.001") + R"("rho": 0.95, "epsilon": 1e-07})");
  expect_config_round_trip(Adadelta({.learning_rate = 0.3, .rho = 0.5, .epsilon = 1e-4}));
}

TEST(AdadeltaTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Adadelta({.rho = 1.1}), ValueError);
  EXPECT_THROW(Adadelta({.rho = -0.1}), ValueError);
  EXPECT_THROW(Adadelta({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::adadelta_test

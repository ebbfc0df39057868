#include <keel/optimizers/adagrad.h>

#include <gtest/gtest.h>

#include "tests/optimizers/golden.h"

namespace keel::adagrad_test {

using optimizers::Adagrad;
using testing_support::common_config;
using testing_support::expect_config_round_trip;
using testing_support::expect_runs_as;
using testing_support::GoldenRun;
using testing_support::Numbers;

// learning_rate 0.1
const GoldenRun kDefaults = {
    .after = {Numbers{0.34919983f, 0.8192091f, -1.8074348f, 1.9599203f, -1.2482151f, 0.22805604f,
                      -0.5143617f, 1.1410351f, -1.3427745f, 0.88652194f, -1.3211206f, -0.95954365f,
                      0.5116252f, -0.21785295f, 0.6326363f},
              Numbers{0.33959773f, 0.8731692f, -1.7381549f, 1.8856118f, -1.1955768f, 0.21607348f,
                      -0.57884806f, 1.1185341f, -1.2670311f, 0.79781497f, -1.3982674f, -0.9656759f,
                      0.4998457f, -0.1814444f, 0.61351246f},
              Numbers{0.3462759f, 0.79988015f, -1.7736422f, 1.9764537f, -1.2115339f, 0.24803364f,
                      -0.5890197f, 1.0326998f, -1.2682947f, 0.7974397f, -1.3441309f, -0.88060236f,
                      0.47343883f, -0.16564581f, 0.6065235f},
              Numbers{0.26886317f, 0.7385895f, -1.7471346f, 2.0157535f, -1.1602303f, 0.2946546f,
                      -0.6336757f, 0.98095846f, -1.3245753f, 0.7314391f, -1.384017f, -0.86025816f,
                      0.52904755f, -0.11535896f, 0.64784557f},
              Numbers{0.3069705f, 0.76408726f, -1.7566243f, 1.9544634f, -1.1432056f, 0.31980836f,
                      -0.65245616f, 1.0080347f, -1.2915717f, 0.69391847f, -1.4227628f, -0.924053f,
                      0.5361653f, -0.18319681f, 0.6038665f}},
    .slots = {{"accumulator", Numbers{2.0273037f, 3.2522597f, 1.0411412f, 2.504994f, 2.7508092f,
                                      0.69195366f, 0.8332445f, 0.66205823f, 3.9145215f, 2.0557427f,
                                      2.6723382f, 3.672822f, 5.153237f, 1.9657699f, 1.66028f}}}};

// learning_rate 0.1, initial_accumulator_value 0.5, epsilon 1e-6
const GoldenRun kOther = {
    .after = {Numbers{0.3681854f, 0.7990848f, -1.7830458f, 1.9498616f, -1.2596813f, 0.20400555f,
                      -0.5405122f, 1.1234454f, -1.3282508f, 0.9164257f, -1.3428248f, -0.9384445f,
                      0.5060726f, -0.1986136f, 0.6466686f},
              Numbers{0.36054298f, 0.84381634f, -1.7260414f, 1.9048934f, -1.2117999f, 0.19526221f,
                      -0.5910521f, 1.1126965f, -1.2581619f, 0.841488f, -1.4105842f, -0.9431567f,
                      0.49494904f, -0.16905768f, 0.6302819f},
              Numbers{0.36586255f, 0.7772089f, -1.7558534f, 1.9844915f, -1.226347f, 0.21916035f,
                      -0.5990399f, 1.0502669f, -1.2593312f, 0.841171f, -1.3613579f, -0.8652216f,
                      0.4699179f, -0.15617768f, 0.6242894f},
              Numbers{0.2960853f, 0.7195909f, -1.7333512f, 2.0195618f, -1.1785009f, 0.25582185f,
                      -0.63553053f, 1.0100104f, -1.3126383f, 0.7815744f, -1.3981366f, -0.8465222f,
                      0.5234766f, -0.11332342f, 0.6605494f},
              Numbers{0.3309115f, 0.74365187f, -1.7414172f, 1.9626474f, -1.1625935f, 0.27584532f,
                      -0.6509677f, 1.0313882f, -1.2812018f, 0.74724525f, -1.4342722f, -0.9071034f,
                      0.5303332f, -0.17516094f, 0.6210698f}},
    .slots = {{"accumulator", Numbers{2.4273036f, 3.6522596f, 1.4411411f, 2.9049938f, 3.150809f,
                                      1.0919538f, 1.2332444f, 1.0620583f, 4.314521f, 2.4557424f,
                                      3.072338f, 4.072822f, 5.553237f, 2.3657699f, 2.06028f}}}};

TEST(AdagradTest, DividesByTheRootOfSummedSquares) {
  expect_runs_as(Adagrad({.learning_rate = 0.1}), kDefaults);
}

TEST(AdagradTest, AcceptsInitialAccumulatorAndEpsilon) {
  expect_runs_as(Adagrad({.learning_rate = 0.1, .initial_accumulator_value = 0.5, .epsilon = 1e-6}),
                 kOther);
}

TEST(AdagradTest, WritesKerasKeys) {
  EXPECT_EQ(
      to_json(Adagrad(AdagradOptions{})->get_config()),
      common_config("adagrad", "0.001") + R"("initial_accumulator_value": 0.1, "epsilon": 1e-07})");
  expect_config_round_trip(Adagrad({.learning_rate = 0.3, .epsilon = 0.5, .name = "mine"}));
}

TEST(AdagradTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Adagrad({.initial_accumulator_value = -0.1}), ValueError);
  EXPECT_THROW(Adagrad({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::adagrad_test

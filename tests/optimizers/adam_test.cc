#include <keel/optimizers/adam.h>

#include <gtest/gtest.h>

#include <keel/optimizers/schedules/schedules.h>

#include "tests/optimizers/golden.h"

namespace keel::adam_test {

using optimizers::Adam;
using testing_support::common_config;
using testing_support::expect_config_round_trip;
using testing_support::expect_runs_as;
using testing_support::GoldenRun;
using testing_support::Numbers;

// learning_rate 0.01
const GoldenRun kDefaults = {
    .after = {Numbers{0.43161225f, 0.73758686f, -1.7296476f, 1.9515175f, -1.3345416f, 0.14989415f,
                      -0.58987284f, 1.117961f, -1.2578241f, 0.9492745f, -1.4015112f, -0.8786606f,
                      0.42317605f, -0.13561045f, 0.7178242f},
              Numbers{0.42417505f, 0.7473432f, -1.7286718f, 1.9452713f, -1.324881f, 0.15552284f,
                      -0.59033215f, 1.1191925f, -1.2563071f, 0.9399434f, -1.4034747f, -0.885848f,
                      0.4289378f, -0.13887453f, 0.70976704f},
              Numbers{0.41890264f, 0.7474916f, -1.7303693f, 1.9497267f, -1.3185614f, 0.16186766f,
                      -0.5913926f, 1.113191f, -1.2552172f, 0.93270516f, -1.4011816f, -0.8829959f,
                      0.43151578f, -0.14028075f, 0.7030871f},
              Numbers{0.41166252f, 0.74396294f, -1.7300818f, 1.9554229f, -1.311109f, 0.169295f,
                      -0.59493166f, 1.1058496f, -1.2578057f, 0.9244063f, -1.4018395f, -0.8794998f,
                      0.43652898f, -0.1381847f, 0.7006466f},
              Numbers{0.4081644f, 0.7424965f, -1.7303853f, 1.9557638f, -1.3039582f, 0.17682105f,
                      -0.59895587f, 1.1015232f, -1.2580415f, 0.91583234f, -1.4045068f, -0.880778f,
                      0.44114795f, -0.14071532f, 0.6963309f}},
    .slots = {
        {"momentum", Numbers{0.08894918f, 0.047684435f, 0.0053898096f, -0.00968715f, -0.21312755f,
                             -0.1060039f, 0.06308307f, 0.05941526f, 0.008434618f, 0.21961318f,
                             0.07834043f, 0.044262026f, -0.19006866f, 0.063319616f, 0.0986921f}},
        {"velocity",
         Numbers{0.0019239036f, 0.0031462237f, 0.00093827903f, 0.0024021745f, 0.0026432753f,
                 0.00059029605f, 0.0007311906f, 0.00056116533f, 0.0038056609f, 0.0019521732f,
                 0.0025666663f, 0.0035678095f, 0.005038444f, 0.0018628761f, 0.0015560664f}}}};

// learning_rate 0.01, beta_1 0.8, beta_2 0.99, epsilon 1e-4
const GoldenRun kOther = {
    .after = {Numbers{0.43162522f, 0.73757315f, -1.7296306f, 1.951352f, -1.3345503f, 0.14987735f,
                      -0.58989185f, 1.117872f, -1.2578137f, 0.94930404f, -1.401526f, -0.87864625f,
                      0.4231705f, -0.13559733f, 0.71783435f},
              Numbers{0.4245499f, 0.74722433f, -1.7280726f, 1.944663f, -1.325012f, 0.15504283f,
                      -0.5909346f, 1.1185232f, -1.2557172f, 0.93975884f, -1.4040642f, -0.88545436f,
                      0.4284809f, -0.13832024f, 0.710091f},
              Numbers{0.41995084f, 0.7464724f, -1.7296892f, 1.9497511f, -1.3193609f, 0.16107282f,
                      -0.59247196f, 1.1117637f, -1.2542899f, 0.9328141f, -1.4016463f, -0.8816853f,
                      0.4302771f, -0.1390614f, 0.7039733f},
              Numbers{0.41245857f, 0.7418132f, -1.7289832f, 1.956049f, -1.3121386f, 0.16847728f,
                      -0.59673953f, 1.1036909f, -1.2572654f, 0.9243402f, -1.4027226f, -0.8774548f,
                      0.43522128f, -0.13595591f, 0.7026767f},
              Numbers{0.4096313f, 0.739993f, -1.7290968f, 1.9557632f, -1.3053823f, 0.17589584f,
                      -0.60136557f, 1.099567f, -1.2572441f, 0.91563576f, -1.4061277f, -0.8792141f,
                      0.43958429f, -0.13883105f, 0.6987441f}},
    .slots = {
        {"momentum", Numbers{0.118238725f, 0.09726217f, 0.003301271f, 0.013388124f, -0.3295407f,
                             -0.1711493f, 0.11876271f, 0.09326917f, -0.001251321f, 0.3665849f,
                             0.16413754f, 0.1003393f, -0.2936457f, 0.11843658f, 0.14729805f}},
        {"velocity", Numbers{0.018936181f, 0.030923396f, 0.009128186f, 0.023769325f, 0.025763046f,
                             0.0057557006f, 0.0071292305f, 0.00553167f, 0.03726775f, 0.019203184f,
                             0.025161238f, 0.03523083f, 0.04907027f, 0.018371679f, 0.015186736f}}}};

// ExponentialDecay from 0.1 by 0.7 every 2 steps
const GoldenRun kScheduled = {
    .after = {Numbers{0.34161323f, 0.8275859f, -1.8196466f, 2.041512f, -1.2445424f, 0.23989305f,
                      -0.499874f, 1.2079579f, -1.3478231f, 0.8592759f, -1.3115122f, -0.96865964f,
                      0.5131753f, -0.22560947f, 0.62782514f},
              Numbers{0.27938914f, 0.90921336f, -1.811482f, 1.9892522f, -1.1637163f, 0.28698608f,
                      -0.50371706f, 1.2182604f, -1.3351318f, 0.78120637f, -1.3279396f, -1.0287933f,
                      0.5613816f, -0.2529187f, 0.5604142f},
              Numbers{0.24248211f, 0.91025245f, -1.8233645f, 2.02044f, -1.1194797f, 0.3313999f,
                      -0.5111401f, 1.17625f, -1.327502f, 0.7305387f, -1.3118882f, -1.0088289f,
                      0.5794275f, -0.2627622f, 0.5136545f},
              Numbers{0.20007947f, 0.8895866f, -1.8216809f, 2.0538008f, -1.0758331f, 0.37489897f,
                      -0.5318671f, 1.1332544f, -1.3426621f, 0.6819353f, -1.3157414f, -0.9883534f,
                      0.60878783f, -0.25048637f, 0.49936122f},
              Numbers{0.18293881f, 0.8824011f, -1.8231682f, 2.0554714f, -1.0407946f, 0.41177663f,
                      -0.5515856f, 1.1120547f, -1.3438177f, 0.639923f, -1.3288115f, -0.99461675f,
                      0.63142073f, -0.26288643f, 0.47821438f}},
    .slots = {
        {"momentum", Numbers{0.08894918f, 0.047684435f, 0.0053898096f, -0.00968715f, -0.21312755f,
                             -0.1060039f, 0.06308307f, 0.05941526f, 0.008434618f, 0.21961318f,
                             0.07834043f, 0.044262026f, -0.19006866f, 0.063319616f, 0.0986921f}},
        {"velocity",
         Numbers{0.0019239036f, 0.0031462237f, 0.00093827903f, 0.0024021745f, 0.0026432753f,
                 0.00059029605f, 0.0007311906f, 0.00056116533f, 0.0038056609f, 0.0019521732f,
                 0.0025666663f, 0.0035678095f, 0.005038444f, 0.0018628761f, 0.0015560664f}}}};

optimizers::schedules::ExponentialDecay decay() {
  return optimizers::schedules::ExponentialDecay(
      {.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.7});
}

TEST(AdamTest, FollowsCorrectedMoments) {
  expect_runs_as(Adam({.learning_rate = 0.01}), kDefaults);
}

TEST(AdamTest, AcceptsBetasAndEpsilon) {
  expect_runs_as(Adam({.learning_rate = 0.01, .beta_1 = 0.8, .beta_2 = 0.99, .epsilon = 1e-4}),
                 kOther);
}

TEST(AdamTest, FollowsASchedule) { expect_runs_as(Adam({.learning_rate = decay()}), kScheduled); }

TEST(AdamTest, WritesKerasKeys) {
  EXPECT_EQ(to_json(Adam(AdamOptions{})->get_config()),
            common_config("adam", "0.001") +
                R"("beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, "amsgrad": false})");
  expect_config_round_trip(Adam({.beta_1 = 0.5, .beta_2 = 0.25}));
  expect_config_round_trip(Adam({.learning_rate = decay()}));
}

TEST(AdamTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Adam({.beta_1 = 1.0}), ValueError);
  EXPECT_THROW(Adam({.beta_1 = -0.1}), ValueError);
  EXPECT_THROW(Adam({.beta_2 = 1.0}), ValueError);
  EXPECT_THROW(Adam({.beta_2 = -0.1}), ValueError);
  EXPECT_THROW(Adam({.epsilon = -1e-7}), ValueError);
}

}  // namespace keel::adam_test

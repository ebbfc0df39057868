#include <gtest/gtest.h>

#include <keel/optimizers/adagrad.h>

#include "tests/optimizers/golden.h"

namespace keel::ftrl_test {

using optimizers::Ftrl;
using testing_support::common_config;
using testing_support::expect_config_round_trip;
using testing_support::expect_runs_as;
using testing_support::GoldenRun;
using testing_support::Numbers;

// learning_rate 0.1
const GoldenRun kDefaults = {
    .after = {Numbers{0.18046238f, 0.5276842f, -0.9838965f, 0.051559594f, -0.8871271f, 0.16203105f,
                      -0.20336013f, 0.09542633f, -0.95125985f, 0.22838056f, -0.7173682f,
                      -0.59716606f, 0.4391378f, -0.1693448f, 0.40957606f},
              Numbers{0.17086026f, 0.5816443f, -0.91461664f, -0.022748917f, -0.8344888f, 0.1500485f,
                      -0.26784652f, 0.07292529f, -0.8755164f, 0.13967359f, -0.7945149f, -0.6032983f,
                      0.42735833f, -0.13293625f, 0.3904522f},
              Numbers{0.17753844f, 0.50835526f, -0.95010394f, 0.06809302f, -0.8504459f, 0.18200865f,
                      -0.27801815f, -0.012908924f, -0.87678003f, 0.13929835f, -0.74037844f,
                      -0.5182248f, 0.40095145f, -0.11713765f, 0.3834632f},
              Numbers{0.10012571f, 0.44706464f, -0.9235964f, 0.10739288f, -0.7991422f, 0.22862965f,
                      -0.32267413f, -0.064650275f, -0.93306077f, 0.07329778f, -0.7802646f,
                      -0.49788058f, 0.45656013f, -0.066850804f, 0.4247853f},
              Numbers{0.13823305f, 0.4725623f, -0.9330861f, 0.046102714f, -0.78211755f, 0.2537834f,
                      -0.3414546f, -0.037574027f, -0.90005714f, 0.03577712f, -0.8190103f,
                      -0.5616754f, 0.4636779f, -0.13468866f, 0.38080627f}},
    .slots = {{"accumulator", Numbers{2.0273037f, 3.2522597f, 1.0411412f, 2.504994f, 2.7508092f,
                                      0.69195366f, 0.8332445f, 0.66205823f, 3.9145215f, 2.0557427f,
                                      2.6723382f, 3.672822f, 5.153237f, 1.9657699f, 1.66028f}},
              {"linear", Numbers{-1.9682095f, -8.5222f, 9.520867f, -0.72967565f, 12.97186f,
                                 -2.1110656f, 3.1168735f, 0.30572844f, 17.807764f, -0.5129674f,
                                 13.3885975f, 10.76429f, -10.525832f, 1.8884146f, -4.9067593f}}}};

// learning_rate 0.1, l1 0.01, l2 0.02
const GoldenRun kRegularized = {
    .after = {Numbers{0.17839189f, 0.52376264f, -0.97646695f, 0.04785632f, -0.88327736f,
                      0.15958586f, -0.20040642f, 0.091351524f, -0.94651115f, 0.22426474f,
                      -0.7121624f, -0.5927192f, 0.43761182f, -0.16730633f, 0.40702897f},
              Numbers{0.16883574f, 0.5774935f, -0.90748835f, -0.02171327f, -0.83079064f, 0.1476739f,
                      -0.2645712f, 0.06910919f, -0.8709634f, 0.13591173f, -0.78904444f, -0.5988193f,
                      0.4258583f, -0.13106269f, 0.38797763f},
              Numbers{0.175482f, 0.5044165f, -0.9428313f, 0.06708064f, -0.84670234f, 0.17945558f,
                      -0.27469236f, -0.0132496925f, -0.87222373f, 0.135538f, -0.73506427f,
                      -0.5139806f, 0.39950737f, -0.115334734f, 0.3810151f},
              Numbers{0.098303795f, 0.44326618f, -0.9164277f, 0.1062552f, -0.7955239f, 0.22584608f,
                      -0.31915f, -0.064728156f, -0.9283841f, 0.06973547f, -0.7748448f, -0.49369144f,
                      0.45501804f, -0.06524241f, 0.4221948f},
              Numbers{0.13630438f, 0.46870744f, -0.9258804f, 0.04511955f, -0.7785402f, 0.25087947f,
                      -0.33784854f, -0.037784364f, -0.8954471f, 0.032319196f, -0.8134959f,
                      -0.55735344f, 0.4621233f, -0.13288727f, 0.3783519f}},
    .slots = {{"accumulator", Numbers{2.0273037f, 3.2522597f, 1.0411412f, 2.504994f, 2.7508092f,
                                      0.69195366f, 0.8332445f, 0.66205823f, 3.9145215f, 2.0557427f,
                                      2.6723382f, 3.672822f, 5.153237f, 1.9657699f, 1.66028f}},
              {"linear", Numbers{-1.9562006f, -8.48143f, 9.494378f, -0.7259197f, 12.9536705f,
                                 -2.1069448f, 3.1074705f, 0.31895125f, 17.762373f, -0.4746809f,
                                 13.340992f, 10.713755f, -10.519027f, 1.8784736f, -4.9002686f}}}};

TEST(FtrlTest, FollowsTheRegularizedLeader) {
  expect_runs_as(Ftrl({.learning_rate = 0.1}), kDefaults);
}

TEST(FtrlTest, Regularizes) {
  expect_runs_as(Ftrl({.learning_rate = 0.1,
                       .l1_regularization_strength = 0.01,
                       .l2_regularization_strength = 0.02}),
                 kRegularized);
}

TEST(FtrlTest, SetsAFreshWeightWithoutGradientToZero) {
  const Ftrl ftrl({.learning_rate = 0.1});
  const Variable w(Tensor::from<float>({3, 4}, {2}), {.name = "w"});
  ftrl->apply_gradients({Tensor::from<float>({0, 1}, {2})}, {w});
  EXPECT_EQ(w.read().data<float>()[0], 0);
}

TEST(FtrlTest, WritesKerasKeys) {
  EXPECT_EQ(
      to_json(Ftrl(FtrlOptions{})->get_config()),
      common_config("ftrl", "0.001") +
          R"("learning_rate_power": -0.5, )"
          R"("initial_accumulator_value": 0.1, "l1_regularization_strength": 0.0, )"
          R"("l2_regularization_strength": 0.0, "l2_shrinkage_regularization_strength": 0.0, )"
          R"("beta": 0.0})");
  expect_config_round_trip(Ftrl({.learning_rate_power = -0.25, .beta = 0.125}));
}

TEST(FtrlTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(Ftrl({.learning_rate_power = 0.1}), ValueError);
  EXPECT_THROW(Ftrl({.initial_accumulator_value = -0.1}), ValueError);
  EXPECT_THROW(Ftrl({.l1_regularization_strength = -0.1}), ValueError);
  EXPECT_THROW(Ftrl({.l2_regularization_strength = -0.1}), ValueError);
  EXPECT_THROW(Ftrl({.beta = -0.1}), ValueError);
  EXPECT_THROW(Ftrl({.l2_shrinkage_regularization_strength = -0.1}), ValueError);
}

}  // namespace keel::ftrl_test

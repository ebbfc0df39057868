#include <keel/optimizers/sgd.h>

#include <gtest/gtest.h>

#include <keel/framework/update_rule.h>

#include "tests/optimizers/golden.h"

namespace keel::sgd_test {

using optimizers::SGD;
using testing_support::common_config;
using testing_support::expect_config_round_trip;
using testing_support::expect_runs_as;
using testing_support::GoldenRun;
using testing_support::Numbers;

// learning_rate 0.01
const GoldenRun kPlain = {
    .after = {Numbers{0.43396395f, 0.73481816f, -1.7254446f, 1.9421101f, -1.333199f, 0.14580134f,
                      -0.59465694f, 1.1090697f, -1.257394f, 0.955921f, -1.4048284f, -0.87555f,
                      0.4309215f, -0.13316394f, 0.7180025f},
              Numbers{0.43316558f, 0.7398765f, -1.7191007f, 1.9385376f, -1.3259091f, 0.14499265f,
                      -0.5998033f, 1.1082959f, -1.2457018f, 0.9470641f, -1.4137925f, -0.8760157f,
                      0.4287834f, -0.12996288f, 0.71599215f},
              Numbers{0.43372208f, 0.72977823f, -1.7225764f, 1.9489841f, -1.3281476f, 0.147269f,
                      -0.6006193f, 1.1025426f, -1.2458968f, 0.9470266f, -1.406311f, -0.8637229f,
                      0.4238138f, -0.12855619f, 0.7152557f},
              Numbers{0.42353147f, 0.7190904f, -1.7198838f, 1.953899f, -1.3197628f, 0.15102242f,
                      -0.6046231f, 1.0984899f, -1.2564081f, 0.9382549f, -1.412322f, -0.86072046f,
                      0.43640536f, -0.123376094f, 0.7200375f},
              Numbers{0.4289573f, 0.72368866f, -1.7208521f, 1.9441985f, -1.3169392f, 0.15311481f,
                      -0.6063374f, 1.100693f, -1.2498783f, 0.9328752f, -1.4186559f, -0.8729465f,
                      0.43802115f, -0.13288736f, 0.7143707f}},
    .slots = {}};

// learning_rate 0.01, momentum 0.9
const GoldenRun kMomentum = {
    .after = {Numbers{0.43396395f, 0.73481816f, -1.7254446f, 1.9421101f, -1.333199f, 0.14580134f,
                      -0.59465694f, 1.1090697f, -1.257394f, 0.955921f, -1.4048284f, -0.87555f,
                      0.4309215f, -0.13316394f, 0.7180025f},
              Numbers{0.4262822f, 0.7463846f, -1.7243179f, 1.9390705f, -1.315701f, 0.15030901f,
                      -0.5951091f, 1.1092933f, -1.2543145f, 0.94404614f, -1.407778f, -0.88221604f,
                      0.44475418f, -0.13676094f, 0.70715266f},
              Numbers{0.41992512f, 0.7466961f, -1.7267796f, 1.9467814f, -1.3021914f, 0.15664226f,
                      -0.5963321f, 1.1037413f, -1.2517382f, 0.9333213f, -1.4029512f, -0.8759227f,
                      0.452234f, -0.13859153f, 0.6966513f},
              Numbers{0.40401316f, 0.73628867f, -1.7263025f, 1.958636f, -1.2816479f, 0.1660956f,
                      -0.6014365f, 1.0946916f, -1.2599307f, 0.9148972f, -1.4046181f, -0.8672562f,
                      0.4715574f, -0.13505897f, 0.6919819f},
              Numbers{0.39511824f, 0.73152024f, -1.7268414f, 1.9596047f, -1.2603352f, 0.17669599f,
                      -0.6077448f, 1.0887501f, -1.2607741f, 0.8929359f, -1.4124522f, -0.8716824f,
                      0.4905643f, -0.14139093f, 0.6821127f}},
    .slots = {{"momentum", Numbers{-0.0088949185f, -0.0047684433f, -0.0005389811f, 0.0009687157f,
                                   0.021312756f, 0.010600391f, -0.0063083065f, -0.0059415265f,
                                   -0.0008434621f, -0.021961316f, -0.007834043f, -0.0044262027f,
                                   0.019006865f, -0.006331961f, -0.009869208f}}}};

// learning_rate 0.01, momentum 0.9, nesterov
const GoldenRun kNesterov = {
    .after = {Numbers{0.42708057f, 0.7413262f, -1.7306616f, 1.9426429f, -1.3229909f, 0.1511177f,
                      -0.5899627f, 1.1100671f, -1.2660067f, 0.95290303f, -1.3988141f, -0.8817503f,
                      0.4468923f, -0.139962f, 0.709163f},
              Numbers{0.41936862f, 0.75679433f, -1.7233038f, 1.9363348f, -1.2999527f, 0.15436591f,
                      -0.5955161f, 1.1094946f, -1.251543f, 0.9333588f, -1.4104328f, -0.8882155f,
                      0.4572036f, -0.13999823f, 0.6973878f},
              Numbers{0.41420376f, 0.74697644f, -1.728995f, 1.9537213f, -1.2900326f, 0.16234218f,
                      -0.59743273f, 1.0987445f, -1.2494193f, 0.9236689f, -1.3986073f, -0.8702586f,
                      0.45896584f, -0.14023907f, 0.6872001f},
              Numbers{0.3896924f, 0.7269219f, -1.7258731f, 1.9693054f, -1.2631587f, 0.17460361f,
                      -0.60603046f, 1.0865471f, -1.2673038f, 0.89831555f, -1.4061184f, -0.85945636f,
                      0.4889485f, -0.13187966f, 0.68777955f},
              Numbers{0.3871128f, 0.7272286f, -1.7273265f, 1.9604768f, -1.2411536f, 0.18623635f,
                      -0.6134223f, 1.0834029f, -1.2615331f, 0.8731707f, -1.4195029f, -0.87566596f,
                      0.50767046f, -0.14708969f, 0.67323047f}},
    .slots = {{"momentum", Numbers{-0.0088949185f, -0.0047684433f, -0.0005389811f, 0.0009687157f,
                                   0.021312756f, 0.010600391f, -0.0063083065f, -0.0059415265f,
                                   -0.0008434621f, -0.021961316f, -0.007834043f, -0.0044262027f,
                                   0.019006865f, -0.006331961f, -0.009869208f}}}};

TEST(SGDTest, StepsAgainstTheGradient) { expect_runs_as(SGD({.learning_rate = 0.01}), kPlain); }

TEST(SGDTest, KeepsMomentum) {
  expect_runs_as(SGD({.learning_rate = 0.01, .momentum = 0.9}), kMomentum);
}

TEST(SGDTest, NesterovLooksAhead) {
  expect_runs_as(SGD({.learning_rate = 0.01, .momentum = 0.9, .nesterov = true}), kNesterov);
}

TEST(SGDTest, HasASlotOnlyWithMomentum) {
  EXPECT_TRUE(SGD(SGDOptions{})->rule().slots().empty());
  EXPECT_EQ(SGD({.momentum = 0.5})->rule().slots().at(0).name, "momentum");
}

TEST(SGDTest, WritesKerasKeys) {
  EXPECT_EQ(to_json(SGD({.learning_rate = 0.5, .momentum = 0.25})->get_config()),
            common_config("sgd", "0.5") + R"("momentum": 0.25, "nesterov": false})");
  expect_config_round_trip(SGD({.learning_rate = 0.3, .momentum = 0.9, .nesterov = true}));
}

TEST(SGDTest, RejectsMomentumOutOfRange) {
  EXPECT_THROW(SGD({.momentum = -0.1}), ValueError);
  EXPECT_THROW(SGD({.momentum = 1.1}), ValueError);
  EXPECT_NO_THROW(SGD({.momentum = 1.0}));
}

}  // namespace keel::sgd_test

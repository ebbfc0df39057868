// Tests optimizers/schedules/learning_rate.cc and internal/schedule_registry.cc.
#include <keel/optimizers/schedules/schedules.h>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <keel/optimizers/optimizer.h>
#include <keel/optimizers/schedules/internal/schedule_registry.h>
#include <keel/optimizers/sgd.h>

namespace keel::optimizers::schedules::schedules_test {

// The rates of Keras 3.16.0, in float32, for each step of kSteps.
struct GoldenSchedule {
  const char* class_name;
  const char* config;
  std::vector<double> values;
};

constexpr std::array<int64_t, 25> kSteps = {0,   1,   5,   9,   10,  11,  19, 20, 21,
                                            29,  30,  31,  50,  51,  79,  80, 81, 99,
                                            100, 101, 130, 150, 200, 201, 500};
const std::vector<GoldenSchedule> kGolden = {
    {.class_name = "ExponentialDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 100, "decay_rate": 0.96, "staircase": false, "name": "ExponentialDecay"})",
     .values = {0.1,        0.09995919,  0.0997961,  0.09963328, 0.09959262,
                0.09955197, 0.099227384, 0.09918689, 0.0991464,  0.098823145,
                0.09878281, 0.09874249,  0.09797959, 0.0979396,  0.09682651,
                0.09678699, 0.09674749,  0.0960392,  0.096,      0.09596082,
                0.0948315,  0.094060406, 0.09216,    0.09212238, 0.08153726}},
    {.class_name = "ExponentialDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 100, "decay_rate": 0.5, "staircase": true, "name": "ExponentialDecay"})",
     .values = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1,  0.1,  0.1,  0.1,  0.1,   0.1,   0.1,     0.1,
                0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.025, 0.025, 0.003125}},
    {.class_name = "PiecewiseConstantDecay",
     .config =
         R"({"boundaries": [10, 50, 200], "values": [0.1, 0.05, 0.01, 0.001], "name": "PiecewiseConstant"})",
     .values = {0.1,  0.1,  0.1,  0.1,  0.1,  0.05, 0.05, 0.05, 0.05, 0.05, 0.05,  0.05, 0.05,
                0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.001, 0.001}},
    {.class_name = "PolynomialDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 100, "end_learning_rate": 0.01, "power": 1.0, "cycle": false, "name": "PolynomialDecay"})",
     .values = {0.1,    0.0991,      0.0955,     0.0919,      0.091,  0.0901, 0.0829,
                0.082,  0.0811,      0.07390001, 0.073,       0.0721, 0.055,  0.0541,
                0.0289, 0.027999999, 0.0271,     0.010899999, 0.01,   0.01,   0.01,
                0.01,   0.01,        0.01,       0.01}},
    {.class_name = "PolynomialDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 80, "end_learning_rate": 0.001, "power": 0.5, "cycle": true, "name": "PolynomialDecay"})",
     .values = {0.1,         0.09937931, 0.09685634,  0.09426515,  0.093606025,
                0.09294217,  0.08744804, 0.086736515, 0.08601905,  0.08004516,
                0.07926638,  0.07847976, 0.06162487,  0.060605895, 0.0120685315,
                0.001,       0.07056467, 0.06212799,  0.06162487,  0.061117537,
                0.043868255, 0.02575,    0.04141658,  0.040908176, 0.033405356}},
    {.class_name = "InverseTimeDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 20, "decay_rate": 0.5, "staircase": false, "name": "InverseTimeDecay"})",
     .values = {0.1,         0.09756098,  0.08888889,  0.08163265,  0.08,
                0.078431375, 0.06779661,  0.06666667,  0.065573774, 0.057971016,
                0.057142857, 0.05633803,  0.044444446, 0.04395604,  0.033613447,
                0.033333335, 0.03305785,  0.02877698,  0.028571429, 0.028368793,
                0.023529412, 0.021052632, 0.016666668, 0.016597511, 0.0074074077}},
    {.class_name = "InverseTimeDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 20, "decay_rate": 0.5, "staircase": true, "name": "InverseTimeDecay"})",
     .values = {0.1,         0.1,         0.1,         0.1,         0.1,         0.1,         0.1,
                0.06666667,  0.06666667,  0.06666667,  0.06666667,  0.06666667,  0.05,        0.05,
                0.04,        0.033333335, 0.033333335, 0.033333335, 0.028571429, 0.028571429, 0.025,
                0.022222223, 0.016666668, 0.016666668, 0.0074074077}},
    {.class_name = "CosineDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 100, "alpha": 0.0, "name": "CosineDecay", "warmup_target": null, "warmup_steps": 0})",
     .values = {0.1,         0.099975325, 0.09938442,    0.09801469, 0.09755283,
                0.09704404,  0.09135403,  0.090450846,   0.08950775, 0.08064535,
                0.07938927,  0.07810417,  0.049999997,   0.04842946, 0.0104922475,
                0.009549147, 0.008645969, 2.4673343e-05, 0.0,        0.0,
                0.0,         0.0,         0.0,           0.0,        0.0}},
    {.class_name = "CosineDecay",
     .config =
         R"({"initial_learning_rate": 0.1, "decay_steps": 100, "alpha": 0.1, "name": "CosineDecay", "warmup_target": null, "warmup_steps": 0})",
     .values = {0.1,         0.09997779,  0.09944598,  0.09821322,  0.09779754,
                0.09733964,  0.09221862,  0.091405764, 0.09055698,  0.08258082,
                0.081450336, 0.08029375,  0.054999996, 0.053586513, 0.019443024,
                0.018594233, 0.017781373, 0.010022206, 0.010000001, 0.010000001,
                0.010000001, 0.010000001, 0.010000001, 0.010000001, 0.010000001}},
    {.class_name = "CosineDecay",
     .config =
         R"({"initial_learning_rate": 0.0, "decay_steps": 100, "alpha": 0.0, "name": "CosineDecay", "warmup_target": 0.2, "warmup_steps": 30})",
     .values = {0.0,         0.0066666673, 0.033333335, 0.060000002, 0.06666667,
                0.07333334,  0.12666667,   0.13333334,  0.14,        0.19333333,
                0.2,         0.19995065,   0.18090169,  0.1790155,   0.10314107,
                0.099999994, 0.09685892,   0.043791648, 0.04122148,  0.0387093,
                0.0,         0.0,          0.0,         0.0,         0.0}},
    {.class_name = "CosineDecayRestarts",
     .config =
         R"({"initial_learning_rate": 0.1, "first_decay_steps": 20, "t_mul": 2.0, "m_mul": 1.0, "alpha": 0.0, "name": "SGDRDecay"})",
     .values = {0.1,         0.09938442,    0.08535534,  0.05782173,  0.049999997,
                0.042178273, 0.00061558187, 0.1,         0.099845864, 0.088020295,
                0.08535534,  0.08247241,    0.014644662, 0.011979699, 0.08671613,
                0.08535534,  0.08394003,    0.051962998, 0.049999997, 0.048037004,
                0.003806019, 0.09903927,    0.06913417,  0.06822352,  0.030865824}},
    {.class_name = "CosineDecayRestarts",
     .config =
         R"({"initial_learning_rate": 0.1, "first_decay_steps": 20, "t_mul": 1.5, "m_mul": 0.8, "alpha": 0.05, "name": "SGDRDecay"})",
     .values = {0.1,         0.0994152,   0.08608758,  0.05993064,  0.0525,
                0.045069363, 0.005584803, 0.081,       0.08079183,  0.06533584,
                0.062000003, 0.058456,    0.0658,      0.06572595,  0.022073513,
                0.0202,      0.018400528, 0.053219773, 0.052984454, 0.052697886,
                0.02790592,  0.009000935, 0.03216213,  0.031604197, 0.022383763}},
};

Config serialized(const GoldenSchedule& golden) {
  return Config::dict({{"class_name", golden.class_name}, {"config", parse_json(golden.config)}});
}

TEST(SchedulesTest, RatesMatchKeras) {
  for (const GoldenSchedule& golden : kGolden) {
    const auto schedule = deserialize(serialized(golden));
    for (size_t i = 0; i < kSteps.size(); ++i) {
      const double expected = golden.values[i];
      // Near the end of a half wave, 1 + cos loses all but a few digits in float32.
      EXPECT_NEAR((*schedule)(kSteps[i]), expected, 1e-6 * expected + 2e-9)
          << golden.class_name << " " << golden.config << ", step " << kSteps[i];
    }
  }
}

TEST(SchedulesTest, WriteKerasConfigs) {
  for (const GoldenSchedule& golden : kGolden) {
    const auto schedule = deserialize(serialized(golden));
    EXPECT_EQ(schedule->class_name(), std::string(golden.class_name));
    EXPECT_EQ(to_json(schedule->get_config()), golden.config);
    const Config written = serialize(*schedule);
    EXPECT_EQ(written["module"].string(), "keras.optimizers.schedules");
    EXPECT_EQ(to_json(serialize(*deserialize(written))), to_json(written));
  }
}

TEST(SchedulesTest, AreLearningRates) {
  const LearningRate rate =
      ExponentialDecay({.initial_learning_rate = 0.5, .decay_steps = 1, .decay_rate = 0.5});
  EXPECT_DOUBLE_EQ(rate(1), 0.25);
  EXPECT_FALSE(rate.number().has_value());
  EXPECT_NE(rate.schedule(), nullptr);
  LearningRate read = 0.0;
  decode(encode(rate), read);
  EXPECT_DOUBLE_EQ(read(2), 0.125);
}

TEST(SchedulesTest, RestartOnTheExactStepDespiteRounding) {
  const CosineDecayRestarts restarts(
      {.initial_learning_rate = 1, .first_decay_steps = 10, .t_mul = 3});
  int64_t start = 0;
  for (int64_t length = 10; start < 1'000'000'000; length *= 3) {
    EXPECT_DOUBLE_EQ((*restarts)(start), 1) << start;
    start += length;
    EXPECT_LT((*restarts)(start - 1), 0.03) << start;
  }
}

TEST(SchedulesTest, RestartAtEqualIntervals) {
  const CosineDecayRestarts restarts(
      {.initial_learning_rate = 1, .first_decay_steps = 10, .t_mul = 1, .m_mul = 0.5});
  EXPECT_DOUBLE_EQ((*restarts)(30), 0.125);
  EXPECT_DOUBLE_EQ((*restarts)(35), 0.0625);
}

TEST(SchedulesTest, WarmUpBeforeTheyDecay) {
  const CosineDecay warm(
      {.initial_learning_rate = 0.1, .decay_steps = 10, .warmup_target = 1.1, .warmup_steps = 4});
  EXPECT_DOUBLE_EQ((*warm)(0), 0.1);
  EXPECT_DOUBLE_EQ((*warm)(2), 0.6);
  EXPECT_DOUBLE_EQ((*warm)(4), 1.1);
  EXPECT_NEAR((*warm)(9), 0.55, 1e-12);
  EXPECT_NEAR((*warm)(14), 0, 1e-12);
}

TEST(SchedulesTest, RejectStepsThatAreNotPositive) {
  EXPECT_THROW(ExponentialDecay({.decay_steps = 0, .decay_rate = 0.5}), ValueError);
  EXPECT_THROW(PolynomialDecay({.decay_steps = 0}), ValueError);
  EXPECT_THROW(InverseTimeDecay({.decay_steps = -1, .decay_rate = 0.5}), ValueError);
  EXPECT_THROW(CosineDecay({.decay_steps = 0}), ValueError);
  EXPECT_THROW(CosineDecay({.decay_steps = 1, .warmup_steps = -1}), ValueError);
  EXPECT_THROW(CosineDecayRestarts({.first_decay_steps = 0}), ValueError);
}

TEST(SchedulesTest, RejectParametersOutOfRange) {
  EXPECT_THROW(ExponentialDecay({.decay_steps = 1, .decay_rate = 0}), ValueError);
  EXPECT_THROW(PolynomialDecay({.decay_steps = 1, .power = -1}), ValueError);
  EXPECT_THROW(InverseTimeDecay({.decay_steps = 1, .decay_rate = -0.5}), ValueError);
  EXPECT_THROW(CosineDecayRestarts({.first_decay_steps = 1, .t_mul = 0.5}), ValueError);
  EXPECT_THROW(CosineDecayRestarts({.first_decay_steps = 1, .m_mul = -1}), ValueError);
  EXPECT_THROW(PiecewiseConstantDecay({.boundaries = {1, 2}, .values = {1, 2}}), ValueError);
  EXPECT_THROW(PiecewiseConstantDecay({.boundaries = {2, 2}, .values = {1, 2, 3}}), ValueError);
}

TEST(SchedulesTest, RejectUnknownClassesAndKeys) {
  EXPECT_THROW(deserialize(parse_json(R"({"class_name": "Nonesuch", "config": {}})")), ValueError);
  EXPECT_THROW(deserialize(parse_json(R"({"class_name": "CosineDecay"})")), ValueError);
  EXPECT_THROW(deserialize(parse_json(R"({"class_name": "CosineDecay", "config": {"steps": 3}})")),
               ValueError);
}

struct HalvingOptions {
  double first = 1;
  static constexpr void fields(auto& self, auto&& field) { field("first", self.first); }
};
class Halving final : public LearningRateSchedule {
 public:
  static constexpr char kClassName[] = "Halving";
  using Options = HalvingOptions;
  explicit Halving(Options options) : options_(options) {}
  double operator()(int64_t step) const override { return options_.first / (1 << step); }
  const char* class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

TEST(SchedulesTest, UserClassesRoundTripOnceRegistered) {
  schedule_registry().add<Halving>();
  const SGD sgd({.learning_rate = std::make_shared<Halving>(HalvingOptions{.first = 8})});
  const OptimizerHandle copy = optimizers::deserialize(optimizers::serialize(*sgd));
  copy->set_iterations(2);
  EXPECT_DOUBLE_EQ(copy->learning_rate(), 2);
}

}  // namespace keel::optimizers::schedules::schedules_test

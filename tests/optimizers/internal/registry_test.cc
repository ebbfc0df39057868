#include <keel/optimizers/internal/registry.h>

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/optimizers/sgd.h>

#include "tests/optimizers/golden.h"
#include "tests/support/errors.h"

namespace keel::registry_test {

using optimizers::SGD;
using testing::HasSubstr;
using testing_support::message_of;

struct PlainOptions {
  LearningRate learning_rate = 0.5;
  double weight_decay = 0;
  std::string name = {};
  static constexpr void fields(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate);
    field("weight_decay", self.weight_decay);
    field("name", self.name);
  }
};
class PlainRMSprop final : public Optimizer {
 public:
  static constexpr char kClassName[] = "PlainRMSprop";
  using Options = PlainOptions;
  explicit PlainRMSprop(Options options)
      : Optimizer(kClassName, std::make_shared<SGDRule>(),
                  {.learning_rate = options.learning_rate, .name = options.name}),
        options_(std::move(options)) {}
  Config get_config() const override { return config_of(options_); }

 private:
  const Options options_;
};

TEST(OptimizersTest, ClassNamesMatchKeras) {
  EXPECT_EQ(Handle<PlainRMSprop>(PlainOptions{})->name(), "plain_rm_sprop");
  EXPECT_EQ(SGD(SGDOptions{})->name(), "sgd");
}

TEST(OptimizersTest, AreFoundByNameInAnyCase) {
  for (const char* name : {"adam", "Adam", "ADAM"}) {
    EXPECT_EQ(optimizers::get(name)->class_name(), "Adam");
  }
  EXPECT_EQ(optimizers::get("ftrl")->class_name(), "Ftrl");
  EXPECT_EQ(optimizers::get("sgd")->class_name(), "SGD");
  EXPECT_EQ(optimizers::get("adagrad")->learning_rate(), 0.001);
  EXPECT_THROW(optimizers::get("adamant"), ValueError);
}

constexpr char kFromKeras[] =
    R"({"module": "keras.optimizers", "class_name": "Adam", "config": {"name": "adam",
        "learning_rate": 0.25, "weight_decay": null, "clipnorm": null, "global_clipnorm": null,
        "clipvalue": null, "use_ema": false, "ema_momentum": 0.99, "ema_overwrite_frequency": null,
        "loss_scale_factor": null, "gradient_accumulation_steps": null, "beta_1": 0.5,
        "beta_2": 0.999, "epsilon": 1e-07, "amsgrad": false}, "registered_name": "Adam"})";

TEST(OptimizersTest, ReadConfigsOfKeras) {
  const OptimizerHandle adam = optimizers::deserialize(parse_json(kFromKeras));
  EXPECT_EQ(adam->learning_rate(), 0.25);
  EXPECT_EQ(adam->get_config()["beta_1"].number(), 0.5);
}

TEST(OptimizersTest, ReadConfigsOfKeras2) {
  const OptimizerHandle sgd = optimizers::deserialize(parse_json(
      R"({"class_name": "Custom>sgd", "config": {"name": "SGD", "learning_rate": 0.5, "decay": 0,
          "momentum": 0.5, "nesterov": false, "jit_compile": true,
          "is_legacy_optimizer": false}})"));
  EXPECT_EQ(sgd->class_name(), "SGD");
  EXPECT_EQ(sgd->name(), "SGD");
}

TEST(OptimizersTest, NameUnsupportedKeras2Settings) {
  const std::vector<std::pair<const char*, Config>> settings = {{"decay", 0.5},
                                                                {"is_legacy_optimizer", true}};
  for (const auto& [key, value] : settings) {
    Config config = parse_json(kFromKeras)["config"];
    config.set(key, value);
    const Config whole = Config::dict({{"class_name", "Adam"}, {"config", config}});
    EXPECT_THROW(optimizers::deserialize(whole), NotImplementedError) << key;
    EXPECT_THAT(message_of([&] { optimizers::deserialize(whole); }), HasSubstr(key));
  }
}

TEST(OptimizersTest, HaveAllClassesOfKeras) {
  for (const char* name : {"Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion",
                           "Nadam", "RMSprop", "SGD"}) {
    EXPECT_EQ(optimizers::get(name)->class_name(), name);
    testing_support::expect_config_round_trip(optimizers::get(name));
  }
}

TEST(OptimizersTest, OptionsOfAllClassesRoundTrip) {
  const std::vector<std::pair<const char*, Config>> options = {{"weight_decay", 0.1},
                                                               {"clipnorm", 1.0},
                                                               {"global_clipnorm", 1.0},
                                                               {"clipvalue", 1.0},
                                                               {"use_ema", true},
                                                               {"ema_momentum", 0.5},
                                                               {"ema_overwrite_frequency", 3},
                                                               {"loss_scale_factor", 2.0},
                                                               {"gradient_accumulation_steps", 4}};
  for (const std::string& name : optimizers::optimizer_registry().class_names()) {
    // These have the options of other optimizers.
    if (name == PlainRMSprop::kClassName || name == "LossScaleOptimizer") continue;
    if (name == "MultiOptimizer") continue;
    for (const auto& [key, value] : options) {
      Config config = optimizers::get(name)->get_config();
      ASSERT_NE(config.find(key), nullptr) << name << ", " << key;
      config.set(key, value);
      const OptimizerHandle read =
          optimizers::deserialize(Config::dict({{"class_name", name}, {"config", config}}));
      EXPECT_EQ(to_json(read->get_config()), to_json(config));
    }
  }
}

TEST(OptimizersTest, RejectUnknownClassesAndKeys) {
  const auto read = [](const char* json) { return optimizers::deserialize(parse_json(json)); };
  EXPECT_THROW(read(R"({"class_name": "Nonesuch", "config": {}})"), ValueError);
  EXPECT_THROW(read(R"({"class_name": "Adam", "config": {"beta_3": 1}})"), ValueError);
  EXPECT_THROW(read(R"({"class_name": "Adam"})"), ValueError);
  EXPECT_THROW(read(R"({"config": {}})"), ValueError);
  EXPECT_THROW(read(R"({"class_name": "Adam", "config": {"learning_rate": "fast"}})"), TypeError);
}

TEST(OptimizersTest, UserClassesRoundTripOnceRegistered) {
  optimizers::optimizer_registry().add<PlainRMSprop>();
  const Handle<PlainRMSprop> mine({.learning_rate = 0.125, .weight_decay = 0.5});
  testing_support::expect_config_round_trip(mine);
  const OptimizerHandle copy = optimizers::deserialize(optimizers::serialize(*mine));
  EXPECT_EQ(copy->get_config()["weight_decay"].number(), 0.5);
  EXPECT_EQ(optimizers::serialize(*mine).find("module"), nullptr);
}

}  // namespace keel::registry_test

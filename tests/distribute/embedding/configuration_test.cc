// Tests distribute/embedding/optimization_parameters.cc.
#include <keel/distribute/embedding/configuration.h>

#include <limits>
#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/framework/random.h>

#include "tests/support/errors.h"

namespace keel::distribute::configuration_test {

using testing::HasSubstr;
using testing::Not;
using testing_support::message_of;

using Rule = std::shared_ptr<const UpdateRule>;

Rule engine(Rule base, std::vector<std::string> slots) {
  return std::make_shared<EngineRule>(std::move(base), std::move(slots));
}

// Returns one rule of each kind that engines support, with non-default parameters.
std::vector<std::pair<std::string, Rule>> all_rules() {
  return {
      {"stochastic_gradient_descent", engine(std::make_shared<SGDRule>(), {})},
      {"adagrad", engine(std::make_shared<AdagradRule>(0.25, 0), {"accumulators"})},
      {"adagrad_momentum",
       std::make_shared<AdagradMomentumRule>(AdagradMomentumRuleOptions{
           .momentum = 0.9, .nesterov = true, .exponent = 3, .beta2 = 0.5, .epsilon = 0.125})},
      {"ftrl",
       engine(std::make_shared<FtrlRule>(FtrlRuleOptions{.learning_rate_power = -0.25,
                                                         .initial_accumulator_value = 0.5,
                                                         .l1 = 0.125,
                                                         .l2 = 0.25,
                                                         .beta = 0.75,
                                                         .multiply_linear_by_learning_rate = true,
                                                         .allow_zero_accumulator = true}),
              {"accumulators", "linears"})},
      {"adam", engine(std::make_shared<AdamRule>(AdamRuleOptions{.beta_1 = 0.5,
                                                                 .beta_2 = 0.75,
                                                                 .epsilon = 0.125,
                                                                 .bias_correction = false,
                                                                 .sum_inside_sqrt = true}),
                      {"momenta", "velocities"})},
      {"momentum", std::make_shared<MomentumRule>(0.75, true)},
      {"rms_prop", std::make_shared<RMSPropRule>(0.5, 0.25, 0.125)},
      {"rowwise_adagrad", std::make_shared<RowwiseAdagradRule>(0.5, 0.125)},
      {"proximal_adagrad", std::make_shared<ProximalAdagradRule>(0.5, 0.25, 0.125)},
      {"proximal_yogi", std::make_shared<ProximalYogiRule>(
                            ProximalYogiRuleOptions{.beta1 = 0.5,
                                                    .beta2 = 0.75,
                                                    .epsilon = 0.125,
                                                    .l1 = 0.25,
                                                    .l2 = 0.375,
                                                    .initial_accumulator_value = 0.0625})},
      {"frequency_estimator",
       std::make_shared<FrequencyEstimatorRule>(FrequencyEstimatorRuleOptions{
           .tau = 0.5, .max_delta = 100, .outlier_threshold = 2, .weight_exponent = 0.75})},
      {"la_prop", std::make_shared<LaPropRule>(LaPropRuleOptions{
                      .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.125, .initial_slot_value = 0.25})},
      {"f2a", std::make_shared<F2ARule>(F2ARuleOptions{.rho = 0.75,
                                                       .l1 = 0.125,
                                                       .l2 = 0.25,
                                                       .max_lr_multiplier = 2,
                                                       .initial_accumulator_value = 0.5,
                                                       .initial_local_step_value = 3})}};
}

EngineConfiguration with_all_rules() {
  EngineConfiguration out = {.tables = {}, .features = {}, .num_hosts = 2, .num_tensor_cores = 6};
  for (const auto& [name, rule] : all_rules()) {
    out.tables.push_back(
        {.name = name, .rows = 10, .dim = 1, .update = {.rule = rule}, .learning_rate = 0.5});
    out.features.push_back({.name = "of " + name,
                            .table_id = static_cast<int>(out.tables.size()) - 1,
                            .input_shape = {4, kUnknown}});
  }
  return out;
}

EngineConfiguration one_table() {
  return {
      .tables = {{.name = "t", .rows = 10, .dim = 2, .update = {.rule = all_rules()[1].second}}},
      .features = {{.table_id = 0, .input_shape = {4}}},
      .num_hosts = 2,
      .num_tensor_cores = 4};
}

// Returns weights and slots after three steps of the rule.
std::vector<float> trained(const UpdateRule& rule) {
  const int64_t n = 4;
  std::vector<float> state = {1, -0.5F, 0, 2};
  std::vector<std::vector<float>> slots;
  for (const Slot& slot : rule.slots()) slots.emplace_back(n, static_cast<float>(slot.initial));
  std::vector<float*> pointers;
  for (auto& slot : slots) pointers.push_back(slot.data());
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> gradient = {0.5F, -1, 0, 0.25F};
    rule.update(state.data(), gradient.data(), pointers.data(), n, {.learning_rate = 0.5});
  }
  for (const auto& slot : slots) state.insert(state.end(), slot.begin(), slot.end());
  return state;
}

TEST(EngineConfigurationTest, EveryRuleRoundTripsThroughTheRecord) {
  const EngineConfiguration before = with_all_rules();
  const std::string record = serialize(before);
  const EngineConfiguration after = parse_engine_configuration(record);
  ASSERT_EQ(after.tables.size(), before.tables.size());
  for (size_t t = 0; t < before.tables.size(); ++t) {
    const std::string& name = before.tables[t].name;
    ASSERT_NE(after.tables[t].update.rule, nullptr) << name;
    const auto slots = before.tables[t].update.rule->slots();
    const auto slots_after = after.tables[t].update.rule->slots();
    ASSERT_EQ(slots.size(), slots_after.size()) << name;
    for (size_t s = 0; s < slots.size(); ++s) EXPECT_EQ(slots[s].name, slots_after[s].name);
    EXPECT_EQ(trained(*before.tables[t].update.rule), trained(*after.tables[t].update.rule))
        << name;
    EXPECT_THAT(to_text(record), HasSubstr(name + " {")) << name;
  }
  EXPECT_EQ(serialize(after), record);
}

TEST(EngineConfigurationTest, AllOtherFieldsRoundTrip) {
  EngineConfiguration before = one_table();
  before.tables[0].combiner = Combiner::kSqrtN;
  before.tables[0].num_features = 7;
  before.tables[0].learning_rate_tag = 0;
  before.tables[0].quantization = Quantization{.num_buckets = 5, .lower = -1, .upper = 2};
  before.tables[0].low_dimensional_packing = true;
  before.tables[0].storage = kernels::StorageType::kFloat16;
  before.tables[0].update = {.rule = all_rules()[4].second,
                             .clip_gradient_min = -0.5,
                             .weight_decay_factor = 0.25,
                             .multiply_weight_decay_factor_by_learning_rate = true,
                             .clip_weight_max = 3,
                             .use_gradient_accumulation = false,
                             .lazy = false};
  before.features[0].name = "f";
  before.features[0].input_shape = {};
  before.batch_size_per_tensor_core = 9;
  before.sharding_strategy = ShardingStrategy::kMod;
  before.pipeline_execution_with_tensor_core = true;
  before.profile_data_directory = "somewhere";
  const EngineConfiguration after = parse_engine_configuration(serialize(before));
  const EngineTable& table = after.tables[0];
  EXPECT_EQ(table.name, "t");
  EXPECT_EQ(table.rows, 10);
  EXPECT_EQ(table.dim, 2);
  EXPECT_EQ(table.combiner, Combiner::kSqrtN);
  EXPECT_EQ(table.num_features, 7);
  EXPECT_EQ(table.learning_rate_tag, 0);
  EXPECT_EQ(table.quantization->num_buckets, 5);
  EXPECT_EQ(table.quantization->lower, -1);
  EXPECT_EQ(table.quantization->upper, 2);
  EXPECT_TRUE(table.low_dimensional_packing);
  EXPECT_EQ(table.storage, kernels::StorageType::kFloat16);
  EXPECT_EQ(table.update.clip_gradient_min, -0.5);
  EXPECT_FALSE(table.update.clip_gradient_max);
  EXPECT_FALSE(table.update.clip_weight_min);
  EXPECT_EQ(table.update.clip_weight_max, 3);
  EXPECT_EQ(table.update.weight_decay_factor, 0.25);
  EXPECT_TRUE(table.update.multiply_weight_decay_factor_by_learning_rate);
  EXPECT_FALSE(table.update.use_gradient_accumulation);
  EXPECT_FALSE(table.update.lazy);
  EXPECT_EQ(after.features[0].name, "f");
  EXPECT_EQ(after.features[0].input_shape, Shape{});
  EXPECT_EQ(after.batch_size_per_tensor_core, 9);
  EXPECT_EQ(after.num_hosts, 2);
  EXPECT_EQ(after.num_tensor_cores, 4);
  EXPECT_EQ(after.sharding_strategy, ShardingStrategy::kMod);
  EXPECT_TRUE(after.pipeline_execution_with_tensor_core);
  EXPECT_EQ(after.profile_data_directory, "somewhere");
  EXPECT_EQ(serialize(after), serialize(before));
}

TEST(EngineConfigurationTest, TheRecordOmitsUnsetFields) {
  EngineConfiguration c = one_table();
  const std::string plain = to_text(serialize(c));
  for (const char* field : {"clipping_limits", "weight_decay_factor", "simulated_quantization",
                            "low_dimensional_packing_status", "dynamic", "storage"}) {
    EXPECT_THAT(plain, Not(HasSubstr(field))) << field;
  }
  EXPECT_THAT(plain, HasSubstr("mode: TRAINING"));
  EXPECT_THAT(plain, HasSubstr("gradient_accumulation_status: ENABLED"));
  c.tables[0].update.clip_weight_min = 0;
  c.tables[0].learning_rate_tag = 0;
  const std::string text = to_text(serialize(c));
  EXPECT_THAT(text, HasSubstr("lower: 0"));
  EXPECT_THAT(text, Not(HasSubstr("upper")));
  EXPECT_THAT(text, HasSubstr("dynamic"));
}

TEST(EngineConfigurationTest, TheTextHasALineForEachField) {
  const std::string text = to_text(serialize(with_all_rules()));
  EXPECT_GT(std::ranges::count(text, '\n'), 60);
}

TEST(EngineConfigurationTest, EqualConfigurationsGiveEqualBytes) {
  EXPECT_EQ(serialize(with_all_rules()), serialize(with_all_rules()));
  EngineConfiguration other = with_all_rules();
  other.tables[3].learning_rate = 0.25;
  EXPECT_NE(serialize(other), serialize(with_all_rules()));
}

TEST(EngineConfigurationTest, NamesMayBeAnyBytes) {
  EngineConfiguration c = one_table();
  c.tables[0].name = std::string("\xff\x00\xfe t", 5);
  EXPECT_EQ(parse_engine_configuration(serialize(c)).tables[0].name, c.tables[0].name);
}

TEST(EngineConfigurationTest, ACustomRuleIsReadBackWithoutItsFunction) {
  EngineConfiguration c = one_table();
  c.tables[0].update.rule =
      std::make_shared<CustomRule>([](const CustomRow&) {}, std::vector<std::string>{"s"});
  EXPECT_THAT(to_text(serialize(c)), HasSubstr("user_defined_program"));
  EXPECT_EQ(parse_engine_configuration(serialize(c)).tables[0].update.rule, nullptr);
}

TEST(EngineConfigurationTest, ATableWithoutARuleRoundTrips) {
  EngineConfiguration c = one_table();
  c.tables[0].update.rule = nullptr;
  EXPECT_EQ(parse_engine_configuration(serialize(c)).tables[0].update.rule, nullptr);
}

TEST(EngineConfigurationTest, RulesOfDenseVariablesAreErrors) {
  const auto message = [](Rule rule, bool lazy = true) {
    EngineConfiguration c = one_table();
    c.tables[0].update.rule = std::move(rule);
    c.tables[0].update.lazy = lazy;
    return message_of<ValueError>([&] { serialize(c); });
  };
  EXPECT_THAT(message(std::make_shared<SGDRule>(0.9, false)), HasSubstr("'t'"));
  EXPECT_THAT(message(std::make_shared<AdagradRule>(0.1, 1e-7)), HasSubstr("'t'"));
  EXPECT_THAT(message(std::make_shared<AdamRule>(AdamRuleOptions{})), HasSubstr("'t'"));
  EXPECT_THAT(message(std::make_shared<AdagradRule>(0.1, 0), /*lazy=*/false), HasSubstr("'t'"));
}

TEST(EngineConfigurationTest, InconsistentNumbersAreErrors) {
  const auto refused = [](const std::function<void(EngineConfiguration&)>& change) {
    EngineConfiguration c = one_table();
    change(c);
    try {
      parse_engine_configuration(serialize(c));
    } catch (const ValueError&) {
      return true;
    }
    return false;
  };
  using C = EngineConfiguration;
  EXPECT_FALSE(refused([](C&) {}));
  EXPECT_TRUE(refused([](C& c) { c.num_hosts = 3; }));
  EXPECT_TRUE(refused([](C& c) { c.num_hosts = 0; }));
  EXPECT_TRUE(refused([](C& c) { c.num_tensor_cores = 0; }));
  EXPECT_TRUE(refused([](C& c) { c.num_tensor_cores = -4; }));
  EXPECT_TRUE(refused([](C& c) { c.batch_size_per_tensor_core = -1; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].rows = 0; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].rows = -5; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].dim = 0; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].num_features = -1; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].rows = std::numeric_limits<int64_t>::max() / 4; }));
  EXPECT_TRUE(refused([](C& c) { c.features[0].table_id = 1; }));
  EXPECT_TRUE(refused([](C& c) { c.features[0].table_id = -1; }));
  EXPECT_TRUE(
      refused([](C& c) { c.features[0].input_shape = {int64_t{1} << 40, int64_t{1} << 40}; }));
  EXPECT_TRUE(refused([](C& c) { c.tables.push_back(c.tables[0]); }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].learning_rate_tag = 1; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].learning_rate_tag = -1; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].quantization = Quantization{.num_buckets = 1}; }));
  EXPECT_TRUE(refused([](C& c) { c.tables[0].quantization = Quantization{.num_buckets = 2}; }));
  // FrequencyEstimator requires rows of one element.
  const std::vector<std::pair<std::string, Rule>> all = all_rules();
  const std::map<std::string, Rule> rules(all.begin(), all.end());
  EXPECT_TRUE(refused([&](C& c) { c.tables[0].update.rule = rules.at("frequency_estimator"); }));
}

TEST(EngineConfigurationTest, MalformedBytesAreErrors) {
  const std::string good = serialize(with_all_rules());
  const auto survive = [](const std::string& record) {
    try {
      const EngineConfiguration c = parse_engine_configuration(record);
      for (const EngineFeature& f : c.features) ASSERT_LT(f.table_id, std::ssize(c.tables));
      ASSERT_EQ(c.num_tensor_cores % c.num_hosts, 0);
    } catch (const ValueError&) {
    }
  };
  for (size_t cut = 0; cut < good.size(); ++cut) survive(good.substr(0, cut));
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x08, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      survive(bad);
    }
  }
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string noise;
    for (uint32_t word : RandomStream{.seed = i}.bits(0)) {
      noise.append(reinterpret_cast<const char*>(&word), sizeof(word));
    }
    survive(noise);
  }
  EXPECT_THROW(parse_engine_configuration(""), ValueError);
  EXPECT_THROW(parse_engine_configuration("no record"), ValueError);
  EXPECT_THROW(to_text("no record"), ValueError);
}

TEST(EngineConfigurationTest, KeepsNormsAndPenalties) {
  EngineConfiguration configuration = {
      .tables = {{.name = "t",
                  .rows = 2,
                  .dim = 1,
                  .update = {.rule = std::make_shared<RowwiseAdagradRule>(0.5, 0.25),
                             .clipnorm = 0.5,
                             .l2 = 0.25,
                             .max_norm = 2}},
                 {.name = "u",
                  .rows = 2,
                  .dim = 1,
                  .update = {.rule = std::make_shared<RowwiseAdagradRule>(0.5, 0.25),
                             .global_clipnorm = 3,
                             .global_clipnorm_group = 1}}},
      .features = {}};
  const std::string record = serialize(configuration);
  const EngineConfiguration parsed = parse_engine_configuration(record);
  EXPECT_EQ(serialize(parsed), record);
  EXPECT_EQ(parsed.tables[0].update.clipnorm, 0.5);
  EXPECT_EQ(parsed.tables[0].update.l2, 0.25);
  EXPECT_EQ(parsed.tables[0].update.max_norm, 2);
  EXPECT_EQ(parsed.tables[1].update.global_clipnorm, 3);
  EXPECT_EQ(parsed.tables[1].update.global_clipnorm_group, 1);
  configuration.tables[0].update.use_gradient_accumulation = false;
  EXPECT_THROW(parse_engine_configuration(serialize(configuration)), ValueError);
  configuration.tables[0].update = {.rule = configuration.tables[1].update.rule, .l2 = -1};
  EXPECT_NO_THROW(parse_engine_configuration(serialize(configuration)))
      << "a penalty that is not positive is not written";
}

}  // namespace keel::distribute::configuration_test

#include <keel/optimizers/embedding/tpu_parameters.h>

#include <keel/optimizers/embedding/embedding_optimizer_internal.h>

namespace keel::embedding_optimizer_internal {
namespace {

double required(const char* caller, const char* name, const std::optional<double>& value) {
  if (!value) throw ValueError(caller, ": ", name, " is required, received none");
  return *value;
}

template <class Options>
TableOptimizerState named(const Options& o, std::vector<std::string> v1_slot_suffixes) {
  Config config = to_config(o);
  if (config.find("learning_rate") != nullptr) config.set("learning_rate", 0.0);
  return {
      .class_name = Options::kClassName,
      .rule = nullptr,
      .v1_parameters = true,
      .v1_slot_suffixes = std::move(v1_slot_suffixes),
      .config = Config::dict({{"class_name", Options::kClassName}, {"config", std::move(config)}})};
}

// Converts the parameters that all classes except FrequencyEstimator have in common.
template <class Options>
TableOptimizerState common(const Options& o, bool use_gradient_accumulation,
                           std::vector<std::string> v1_slot_suffixes) {
  const char* caller = Options::kClassName;
  TableOptimizerState state = named(o, std::move(v1_slot_suffixes));
  state.learning_rate = required(caller, "learning_rate", o.learning_rate);
  if ((o.clip_gradient_min || o.clip_gradient_max) && !use_gradient_accumulation) {
    throw ValueError(caller,
                     ": clip_gradient_min and clip_gradient_max require use_gradient_accumulation, "
                     "received false with ",
                     to_json(encode(o.clip_gradient_min)), " and ",
                     to_json(encode(o.clip_gradient_max)));
  }
  check_bounds(caller, "clip_gradient", o.clip_gradient_min, o.clip_gradient_max);
  check_bounds(caller, "clip_weight", o.clip_weight_min, o.clip_weight_max);
  state.clip_gradient_min = o.clip_gradient_min;
  state.clip_gradient_max = o.clip_gradient_max;
  state.weight_decay_factor = o.weight_decay_factor.value_or(0);
  state.multiply_weight_decay_factor_by_learning_rate =
      o.multiply_weight_decay_factor_by_learning_rate;
  state.clip_weight_min = o.clip_weight_min;
  state.clip_weight_max = o.clip_weight_max;
  state.use_gradient_accumulation = use_gradient_accumulation;
  return state;
}

template <class Options>
TableOptimizerState common(const Options& o, std::vector<std::string> v1_slot_suffixes) {
  return common(o, o.use_gradient_accumulation, std::move(v1_slot_suffixes));
}

}  // namespace

TableOptimizerState state_of(const tpu::StochasticGradientDescentParameters& o) {
  TableOptimizerState state =
      common(o, o.clip_gradient_min.has_value() || o.clip_gradient_max.has_value(), {});
  set_rule(state, std::make_shared<SGDRule>(), {});
  return state;
}

TableOptimizerState state_of(const tpu::AdagradParameters& o) {
  check_positive("AdagradParameters", "initial_accumulator", o.initial_accumulator);
  TableOptimizerState state = common(o, {"Adagrad"});
  set_rule(state, std::make_shared<AdagradRule>(o.initial_accumulator, 0), {"accumulators"});
  return state;
}

TableOptimizerState state_of(const tpu::AdamParameters& o) {
  const char* caller = tpu::AdamParameters::kClassName;
  check_beta(caller, "beta1", o.beta1);
  check_beta(caller, "beta2", o.beta2);
  check_positive(caller, "epsilon", o.epsilon);
  check_lazy(caller, o.lazy_adam, o.use_gradient_accumulation);
  TableOptimizerState state = common(o, {"Adam/m", "Adam/v"});
  set_adam(state, o.beta1, o.beta2, o);
  return state;
}

TableOptimizerState state_of(const tpu::FtrlParameters& o) {
  const char* caller = tpu::FtrlParameters::kClassName;
  check_ftrl(caller, o.learning_rate_power, o.l1_regularization_strength,
             o.l2_regularization_strength);
  check_not_negative(caller, "initial_accumulator_value", o.initial_accumulator_value);
  TableOptimizerState state = common(o, {"Ftrl", "Ftrl_1"});
  set_ftrl(state, o);
  return state;
}

TableOptimizerState state_of(const tpu::ProximalAdagradParameters& o) {
  const char* caller = tpu::ProximalAdagradParameters::kClassName;
  check_positive(caller, "initial_accumulator", o.initial_accumulator);
  check_not_negative(caller, "l1_regularization_strength", o.l1_regularization_strength);
  check_not_negative(caller, "l2_regularization_strength", o.l2_regularization_strength);
  TableOptimizerState state = common(o, {"ProximalAdagrad"});
  set_rule(state,
           std::make_shared<ProximalAdagradRule>(
               o.initial_accumulator, o.l1_regularization_strength, o.l2_regularization_strength),
           {"accumulators"});
  return state;
}

TableOptimizerState state_of(const tpu::ProximalYogiParameters& o) {
  const char* caller = tpu::ProximalYogiParameters::kClassName;
  check_beta(caller, "beta1", o.beta1);
  check_beta(caller, "beta2", o.beta2);
  check_positive(caller, "epsilon", o.epsilon);
  check_not_negative(caller, "l1_regularization_strength", o.l1_regularization_strength);
  check_not_negative(caller, "l2_regularization_strength", o.l2_regularization_strength);
  TableOptimizerState state = common(o, {"ProximalYogi", "ProximalYogi_1"});
  set_rule(state,
           std::make_shared<ProximalYogiRule>(
               ProximalYogiRuleOptions{.beta1 = o.beta1,
                                       .beta2 = o.beta2,
                                       .epsilon = o.epsilon,
                                       .l1 = o.l1_regularization_strength,
                                       .l2 = o.l2_regularization_strength,
                                       .initial_accumulator_value = o.initial_accumulator_value}),
           {"v", "m"});
  return state;
}

TableOptimizerState state_of(const tpu::MomentumParameters& o) {
  TableOptimizerState state = common(o, {"Momentum"});
  const double momentum = required("MomentumParameters", "momentum", o.momentum);
  set_rule(state, std::make_shared<MomentumRule>(momentum, o.use_nesterov), {"momenta"});
  return state;
}

TableOptimizerState state_of(const tpu::RMSPropParameters& o) {
  const char* caller = tpu::RMSPropParameters::kClassName;
  TableOptimizerState state = common(o, {"RMSProp/ms", "RMSProp/mom"});
  set_rule(state,
           std::make_shared<RMSPropRule>(required(caller, "rho", o.rho),
                                         required(caller, "momentum", o.momentum),
                                         required(caller, "epsilon", o.epsilon)),
           {"ms", "mom"});
  return state;
}

TableOptimizerState state_of(const tpu::FrequencyEstimatorParameters& o) {
  const char* caller = tpu::FrequencyEstimatorParameters::kClassName;
  const FrequencyEstimatorRuleOptions rule = {
      .tau = required(caller, "tau", o.tau),
      .max_delta = required(caller, "max_delta", o.max_delta),
      .outlier_threshold = required(caller, "outlier_threshold", o.outlier_threshold),
      .weight_exponent = required(caller, "weight_exponent", o.weight_exponent)};
  TableOptimizerState state = named(o, {"FrequencyEstimator"});
  state.learning_rate = 1.0;
  state.required_dim = 1;
  set_rule(state, std::make_shared<FrequencyEstimatorRule>(rule), {"last_hit_step"});
  return state;
}

}  // namespace keel::embedding_optimizer_internal

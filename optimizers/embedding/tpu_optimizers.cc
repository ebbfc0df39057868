#include <keel/optimizers/embedding/tpu_optimizers.h>

#include <keel/optimizers/embedding/embedding_optimizer_internal.h>

namespace keel::embedding_optimizer_internal {
namespace {

void refuse_schedule(const char* caller, const char* name, const LearningRate& rate) {
  if (rate.schedule() == nullptr) return;
  throw ValueError(caller, ": ", name,
                   " must be a number or a function, received a schedule; pass a Keras optimizer "
                   "with this schedule instead");
}

template <class Options>
void check_clipping(const char* caller, const Options& o) {
  check_not_negative(caller, "clipnorm", o.clipnorm.value_or(0));
  check_not_negative(caller, "global_clipnorm", o.global_clipnorm.value_or(0));
  const bool by_norm = o.clipnorm.value_or(0) > 0, by_all = o.global_clipnorm.value_or(0) > 0;
  if (o.clipvalue.is_set() + by_norm + by_all > 1) {
    throw ValueError(caller,
                     ": at most one of clipvalue, clipnorm and global_clipnorm may be set, "
                     "received clipvalue ",
                     to_json(encode(o.clipvalue)), ", clipnorm ", o.clipnorm.value_or(0),
                     " and global_clipnorm ", o.global_clipnorm.value_or(0),
                     "; leave the others unset");
  }
  if (o.use_gradient_accumulation) return;
  if (o.clipvalue.is_set()) {
    throw ValueError(caller, ": clipvalue requires use_gradient_accumulation, received clipvalue ",
                     to_json(encode(o.clipvalue)), " with use_gradient_accumulation false");
  }
  if (by_norm || by_all) {
    throw ValueError(caller, ": ", by_norm ? "clipnorm" : "global_clipnorm",
                     " requires use_gradient_accumulation, received false");
  }
}

// Converts the options that all classes except CustomOptimizer have in common.
template <class Options>
TableOptimizerState common(const Options& o) {
  const char* caller = Options::kClassName;
  refuse_schedule(caller, "learning_rate", o.learning_rate);
  check_clipping(caller, o);
  check_bounds(caller, "clip_weight", o.clip_weight_min, o.clip_weight_max);
  TableOptimizerState state = {.class_name = caller,
                               .rule = nullptr,
                               .learning_rate = o.learning_rate,
                               .clip_gradient_min = o.clipvalue.min(),
                               .clip_gradient_max = o.clipvalue.max(),
                               .weight_decay_factor = o.weight_decay_factor.value_or(0),
                               .multiply_weight_decay_factor_by_learning_rate =
                                   o.multiply_weight_decay_factor_by_learning_rate,
                               .clipnorm = o.clipnorm.value_or(0),
                               .global_clipnorm = o.global_clipnorm.value_or(0),
                               .clip_weight_min = o.clip_weight_min,
                               .clip_weight_max = o.clip_weight_max,
                               .use_gradient_accumulation = o.use_gradient_accumulation,
                               .low_dimensional_packing_status = o.low_dimensional_packing_status};
  if constexpr (requires { o.slot_variable_creation_fn; }) {
    state.slot_variable_creation_fn = o.slot_variable_creation_fn;
  }
  Options without_rate = o;
  without_rate.learning_rate = 0.0;
  state.config = Config::dict({{"class_name", caller}, {"config", to_config(without_rate)}});
  return state;
}

void set_global_step(TableOptimizerState& state, const std::optional<LearningRate>& step) {
  if (!step) return;
  refuse_schedule(state.class_name.c_str(), "global_step", *step);
  state.hyperparameters = {*step};
}

}  // namespace

void check_positive(const char* caller, const char* name, double value) {
  if (!(value > 0)) throw ValueError(caller, ": ", name, " must be positive, received ", value);
}

void check_not_negative(const char* caller, const char* name, double value) {
  if (!(value >= 0)) {
    throw ValueError(caller, ": ", name, " must not be negative, received ", value);
  }
}

void check_beta(const char* caller, const char* name, double value) {
  if (!(value >= 0 && value < 1)) {
    throw ValueError(caller, ": ", name, " must be in [0, 1), received ", value);
  }
}

void check_bounds(const char* caller, const char* what, const std::optional<double>& low,
                  const std::optional<double>& high) {
  if (low && high && !(*low <= *high)) {
    throw ValueError(caller, ": ", what, "_min must not exceed ", what, "_max, received ", *low,
                     " and ", *high);
  }
}

void check_lazy(const char* caller, bool lazy_adam, bool use_gradient_accumulation) {
  if (!lazy_adam && !use_gradient_accumulation) {
    throw ValueError(caller,
                     ": lazy_adam = false requires use_gradient_accumulation, received false");
  }
}

void check_ftrl(const char* caller, double learning_rate_power, double l1, double l2) {
  if (!(learning_rate_power <= 0)) {
    throw ValueError(caller, ": learning_rate_power must not be positive, received ",
                     learning_rate_power);
  }
  check_not_negative(caller, "l1_regularization_strength", l1);
  check_not_negative(caller, "l2_regularization_strength", l2);
}

void set_rule(TableOptimizerState& state, std::shared_ptr<const UpdateRule> rule,
              std::vector<std::string> slot_names) {
  for (const Slot& slot : rule->slots()) {
    state.slot_initializers.push_back(initializers::constant(slot.initial));
  }
  state.rule = std::make_shared<EngineRule>(std::move(rule), std::move(slot_names));
}

TableOptimizerState state_of(const tpu::SGD& o) {
  TableOptimizerState state = common(o);
  set_rule(state, std::make_shared<SGDRule>(), {});
  return state;
}

TableOptimizerState state_of(const tpu::Adagrad& o) {
  check_positive("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
  TableOptimizerState state = common(o);
  set_rule(state, std::make_shared<AdagradRule>(o.initial_accumulator_value, 0), {"accumulators"});
  return state;
}

TableOptimizerState state_of(const tpu::Adam& o) {
  check_beta("Adam", "beta_1", o.beta_1);
  check_beta("Adam", "beta_2", o.beta_2);
  check_positive("Adam", "epsilon", o.epsilon);
  check_lazy("Adam", o.lazy_adam, o.use_gradient_accumulation);
  TableOptimizerState state = common(o);
  set_adam(state, o.beta_1, o.beta_2, o);
  return state;
}

TableOptimizerState state_of(const tpu::FTRL& o) {
  check_ftrl("FTRL", o.learning_rate_power, o.l1_regularization_strength,
             o.l2_regularization_strength);
  check_positive("FTRL", "initial_accumulator_value", o.initial_accumulator_value);
  TableOptimizerState state = common(o);
  set_ftrl(state, o);
  return state;
}

TableOptimizerState state_of(const tpu::AdagradMomentum& o) {
  check_positive("AdagradMomentum", "epsilon", o.epsilon);
  check_positive("AdagradMomentum", "exponent", o.exponent);
  TableOptimizerState state = common(o);
  set_rule(
      state,
      std::make_shared<AdagradMomentumRule>(AdagradMomentumRuleOptions{.momentum = o.momentum,
                                                                       .nesterov = o.use_nesterov,
                                                                       .exponent = o.exponent,
                                                                       .beta2 = o.beta2,
                                                                       .epsilon = o.epsilon}),
      {"accumulators", "momenta"});
  return state;
}

TableOptimizerState state_of(const tpu::LaProp& o) {
  check_beta("LaProp", "b1", o.b1);
  check_beta("LaProp", "b2", o.b2);
  check_not_negative("LaProp", "eps", o.eps);
  check_not_negative("LaProp", "initial_slot_value", o.initial_slot_value);
  TableOptimizerState state = common(o);
  set_global_step(state, o.global_step);
  set_rule(
      state,
      std::make_shared<LaPropRule>(LaPropRuleOptions{.beta1 = o.b1,
                                                     .beta2 = o.b2,
                                                     .epsilon = o.eps,
                                                     .initial_slot_value = o.initial_slot_value}),
      {"mu", "nu"});
  return state;
}

TableOptimizerState state_of(const tpu::F2A& o) {
  check_not_negative("F2A", "rho", o.rho);
  check_not_negative("F2A", "l1_regularization_strength", o.l1_regularization_strength);
  check_not_negative("F2A", "l2_regularization_strength", o.l2_regularization_strength);
  check_not_negative("F2A", "initial_local_step_value", o.initial_local_step_value);
  check_positive("F2A", "initial_accumulator_value", o.initial_accumulator_value);
  check_positive("F2A", "max_lr_multiplier", o.max_lr_multiplier);
  if (o.rho != 0 && !o.global_step) {
    throw ValueError(
        "F2A: global_step is missing; pass a function that returns the number of the step");
  }
  TableOptimizerState state = common(o);
  set_global_step(state, o.global_step);
  set_rule(state,
           std::make_shared<F2ARule>(
               F2ARuleOptions{.rho = o.rho,
                              .l1 = o.l1_regularization_strength,
                              .l2 = o.l2_regularization_strength,
                              .max_lr_multiplier = o.max_lr_multiplier,
                              .initial_accumulator_value = o.initial_accumulator_value,
                              .initial_local_step_value = o.initial_local_step_value}),
           {"accumulators", "local_steps"});
  return state;
}

TableOptimizerState state_of(const tpu::RowwiseAdagrad& o) {
  check_not_negative("RowwiseAdagrad", "initial_accumulator_value", o.initial_accumulator_value);
  check_not_negative("RowwiseAdagrad", "epsilon", o.epsilon);
  TableOptimizerState state = common(o);
  set_rule(state, std::make_shared<RowwiseAdagradRule>(o.initial_accumulator_value, o.epsilon),
           {"accumulators"});
  return state;
}

TableOptimizerState state_of(const tpu::CustomOptimizer& o) {
  const char* caller = tpu::CustomOptimizer::kClassName;
  if (!o.custom_computation) {
    throw ValueError(caller, ": custom_computation must be a function, received none");
  }
  if (o.slot_names.size() != o.slot_initializers.size()) {
    throw ValueError(caller, ": slot_initializers must have one element per slot name, received ",
                     o.slot_initializers.size(), " for ", o.slot_names.size(), " names");
  }
  refuse_schedule(caller, "learning_rate", o.learning_rate);
  for (const LearningRate& h : o.hyperparameters) refuse_schedule(caller, "hyperparameters", h);
  TableOptimizerState state = {.class_name = caller,
                               .rule = nullptr,
                               .learning_rate = o.learning_rate,
                               .custom = true,
                               .hyperparameters = o.hyperparameters};
  set_rule(state, std::make_shared<CustomRule>(o.custom_computation, o.slot_names), o.slot_names);
  state.slot_initializers = o.slot_initializers;
  tpu::CustomOptimizer without_rate = o;
  without_rate.learning_rate = 0.0;
  state.config = Config::dict({{"class_name", caller}, {"config", to_config(without_rate)}});
  return state;
}

}  // namespace keel::embedding_optimizer_internal

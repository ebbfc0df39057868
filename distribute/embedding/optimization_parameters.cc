#include <keel/distribute/embedding/optimization_parameters_internal.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>

#include "distribute/embedding/tpu_embedding_configuration.pb.h"

namespace keel::distribute {
namespace {

constexpr char kCustomName[] = "custom";

void write(const SGDRule&, bool, proto::OptimizationParameters& out) {
  out.mutable_stochastic_gradient_descent();
}
void write(const AdagradRule& rule, bool, proto::OptimizationParameters& out) {
  out.mutable_adagrad()->set_initial_accumulator_value(rule.initial_accumulator_value);
}
void write(const AdagradMomentumRule& rule, bool, proto::OptimizationParameters& out) {
  proto::AdagradMomentum& p = *out.mutable_adagrad_momentum();
  p.set_momentum(rule.options.momentum);
  p.set_use_nesterov(rule.options.nesterov);
  p.set_exponent(rule.options.exponent);
  p.set_beta2(rule.options.beta2);
  p.set_epsilon(rule.options.epsilon);
}
void write(const FtrlRule& rule, bool, proto::OptimizationParameters& out) {
  proto::Ftrl& p = *out.mutable_ftrl();
  p.set_l1(rule.options.l1);
  p.set_l2(rule.options.l2);
  p.set_lr_power(rule.options.learning_rate_power);
  p.set_beta(rule.options.beta);
  p.set_multiply_linear_by_lr(rule.options.multiply_linear_by_learning_rate);
  p.set_allow_zero_accumulator(rule.options.allow_zero_accumulator);
  p.set_initial_accumulator_value(rule.options.initial_accumulator_value);
}
void write(const AdamRule& rule, bool lazy, proto::OptimizationParameters& out) {
  proto::Adam& p = *out.mutable_adam();
  p.set_beta1(rule.options.beta_1);
  p.set_beta2(rule.options.beta_2);
  p.set_epsilon(rule.options.epsilon);
  p.set_use_non_lazy_adam(!lazy);
  p.set_use_sum_inside_sqrt(rule.options.sum_inside_sqrt);
}
void write(const MomentumRule& rule, bool, proto::OptimizationParameters& out) {
  out.mutable_momentum()->set_momentum(rule.momentum);
  out.mutable_momentum()->set_use_nesterov(rule.nesterov);
}
void write(const RMSPropRule& rule, bool, proto::OptimizationParameters& out) {
  proto::RmsProp& p = *out.mutable_rms_prop();
  p.set_rho(rule.rho);
  p.set_momentum(rule.momentum);
  p.set_epsilon(rule.epsilon);
}
void write(const ProximalAdagradRule& rule, bool, proto::OptimizationParameters& out) {
  proto::ProximalAdagrad& p = *out.mutable_proximal_adagrad();
  p.set_l1(rule.l1);
  p.set_l2(rule.l2);
  p.set_initial_accumulator_value(rule.initial_accumulator_value);
}
void write(const ProximalYogiRule& rule, bool, proto::OptimizationParameters& out) {
  proto::ProximalYogi& p = *out.mutable_proximal_yogi();
  p.set_l1(rule.options.l1);
  p.set_l2(rule.options.l2);
  p.set_beta1(rule.options.beta1);
  p.set_beta2(rule.options.beta2);
  p.set_epsilon(rule.options.epsilon);
  p.set_initial_accumulator_value(rule.options.initial_accumulator_value);
}
void write(const FrequencyEstimatorRule& rule, bool, proto::OptimizationParameters& out) {
  proto::FrequencyEstimator& p = *out.mutable_frequency_estimator();
  p.set_tau(rule.options.tau);
  p.set_max_delta(rule.options.max_delta);
  p.set_outlier_threshold(rule.options.outlier_threshold);
  p.set_weight_exponent(rule.options.weight_exponent);
}
void write(const LaPropRule& rule, bool, proto::OptimizationParameters& out) {
  proto::LaProp& p = *out.mutable_la_prop();
  p.set_beta1(rule.options.beta1);
  p.set_beta2(rule.options.beta2);
  p.set_epsilon(rule.options.epsilon);
  p.set_initial_slot_value(rule.options.initial_slot_value);
}
void write(const F2ARule& rule, bool, proto::OptimizationParameters& out) {
  proto::F2a& p = *out.mutable_f2a();
  p.set_rho(rule.options.rho);
  p.set_l1(rule.options.l1);
  p.set_l2(rule.options.l2);
  p.set_max_lr_multiplier(rule.options.max_lr_multiplier);
  p.set_initial_accumulator_value(rule.options.initial_accumulator_value);
  p.set_initial_local_step_value(rule.options.initial_local_step_value);
}
void write(const RowwiseAdagradRule& rule, bool, proto::OptimizationParameters& out) {
  out.mutable_rowwise_adagrad()->set_initial_accumulator_value(rule.initial_accumulator_value);
  out.mutable_rowwise_adagrad()->set_epsilon(rule.epsilon);
}
void write(const CustomRule&, bool, proto::OptimizationParameters& out) {
  out.mutable_user_defined_program()->set_name(kCustomName);
}

template <class... Rules>
bool write_as_one_of(const UpdateRule& rule, bool lazy, proto::OptimizationParameters& out) {
  const auto try_one = [&]<class Rule>(const Rule* is) {
    if (is != nullptr) write(*is, lazy, out);
    return is != nullptr;
  };
  return (try_one(dynamic_cast<const Rules*>(&rule)) || ...);
}

// Returns true for rules of dense variables that share a class with a rule of engines but have
// options that engines do not support.
bool only_dense(const UpdateRule& rule) {
  if (const auto* sgd = dynamic_cast<const SGDRule*>(&rule)) {
    return sgd->momentum != 0 || sgd->nesterov;
  }
  if (const auto* adagrad = dynamic_cast<const AdagradRule*>(&rule)) return adagrad->epsilon != 0;
  if (const auto* adam = dynamic_cast<const AdamRule*>(&rule)) {
    return adam->options.bias_correction || adam->options.amsgrad;
  }
  if (const auto* ftrl = dynamic_cast<const FtrlRule*>(&rule)) {
    return ftrl->options.l2_shrinkage != 0;
  }
  return false;
}

void write_rule(const EngineTable& table, proto::OptimizationParameters& out) {
  const UpdateRule* rule = table.update.rule.get();
  if (rule == nullptr) return;
  if (const auto* named = dynamic_cast<const EngineRule*>(rule)) rule = named->base.get();
  const bool known =
      !only_dense(*rule) &&
      write_as_one_of<SGDRule, AdagradRule, AdagradMomentumRule, FtrlRule, AdamRule, MomentumRule,
                      RMSPropRule, ProximalAdagradRule, ProximalYogiRule, FrequencyEstimatorRule,
                      LaPropRule, F2ARule, RowwiseAdagradRule, CustomRule>(*rule, table.update.lazy,
                                                                           out);
  if (!known || (!table.update.lazy && !out.has_adam())) {
    throw ValueError("EngineConfiguration: table '", table.name,
                     "' has an update rule that embedding engines do not support; use the "
                     "optimizer of a parameters class");
  }
}

void write_limits(const std::optional<double>& lower, const std::optional<double>& upper,
                  proto::ClippingLimits* (proto::OptimizationParameters::*at)(),
                  proto::OptimizationParameters& out) {
  if (lower) (out.*at)()->set_lower(*lower);
  if (upper) (out.*at)()->set_upper(*upper);
}

std::optional<double> lower_of(const proto::ClippingLimits& limits) {
  return limits.has_lower() ? std::optional(limits.lower()) : std::nullopt;
}
std::optional<double> upper_of(const proto::ClippingLimits& limits) {
  return limits.has_upper() ? std::optional(limits.upper()) : std::nullopt;
}

std::shared_ptr<const UpdateRule> engine_rule(std::shared_ptr<const UpdateRule> base,
                                              std::vector<std::string> slot_names) {
  return std::make_shared<EngineRule>(std::move(base), std::move(slot_names));
}

std::shared_ptr<const UpdateRule> read(const proto::Adagrad& p) {
  return engine_rule(std::make_shared<AdagradRule>(p.initial_accumulator_value(), 0),
                     {"accumulators"});
}
std::shared_ptr<const UpdateRule> read(const proto::AdagradMomentum& p) {
  return std::make_shared<AdagradMomentumRule>(
      AdagradMomentumRuleOptions{.momentum = p.momentum(),
                                 .nesterov = p.use_nesterov(),
                                 .exponent = p.exponent(),
                                 .beta2 = p.beta2(),
                                 .epsilon = p.epsilon()});
}
std::shared_ptr<const UpdateRule> read(const proto::Ftrl& p) {
  const FtrlRuleOptions options = {.learning_rate_power = p.lr_power(),
                                   .initial_accumulator_value = p.initial_accumulator_value(),
                                   .l1 = p.l1(),
                                   .l2 = p.l2(),
                                   .beta = p.beta(),
                                   .multiply_linear_by_learning_rate = p.multiply_linear_by_lr(),
                                   .allow_zero_accumulator = p.allow_zero_accumulator()};
  return engine_rule(std::make_shared<FtrlRule>(options), {"accumulators", "linears"});
}
std::shared_ptr<const UpdateRule> read(const proto::Adam& p) {
  const AdamRuleOptions options = {.beta_1 = p.beta1(),
                                   .beta_2 = p.beta2(),
                                   .epsilon = p.epsilon(),
                                   .bias_correction = false,
                                   .sum_inside_sqrt = p.use_sum_inside_sqrt()};
  return engine_rule(std::make_shared<AdamRule>(options), {"momenta", "velocities"});
}
std::shared_ptr<const UpdateRule> read(const proto::ProximalYogi& p) {
  return std::make_shared<ProximalYogiRule>(
      ProximalYogiRuleOptions{.beta1 = p.beta1(),
                              .beta2 = p.beta2(),
                              .epsilon = p.epsilon(),
                              .l1 = p.l1(),
                              .l2 = p.l2(),
                              .initial_accumulator_value = p.initial_accumulator_value()});
}
std::shared_ptr<const UpdateRule> read(const proto::FrequencyEstimator& p, int64_t dim) {
  if (dim != 1) {
    throw ValueError(
        "EngineConfiguration: a frequency estimator requires a table of dim 1, "
        "received ",
        dim);
  }
  return std::make_shared<FrequencyEstimatorRule>(
      FrequencyEstimatorRuleOptions{.tau = p.tau(),
                                    .max_delta = p.max_delta(),
                                    .outlier_threshold = p.outlier_threshold(),
                                    .weight_exponent = p.weight_exponent()});
}

std::shared_ptr<const UpdateRule> read(const proto::LaProp& p) {
  return std::make_shared<LaPropRule>(
      LaPropRuleOptions{.beta1 = p.beta1(),
                        .beta2 = p.beta2(),
                        .epsilon = p.epsilon(),
                        .initial_slot_value = p.initial_slot_value()});
}
std::shared_ptr<const UpdateRule> read(const proto::F2a& p) {
  return std::make_shared<F2ARule>(
      F2ARuleOptions{.rho = p.rho(),
                     .l1 = p.l1(),
                     .l2 = p.l2(),
                     .max_lr_multiplier = p.max_lr_multiplier(),
                     .initial_accumulator_value = p.initial_accumulator_value(),
                     .initial_local_step_value = p.initial_local_step_value()});
}

std::shared_ptr<const UpdateRule> read_rule(const proto::OptimizationParameters& p, int64_t dim) {
  using P = proto::OptimizationParameters;
  switch (p.parameters_case()) {
    case P::kStochasticGradientDescent:
      return engine_rule(std::make_shared<SGDRule>(), {});
    case P::kAdagrad:
      return read(p.adagrad());
    case P::kAdagradMomentum:
      return read(p.adagrad_momentum());
    case P::kFtrl:
      return read(p.ftrl());
    case P::kAdam:
      return read(p.adam());
    case P::kMomentum:
      return std::make_shared<MomentumRule>(p.momentum().momentum(), p.momentum().use_nesterov());
    case P::kRmsProp:
      return std::make_shared<RMSPropRule>(p.rms_prop().rho(), p.rms_prop().momentum(),
                                           p.rms_prop().epsilon());
    case P::kProximalAdagrad:
      return std::make_shared<ProximalAdagradRule>(p.proximal_adagrad().initial_accumulator_value(),
                                                   p.proximal_adagrad().l1(),
                                                   p.proximal_adagrad().l2());
    case P::kProximalYogi:
      return read(p.proximal_yogi());
    case P::kFrequencyEstimator:
      return read(p.frequency_estimator(), dim);
    case P::kLaProp:
      return read(p.la_prop());
    case P::kF2A:
      return read(p.f2a());
    case P::kRowwiseAdagrad:
      return std::make_shared<RowwiseAdagradRule>(p.rowwise_adagrad().initial_accumulator_value(),
                                                  p.rowwise_adagrad().epsilon());
    case P::kUserDefinedProgram:
    case P::PARAMETERS_NOT_SET:
      break;
  }
  return nullptr;
}

bool read_status(proto::OptimizationParameters::Status status, bool unspecified) {
  if (!proto::OptimizationParameters::Status_IsValid(status)) {
    throw ValueError(
        "EngineConfiguration: a status must be unspecified, enabled or disabled, received ",
        static_cast<int>(status));
  }
  if (status == proto::OptimizationParameters::UNSPECIFIED) return unspecified;
  return status == proto::OptimizationParameters::ENABLED;
}

std::optional<Quantization> read_quantization(const proto::SimulatedQuantization& p) {
  if (!p.enabled()) return {};
  const Quantization out = {.num_buckets = p.num_buckets(),
                            .lower = p.clipping_limits().lower(),
                            .upper = p.clipping_limits().upper()};
  if (out.num_buckets < 2 || !(out.lower < out.upper)) {
    throw ValueError(
        "EngineConfiguration: quantization requires at least 2 buckets and lower < upper, "
        "received ",
        out.num_buckets, " over [", out.lower, ", ", out.upper, "]");
  }
  return out;
}

}  // namespace

proto::OptimizationParameters write_optimization_parameters(const EngineTable& table) {
  using P = proto::OptimizationParameters;
  P out;
  if (table.learning_rate_tag) {
    out.mutable_learning_rate()->mutable_dynamic()->set_tag(*table.learning_rate_tag);
  } else {
    out.mutable_learning_rate()->set_constant(table.learning_rate);
  }
  const RowUpdate& u = table.update;
  write_limits(u.clip_weight_min, u.clip_weight_max, &P::mutable_clipping_limits, out);
  write_limits(u.clip_gradient_min, u.clip_gradient_max, &P::mutable_gradient_clipping_limits, out);
  out.set_gradient_accumulation_status(u.use_gradient_accumulation ? P::ENABLED : P::DISABLED);
  if (u.weight_decay_factor != 0) {
    out.set_weight_decay_factor(u.weight_decay_factor);
    out.set_multiply_weight_decay_factor_by_learning_rate(
        u.multiply_weight_decay_factor_by_learning_rate);
  }
  if (u.clipnorm > 0) out.set_clipnorm(u.clipnorm);
  if (u.global_clipnorm > 0) {
    out.set_global_clipnorm(u.global_clipnorm);
    out.set_global_clipnorm_group(u.global_clipnorm_group);
  }
  if (u.l2 > 0) out.set_l2(u.l2);
  if (u.max_norm > 0) out.set_max_norm(u.max_norm);
  if (table.low_dimensional_packing) out.set_low_dimensional_packing_status(P::ENABLED);
  if (const auto& q = table.quantization) {
    proto::SimulatedQuantization& p = *out.mutable_simulated_quantization();
    p.set_enabled(true);
    p.set_num_buckets(q->num_buckets);
    p.mutable_clipping_limits()->set_lower(q->lower);
    p.mutable_clipping_limits()->set_upper(q->upper);
  }
  write_rule(table, out);
  return out;
}

void read_optimization_parameters(const proto::OptimizationParameters& p, EngineTable& table) {
  if (p.learning_rate().has_dynamic()) {
    table.learning_rate_tag = p.learning_rate().dynamic().tag();
  } else {
    table.learning_rate = p.learning_rate().constant();
  }
  table.update = {.rule = read_rule(p, table.dim),
                  .clip_gradient_min = lower_of(p.gradient_clipping_limits()),
                  .clip_gradient_max = upper_of(p.gradient_clipping_limits()),
                  .weight_decay_factor = p.weight_decay_factor(),
                  .multiply_weight_decay_factor_by_learning_rate =
                      p.multiply_weight_decay_factor_by_learning_rate(),
                  .clip_weight_min = lower_of(p.clipping_limits()),
                  .clip_weight_max = upper_of(p.clipping_limits()),
                  .use_gradient_accumulation = read_status(p.gradient_accumulation_status(), true),
                  .lazy = !p.adam().use_non_lazy_adam(),
                  .clipnorm = p.clipnorm(),
                  .global_clipnorm = p.global_clipnorm(),
                  .global_clipnorm_group = p.global_clipnorm_group(),
                  .l2 = p.l2(),
                  .max_norm = p.max_norm()};
  const RowUpdate& u = table.update;
  if (!(u.clipnorm >= 0 && u.global_clipnorm >= 0 && u.l2 >= 0 && u.max_norm >= 0)) {
    throw ValueError("EngineConfiguration: table '", table.name,
                     "' must not have negative norms or penalties, received clipnorm ", u.clipnorm,
                     ", global_clipnorm ", u.global_clipnorm, ", l2 ", u.l2, " and max_norm ",
                     u.max_norm);
  }
  if (u.clips_by_norm() && !u.use_gradient_accumulation) {
    throw ValueError("EngineConfiguration: table '", table.name,
                     "' clips gradients by norm, which requires gradient accumulation");
  }
  table.low_dimensional_packing = read_status(p.low_dimensional_packing_status(), false);
  table.quantization = read_quantization(p.simulated_quantization());
}

}  // namespace keel::distribute

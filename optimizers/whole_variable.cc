#include <keel/optimizers/whole_variable.h>

#include <keel/framework/kernels/update_rules/whole_variable_rules.h>

namespace keel {
std::shared_ptr<const UpdateRule> AdafactorOptions::rule() const {
  return std::make_shared<AdafactorRule>(AdafactorRuleOptions{.beta_2_decay = beta_2_decay,
                                                              .epsilon_1 = epsilon_1,
                                                              .epsilon_2 = epsilon_2,
                                                              .clip_threshold = clip_threshold,
                                                              .relative_step = relative_step});
}

void AdafactorOptions::check(const char* caller) const {
  if (!(beta_2_decay < 0)) {
    throw ValueError(caller, ": beta_2_decay must be negative, received ", beta_2_decay);
  }
  check_not_negative(caller, "epsilon_1", epsilon_1);
  check_not_negative(caller, "epsilon_2", epsilon_2);
  if (!(clip_threshold > 0)) {
    throw ValueError(caller, ": clip_threshold must be positive, received ", clip_threshold);
  }
}

std::shared_ptr<const UpdateRule> MuonOptions::rule() const {
  return std::make_shared<MuonRule>(MuonRuleOptions{.adam_beta_1 = adam_beta_1,
                                                    .adam_beta_2 = adam_beta_2,
                                                    .adam_weight_decay = adam_weight_decay,
                                                    .epsilon = epsilon,
                                                    .exclude_layers = exclude_layers,
                                                    .exclude_embeddings = exclude_embeddings,
                                                    .muon_a = muon_a,
                                                    .muon_b = muon_b,
                                                    .muon_c = muon_c,
                                                    .adam_lr_ratio = adam_lr_ratio,
                                                    .momentum = momentum,
                                                    .ns_steps = ns_steps,
                                                    .nesterov = nesterov,
                                                    .rms_rate = rms_rate});
}

void MuonOptions::check(const char* caller) const {
  check_beta(caller, "adam_beta_1", adam_beta_1);
  check_beta(caller, "adam_beta_2", adam_beta_2);
  check_beta(caller, "momentum", momentum);
  check_not_negative(caller, "epsilon", epsilon);
  check_not_negative(caller, "adam_weight_decay", adam_weight_decay);
  check_not_negative(caller, "adam_lr_ratio", adam_lr_ratio);
  check_not_negative(caller, "ns_steps", static_cast<double>(ns_steps));
  check_not_negative(caller, "rms_rate", rms_rate.value_or(0));
}

KEEL_REGISTER_ALL(Optimizer, whole_variable_optimizers) {
  registry.add_all<AdafactorOptimizer, MuonOptimizer>({.package = "keras"});
}

}  // namespace keel

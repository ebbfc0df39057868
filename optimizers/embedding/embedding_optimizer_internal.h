// Conversion of the options of embedding optimizers to TableOptimizerState. Internal to
// EmbeddingOptimizer.
#pragma once

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>
#include <keel/optimizers/embedding/rowwise_adagrad.h>
#include <keel/optimizers/embedding/sparse_core_optimizers.h>
#include <keel/optimizers/embedding/tpu_parameters.h>

namespace keel::embedding_optimizer_internal {

// Checks of parameters. Each throws ValueError with the class, the parameter and its value.
void check_positive(const char* caller, const char* name, double value);
void check_not_negative(const char* caller, const char* name, double value);
void check_beta(const char* caller, const char* name, double value);  // in [0, 1)
void check_bounds(const char* caller, const char* what, const std::optional<double>& low,
                  const std::optional<double>& high);
void check_lazy(const char* caller, bool lazy_adam, bool use_gradient_accumulation);
void check_ftrl(const char* caller, double learning_rate_power, double l1, double l2);

// Sets the rule of `state` and the initializers of the rule's slots.
void set_rule(TableOptimizerState& state, std::shared_ptr<const UpdateRule> rule,
              std::vector<std::string> slot_names);

// set_adam() and set_ftrl() set the rules for both of TensorFlow's families of options. The two
// families name Adam's decay rates differently, so they are passed separately.
template <class Options>
void set_adam(TableOptimizerState& state, double beta_1, double beta_2, const Options& o) {
  set_rule(state,
           std::make_shared<AdamRule>(AdamRuleOptions{.beta_1 = beta_1,
                                                      .beta_2 = beta_2,
                                                      .epsilon = o.epsilon,
                                                      .bias_correction = false,
                                                      .sum_inside_sqrt = o.sum_inside_sqrt}),
           {"momenta", "velocities"});
  state.lazy = o.lazy_adam;
}
template <class Options>
void set_ftrl(TableOptimizerState& state, const Options& o) {
  set_rule(state,
           std::make_shared<FtrlRule>(FtrlRuleOptions{
               .learning_rate_power = o.learning_rate_power,
               .initial_accumulator_value = o.initial_accumulator_value,
               .l1 = o.l1_regularization_strength,
               .l2 = o.l2_regularization_strength,
               .beta = o.beta,
               .multiply_linear_by_learning_rate = o.multiply_linear_by_learning_rate,
               .allow_zero_accumulator = o.allow_zero_accumulator}),
           {"accumulators", "linears"});
}

// Check the options and convert them. Each throws ValueError in the cases that EmbeddingOptimizer
// lists.
TableOptimizerState state_of(const tpu::SGD& o);
TableOptimizerState state_of(const tpu::Adagrad& o);
TableOptimizerState state_of(const tpu::Adam& o);
TableOptimizerState state_of(const tpu::FTRL& o);
TableOptimizerState state_of(const tpu::AdagradMomentum& o);
TableOptimizerState state_of(const tpu::CustomOptimizer& o);
TableOptimizerState state_of(const tpu::LaProp& o);
TableOptimizerState state_of(const tpu::F2A& o);
TableOptimizerState state_of(const tpu::RowwiseAdagrad& o);
TableOptimizerState state_of(const tpu::StochasticGradientDescentParameters& o);
TableOptimizerState state_of(const tpu::AdagradParameters& o);
TableOptimizerState state_of(const tpu::AdamParameters& o);
TableOptimizerState state_of(const tpu::FtrlParameters& o);
TableOptimizerState state_of(const tpu::ProximalAdagradParameters& o);
TableOptimizerState state_of(const tpu::ProximalYogiParameters& o);
TableOptimizerState state_of(const tpu::MomentumParameters& o);
TableOptimizerState state_of(const tpu::RMSPropParameters& o);
TableOptimizerState state_of(const tpu::FrequencyEstimatorParameters& o);
// Converts a Keras optimizer. Throws ValueError if it is null.
TableOptimizerState state_of(std::shared_ptr<Optimizer> keras_optimizer);

}  // namespace keel::embedding_optimizer_internal

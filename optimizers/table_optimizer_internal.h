// How the options of embedding optimizers become what engines see. Internal to TableOptimizer.
#pragma once

#include "optimizers/table_optimizer.h"
#include "optimizers/tpu_parameters.h"

namespace keel::table_optimizer_internal {

// ValueError with the class, the parameter and its value.
void check_positive(const char* who, const char* name, double value);
void check_not_negative(const char* who, const char* name, double value);
void check_beta(const char* who, const char* name, double value);  // in [0, 1)
void check_bounds(const char* who, const char* what, const std::optional<double>& low,
                  const std::optional<double>& high);
void check_lazy(const char* who, bool lazy_adam, bool use_gradient_accumulation);
void check_ftrl(const char* who, double learning_rate_power, double l1, double l2);

// Sets the rule, and the initializers of its slots.
void set_rule(TableOptimizerState& state, std::shared_ptr<const UpdateRule> rule,
              std::vector<std::string> slot_names);

// Checks the options; ValueError as TableOptimizer says.
TableOptimizerState state_of(const tpu::SGD& o);
TableOptimizerState state_of(const tpu::Adagrad& o);
TableOptimizerState state_of(const tpu::Adam& o);
TableOptimizerState state_of(const tpu::FTRL& o);
TableOptimizerState state_of(const tpu::AdagradMomentum& o);
TableOptimizerState state_of(const tpu::CustomOptimizer& o);
TableOptimizerState state_of(const tpu::StochasticGradientDescentParameters& o);
TableOptimizerState state_of(const tpu::AdagradParameters& o);
TableOptimizerState state_of(const tpu::AdamParameters& o);
TableOptimizerState state_of(const tpu::FtrlParameters& o);
TableOptimizerState state_of(const tpu::ProximalAdagradParameters& o);
TableOptimizerState state_of(const tpu::ProximalYogiParameters& o);
TableOptimizerState state_of(const tpu::MomentumParameters& o);
TableOptimizerState state_of(const tpu::RMSPropParameters& o);
TableOptimizerState state_of(const tpu::FrequencyEstimatorParameters& o);
// Of a Keras optimizer; null: ValueError.
TableOptimizerState state_of(std::shared_ptr<Optimizer> keras_optimizer);

}  // namespace keel::table_optimizer_internal

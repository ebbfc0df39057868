#include <keel/optimizers/loss_scale.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/framework/config/registry.h>
#include <keel/optimizers/step/unscaled_gradient.h>

namespace keel {
namespace {

// Writes a variable that the replicas share. They are all in the barrier of apply_gradients(), so
// that none of them reads it now.
template <class T>
void write(const Variable& variable, T value) {
  const VariableStorage storage(variable);
  storage.make_unique();
  storage.elements<T>()[0] = value;
}

Variable state_variable(Tensor initial, const std::string& optimizer, const char* name) {
  Variable out(std::move(initial), {.name = name, .trainable = false});
  out.set_path(optimizer + "/" + name);
  return out;
}

LossScaleOptimizer::Options checked(const LossScaleOptimizer::Options& options) {
  if (!options.inner_optimizer) {
    throw ValueError("LossScaleOptimizer: inner_optimizer is missing; pass the optimizer to wrap");
  }
  if (!(options.initial_scale > 0) || !std::isfinite(options.initial_scale)) {
    throw ValueError("LossScaleOptimizer: initial_scale must be positive, received ",
                     options.initial_scale);
  }
  if (options.dynamic_growth_steps < 1) {
    throw ValueError("LossScaleOptimizer: dynamic_growth_steps must be positive, received ",
                     options.dynamic_growth_steps);
  }
  if ((*options.inner_optimizer)->class_name() == LossScaleOptimizer::kClassName) {
    throw ValueError("LossScaleOptimizer: the inner optimizer already scales the loss; pass its ",
                     "inner_optimizer()");
  }
  return options;
}

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(const Options& options)
    : Optimizer(kClassName, options.name, **checked(options).inner_optimizer),
      options_(options),
      inner_(*options_.inner_optimizer),
      iteration_(state_variable(Tensor::scalar<int64_t>(0), name(), "iteration")),
      learning_rate_(state_variable(Tensor::scalar(0.0F), name(), "learning_rate")),
      step_counter_(state_variable(Tensor::scalar<int64_t>(0), name(), "step_counter")),
      dynamic_scale_(state_variable(Tensor::scalar(static_cast<float>(options_.initial_scale)),
                                    name(), "dynamic_scale")) {}

double LossScaleOptimizer::dynamic_scale() const { return dynamic_scale_.read().item<float>(); }

Tensor LossScaleOptimizer::scale_loss(const Tensor& loss) const {
  return ops::scale(inner_->scale_loss(loss), dynamic_scale());
}

void LossScaleOptimizer::check_variables(const std::vector<Variable>& variables) const {
  const auto found = std::ranges::find_if(variables, &Variable::is_virtual);
  if (found == variables.end()) return;
  throw NotImplementedError(
      "LossScaleOptimizer: the gradients of the parameters behind the virtual variable ",
      found->path(), " cannot be unscaled; pass auto_scale_loss = false to compile()");
}

void LossScaleOptimizer::apply_gradients(const std::vector<Gradient>& gradients,
                                         const std::vector<Variable>& variables) {
  const NoGradient pause;
  check_variables(variables);
  const auto scale = static_cast<float>(dynamic_scale());
  bool finite = std::ranges::all_of(gradients, is_finite);
  distribute::Strategy& strategy = distribute::Strategy::current();
  const bool replicated = strategy.num_replicas_in_sync() > 1;
  if (replicated) {
    std::array<float, 1> bad = {finite ? 0.0F : 1.0F};
    distribute::all_reduce_sum(strategy.communicator(), bad);
    finite = bad[0] == 0;
  }
  if (finite) {
    std::vector<Gradient> unscaled;
    for (const Gradient& gradient : gradients)
      unscaled.push_back(unscaled_gradient(gradient, scale));
    inner_->apply_gradients(unscaled, variables);
  }
  if (!replicated) return update_scale(finite);
  strategy.communicator().local_barrier("LossScaleOptimizer", [&] { update_scale(finite); });
}

void LossScaleOptimizer::update_scale(bool finite) const {
  const NoGradient pause;
  const auto scale = static_cast<float>(dynamic_scale());
  const int64_t steps = step_counter_.read().item<int64_t>() + 1;
  const bool grows = finite && steps >= options_.dynamic_growth_steps;
  write(step_counter_, finite && !grows ? steps : int64_t{0});
  if (!finite) write(dynamic_scale_, scale / 2);
  if (grows) write(dynamic_scale_, scale * 2);
}

const Optimizer& LossScaleOptimizer::optimizer_of(const Variable& variable) const {
  return inner_->optimizer_of(variable);
}

std::vector<Variable> LossScaleOptimizer::wrapper_variables() const {
  std::vector<Variable> out = {iteration_, learning_rate_, step_counter_, dynamic_scale_};
  std::ranges::move(inner_->wrapper_variables(), std::back_inserter(out));
  return out;
}

Config LossScaleOptimizer::get_config() const {
  return Config::dict({{"name", name()},
                       {"inner_optimizer", optimizers::serialize(*inner_)},
                       {"initial_scale", options_.initial_scale},
                       {"dynamic_growth_steps", options_.dynamic_growth_steps}});
}

std::shared_ptr<LossScaleOptimizer> LossScaleOptimizer::from_config(const Config& config) {
  static const std::map<std::string, Config> kWithoutEffect = {{"dynamic", true},
                                                               {"learning_rate", 0.0},
                                                               {"weight_decay", {}},
                                                               {"clipnorm", {}},
                                                               {"global_clipnorm", {}},
                                                               {"clipvalue", {}},
                                                               {"use_ema", false},
                                                               {"ema_momentum", 0.99},
                                                               {"loss_scale_factor", {}},
                                                               {"ema_overwrite_frequency", {}},
                                                               {"gradient_accumulation_steps", {}}};
  Options options = {.inner_optimizer = optimizers::deserialize(config["inner_optimizer"])};
  for (const auto& [key, value] : config.entries()) {
    if (key == "inner_optimizer") continue;
    if (key == "name") {
      if (!value.is_null()) options.name = value.string();
    } else if (key == "initial_scale") {
      options.initial_scale = value.number();
    } else if (key == "dynamic_growth_steps") {
      options.dynamic_growth_steps = value.integer();
    } else {
      const auto known = kWithoutEffect.find(key);
      if (known == kWithoutEffect.end() || value != known->second) {
        throw ValueError("LossScaleOptimizer: '", key, "' must not be ", to_json(value),
                         "; set it in the inner_optimizer",
                         key == "dynamic" ? ", whose loss_scale_factor is constant" : "");
      }
    }
  }
  return std::make_shared<LossScaleOptimizer>(options);
}

KEEL_REGISTER_ALL(Optimizer, loss_scale_optimizers) {
  registry.add<LossScaleOptimizer>({.package = "keras"});
}

}  // namespace keel

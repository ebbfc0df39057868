#include "optimizers/table_optimizer.h"

#include "optimizers/adagrad.h"
#include "optimizers/adam.h"
#include "optimizers/ftrl.h"
#include "optimizers/sgd.h"

namespace keel {
namespace {

void check_bounds(const char* who, const char* what, const std::optional<double>& low,
                  const std::optional<double>& high) {
  if (low && high && !(*low <= *high)) {
    throw ValueError(who, ": ", what, "_min must not exceed ", what, "_max, received ", *low,
                     " and ", *high);
  }
}

void check_positive(const char* who, const char* name, double value) {
  if (!(value > 0)) throw ValueError(who, ": ", name, " must be positive, received ", value);
}

void check_not_negative(const char* who, const char* name, double value) {
  if (!(value >= 0)) {
    throw ValueError(who, ": ", name, " must not be negative, received ", value);
  }
}

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1)) {
    throw ValueError("Adam: ", name, " must be in [0, 1), received ", beta);
  }
}

// What the options of all classes have in common.
template <class Options>
TableOptimizerState state_of(const char* class_name, const Options& o,
                             std::shared_ptr<const UpdateRule> rule,
                             std::vector<std::string> slot_names) {
  if (o.learning_rate.schedule() != nullptr) {
    throw ValueError(class_name,
                     ": learning_rate must be a number or a function, received a "
                     "schedule; give a Keras optimizer that has it");
  }
  if (o.clipvalue) {
    check_not_negative(class_name, "clipvalue", *o.clipvalue);
    if (!o.use_gradient_accumulation) {
      throw ValueError(class_name, ": clipvalue needs use_gradient_accumulation, received false");
    }
  }
  check_bounds(class_name, "clip_weight", o.clip_weight_min, o.clip_weight_max);
  TableOptimizerState state = {
      .class_name = class_name,
      .rule = std::make_shared<EngineRule>(std::move(rule), std::move(slot_names)),
      .learning_rate = o.learning_rate};
  Options without_rate = o;
  without_rate.learning_rate = 0.0;
  state.config =
      Config::dict({{"class_name", Options::kClassName}, {"config", to_config(without_rate)}});
  if (o.clipvalue) {
    state.clip_gradient_min = -*o.clipvalue;
    state.clip_gradient_max = *o.clipvalue;
  }
  state.weight_decay_factor = o.weight_decay_factor.value_or(0);
  state.multiply_weight_decay_factor_by_learning_rate =
      o.multiply_weight_decay_factor_by_learning_rate;
  state.clip_weight_min = o.clip_weight_min;
  state.clip_weight_max = o.clip_weight_max;
  state.use_gradient_accumulation = o.use_gradient_accumulation;
  return state;
}

TableOptimizerState make(const tpu::SGD& o) {
  return state_of("SGD", o, std::make_shared<SGDRule>(), {});
}

TableOptimizerState make(const tpu::Adagrad& o) {
  check_positive("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
  return state_of("Adagrad", o, std::make_shared<AdagradRule>(o.initial_accumulator_value, 0),
                  {"accumulators"});
}

TableOptimizerState make(const tpu::Adam& o) {
  check_beta("beta_1", o.beta_1);
  check_beta("beta_2", o.beta_2);
  check_positive("Adam", "epsilon", o.epsilon);
  if (!o.lazy_adam && !o.use_gradient_accumulation) {
    throw ValueError("Adam: lazy_adam false needs use_gradient_accumulation, received false");
  }
  const AdamOptionsOfRule rule = {.beta_1 = o.beta_1,
                                  .beta_2 = o.beta_2,
                                  .epsilon = o.epsilon,
                                  .bias_correction = false,
                                  .sum_inside_sqrt = o.sum_inside_sqrt};
  TableOptimizerState state =
      state_of("Adam", o, std::make_shared<AdamRule>(rule), {"momenta", "velocities"});
  state.lazy = o.lazy_adam;
  return state;
}

TableOptimizerState make(const tpu::FTRL& o) {
  if (!(o.learning_rate_power <= 0)) {
    throw ValueError("FTRL: learning_rate_power must not be positive, received ",
                     o.learning_rate_power);
  }
  check_not_negative("FTRL", "l1_regularization_strength", o.l1_regularization_strength);
  check_not_negative("FTRL", "l2_regularization_strength", o.l2_regularization_strength);
  check_positive("FTRL", "initial_accumulator_value", o.initial_accumulator_value);
  const FtrlOptionsOfRule rule = {
      .learning_rate_power = o.learning_rate_power,
      .initial_accumulator_value = o.initial_accumulator_value,
      .l1 = o.l1_regularization_strength,
      .l2 = o.l2_regularization_strength,
      .beta = o.beta,
      .multiply_linear_by_learning_rate = o.multiply_linear_by_learning_rate};
  return state_of("FTRL", o, std::make_shared<FtrlRule>(rule), {"accumulators", "linears"});
}

TableOptimizerState named(const std::string& name) {
  if (name == "sgd") return make(tpu::SGD{});
  if (name == "adagrad") return make(tpu::Adagrad{});
  if (name == "adam") return make(tpu::Adam{});
  if (name == "ftrl") return make(tpu::FTRL{});
  throw ValueError("TableOptimizer: needs sgd, adagrad, adam or ftrl, received '", name, "'");
}

// A setting of a Keras optimizer that engines do not have.
void refuse(const char* class_name, const char* setting, const char* needed) {
  throw ValueError("TableOptimizer: a Keras ", class_name, " for tables needs ", setting, " ",
                   needed, ", received another");
}

TableOptimizerState translate(const SGDOptions& o) {
  if (o.momentum != 0) refuse("SGD", "momentum", "0");
  if (o.nesterov) refuse("SGD", "nesterov", "false");
  return make(tpu::SGD{});
}

TableOptimizerState translate(const AdagradOptions& o) {
  if (o.epsilon != 1e-7) refuse("Adagrad", "epsilon", "1e-7");
  return make(tpu::Adagrad{.initial_accumulator_value = o.initial_accumulator_value});
}

TableOptimizerState translate(const AdamOptions& o) {
  return make(tpu::Adam{.beta_1 = o.beta_1, .beta_2 = o.beta_2, .epsilon = o.epsilon});
}

TableOptimizerState translate(const FtrlOptions& o) {
  if (o.l2_shrinkage_regularization_strength != 0) {
    refuse("Ftrl", "l2_shrinkage_regularization_strength", "0");
  }
  return make(tpu::FTRL{.learning_rate_power = o.learning_rate_power,
                               .l1_regularization_strength = o.l1_regularization_strength,
                               .l2_regularization_strength = o.l2_regularization_strength,
                               .beta = o.beta,
                               .initial_accumulator_value = o.initial_accumulator_value});
}

TableOptimizerState translate(const Optimizer& optimizer) {
  if (const auto* sgd = dynamic_cast<const SGDOptimizer*>(&optimizer)) {
    return translate(sgd->options());
  }
  if (const auto* adagrad = dynamic_cast<const AdagradOptimizer*>(&optimizer)) {
    return translate(adagrad->options());
  }
  if (const auto* adam = dynamic_cast<const AdamOptimizer*>(&optimizer)) {
    return translate(adam->options());
  }
  if (const auto* ftrl = dynamic_cast<const FtrlOptimizer*>(&optimizer)) {
    return translate(ftrl->options());
  }
  throw ValueError("TableOptimizer: needs a Keras SGD, Adagrad, Adam or Ftrl, received ",
                   optimizer.class_name());
}

template <class Options>
std::shared_ptr<const TableOptimizerState> shared(const Options& options) {
  return std::make_shared<const TableOptimizerState>(make(options));
}

}  // namespace

std::vector<Slot> EngineRule::slots() const {
  std::vector<Slot> out = base->slots();
  for (size_t i = 0; i < out.size(); ++i) out[i].name = slot_names.at(i);
  return out;
}

TableOptimizer::TableOptimizer(const char* name) : TableOptimizer(std::string(name)) {}
TableOptimizer::TableOptimizer(const std::string& name)
    : state_(std::make_shared<const TableOptimizerState>(named(name))) {}
TableOptimizer::TableOptimizer(const tpu::SGD& options) : state_(shared(options)) {}
TableOptimizer::TableOptimizer(const tpu::Adagrad& options) : state_(shared(options)) {}
TableOptimizer::TableOptimizer(const tpu::Adam& options) : state_(shared(options)) {}
TableOptimizer::TableOptimizer(const tpu::FTRL& options) : state_(shared(options)) {}

TableOptimizer::TableOptimizer(std::shared_ptr<Optimizer> keras_optimizer) {
  if (keras_optimizer == nullptr) {
    throw ValueError("TableOptimizer: needs an optimizer, received an empty handle");
  }
  TableOptimizerState state = translate(*keras_optimizer);
  state.learning_rate = keras_optimizer->learning_rate_source();
  for (const Slot& slot : keras_optimizer->rule().slots()) {
    state.source_slot_names.push_back(slot.name);
  }
  state.source = std::move(keras_optimizer);
  state_ = std::make_shared<const TableOptimizerState>(std::move(state));
}

Config encode(const TableOptimizer& optimizer) {
  if (!optimizer) return {};
  if (optimizer->source != nullptr) {
    return Config::dict({{"keras", optimizers::serialize(*optimizer->source)}});
  }
  Config config = optimizer->config["config"];
  config.set("learning_rate", optimizer.current_learning_rate());
  return Config::dict({{"class_name", optimizer->class_name}, {"config", std::move(config)}});
}

void decode(const Config& config, TableOptimizer& optimizer) {
  if (config.is_null()) {
    optimizer = {};
    return;
  }
  if (const Config* keras = config.find("keras")) {
    optimizer = TableOptimizer(optimizers::deserialize(*keras));
    return;
  }
  const std::string& name = config["class_name"].string();
  const auto read = [&]<class Options>(const Options&) {
    if (name != Options::kClassName) return false;
    optimizer = TableOptimizer(from_config<Options>(config["config"], "TableOptimizer " + name));
    return true;
  };
  if (!read(tpu::SGD{}) && !read(tpu::Adagrad{}) && !read(tpu::Adam{}) &&
      !read(tpu::FTRL{})) {
    throw ValueError("TableOptimizer: unknown class '", name, "'");
  }
}

double TableOptimizer::current_learning_rate() const {
  if (state_ == nullptr) {
    throw RuntimeError("TableOptimizer.current_learning_rate: needs an optimizer, received none");
  }
  return state_->source != nullptr ? state_->source->learning_rate() : state_->learning_rate(0);
}

}  // namespace keel

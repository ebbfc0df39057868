#include <algorithm>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/embedding/embedding_optimizer_internal.h>
#include <keel/optimizers/sgd.h>

namespace keel::embedding_optimizer_internal {
namespace {

bool is_off(const Config& value) {
  return value.is_null() || (value.is_bool() && !value.boolean()) ||
         (value.is_number() && value.number() == 0);
}

// Throws ValueError if a setting that the engines do not support differs from its default. All
// settings except `carried` are compared, so that settings added to Keras optimizers later are
// rejected until they are translated.
template <class Options>
void check_settings(const char* class_name, Options options,
                    const std::vector<std::string>& carried) {
  options.learning_rate = 0.0;
  const Config settings = to_config(options);
  const Config defaults = to_config(Options{});
  const std::vector<std::string> by_all = {"name",     "learning_rate", "weight_decay",
                                           "clipnorm", "clipvalue",     "global_clipnorm"};
  for (const auto& [key, value] : settings.entries()) {
    if (std::ranges::count(by_all, key) + std::ranges::count(carried, key) > 0) continue;
    const Config& needed = defaults[key];
    if (value == needed || (is_off(value) && is_off(needed))) continue;
    throw ValueError("EmbeddingOptimizer: a Keras ", class_name, " that trains tables must have ",
                     key, " ", to_json(needed), ", received ", to_json(value));
  }
}

// Sets the options that all classes carry. Keras multiplies the decay by the learning rate.
template <class TableOptions, class KerasOptions>
TableOptimizerState with_common(TableOptions table, const KerasOptions& o) {
  table.weight_decay_factor = o.weight_decay;
  table.multiply_weight_decay_factor_by_learning_rate = o.weight_decay.has_value();
  if (o.clipvalue.value_or(0) > 0) table.clipvalue = *o.clipvalue;  // Keras ignores 0
  table.clipnorm = o.clipnorm;
  table.global_clipnorm = o.global_clipnorm;
  return state_of(table);
}

TableOptimizerState translated(const SGDOptions& o) {
  check_settings("SGD", o, {});
  return with_common(tpu::SGD{}, o);
}

TableOptimizerState translated(const AdagradOptions& o) {
  check_settings("Adagrad", o, {"initial_accumulator_value"});
  return with_common(tpu::Adagrad{.initial_accumulator_value = o.initial_accumulator_value}, o);
}

TableOptimizerState translated(const AdamOptions& o) {
  check_settings("Adam", o, {"beta_1", "beta_2", "epsilon"});
  return with_common(tpu::Adam{.beta_1 = o.beta_1, .beta_2 = o.beta_2, .epsilon = o.epsilon}, o);
}

TableOptimizerState translated(const FtrlOptions& o) {
  check_settings("Ftrl", o,
                 {"learning_rate_power", "initial_accumulator_value", "l1_regularization_strength",
                  "l2_regularization_strength", "beta"});
  return with_common(tpu::FTRL{.learning_rate_power = o.learning_rate_power,
                               .l1_regularization_strength = o.l1_regularization_strength,
                               .l2_regularization_strength = o.l2_regularization_strength,
                               .beta = o.beta,
                               .initial_accumulator_value = o.initial_accumulator_value},
                     o);
}

// Returns an empty optional unless `optimizer` is of this class. The classes are final, so derived
// classes with another update need not be considered.
template <class Class>
std::optional<TableOptimizerState> translated_as(const Optimizer& optimizer) {
  const auto* found = dynamic_cast<const Class*>(&optimizer);
  if (found == nullptr) return {};
  if (found->options().weight_decay.value_or(0) != 0 && optimizer.excludes_from_weight_decay()) {
    throw ValueError("EmbeddingOptimizer: a Keras ", optimizer.class_name(),
                     " that trains tables must decay all variables, received one with "
                     "exclude_from_weight_decay");
  }
  return translated(found->options());
}

TableOptimizerState translated(const Optimizer& optimizer) {
  if (auto state = translated_as<SGDOptimizer>(optimizer)) return *state;
  if (auto state = translated_as<AdagradOptimizer>(optimizer)) return *state;
  if (auto state = translated_as<AdamOptimizer>(optimizer)) return *state;
  if (auto state = translated_as<FtrlOptimizer>(optimizer)) return *state;
  throw ValueError(
      "EmbeddingOptimizer: the Keras optimizer must be SGD, Adagrad, Adam or Ftrl, received ",
      optimizer.class_name());
}

}  // namespace

TableOptimizerState state_of(std::shared_ptr<Optimizer> keras_optimizer) {
  if (keras_optimizer == nullptr) {
    throw ValueError(
        "EmbeddingOptimizer: the handle of the Keras optimizer is empty; pass an optimizer");
  }
  TableOptimizerState state = translated(*keras_optimizer);
  state.learning_rate = keras_optimizer->learning_rate_source();
  for (const Slot& slot : keras_optimizer->rule().slots()) {
    state.source_slot_names.push_back(slot.name);
  }
  state.source = std::move(keras_optimizer);
  return state;
}

}  // namespace keel::embedding_optimizer_internal

#include <keel/optimizers/multi_optimizer.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <iterator>
#include <ranges>
#include <stdexcept>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/strategy.h>
#include <keel/framework/base/internal/regular_expression.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/loss_scale.h>
#include <keel/optimizers/step/gradient_check.h>
#include <keel/optimizers/step/unscaled_gradient.h>

namespace keel {
namespace {

// The rule of the MultiOptimizer itself, which updates nothing and has no slots.
class NoUpdateRule final : public UpdateRule {
 public:
  void update(float*, const float*, float* const*, int64_t, const Step&) const override {}
  void update(double*, const double*, double* const*, int64_t, const Step&) const override {}
};

void check_member(const std::string& key, const OptimizerHandle& optimizer) {
  if (optimizer.shared() == nullptr) {
    throw ValueError("OptimizerMap: the optimizer of ", key, " is an empty handle");
  }
  const std::string& name = optimizer->class_name();
  if (name == MultiOptimizer::kClassName || name == LossScaleOptimizer::kClassName) {
    throw ValueError("OptimizerMap: the optimizer of ", key, " must not be a ", name,
                     "; pass the optimizers that it wraps");
  }
}

bool matches_path(const std::string& key, const std::string& path) {
  return RegularExpression(key).matches(path);
}

MultiOptimizer::Options checked(const MultiOptimizer::Options& options) {
  if (!options.optimizer_map) {
    throw ValueError("MultiOptimizer: optimizer_map is missing; pass an OptimizerMap");
  }
  for (const OptimizerHandle& optimizer : options.optimizer_map->optimizers()) {
    const Config config = optimizer->get_config();
    const Config* const scale = config.find("loss_scale_factor");
    if (scale == nullptr || scale->is_null()) continue;
    throw ValueError("MultiOptimizer: loss_scale_factor of '", optimizer->name(),
                     "' must be unset; set that of the MultiOptimizer, which holds for all");
  }
  return options;
}

}  // namespace

OptimizerMap::OptimizerMap(OptimizerHandle default_optimizer, Entries optimizer_map)
    : default_optimizer_(std::move(default_optimizer)), entries_(std::move(optimizer_map)) {
  check_member("default_optimizer", default_optimizer_);
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const std::string& key = it->first;
    check_member("'" + key + "'", it->second);
    if (std::any_of(entries_.begin(), it, [&](const auto& e) { return e.first == key; })) {
      throw ValueError("OptimizerMap: the key '", key, "' is there twice; remove one of them");
    }
    try {
      matches_path(key, "");
    } catch (const std::runtime_error& error) {
      throw ValueError("OptimizerMap: '", key, "' is not a regular expression: ", error.what());
    }
  }
}

const OptimizerHandle& OptimizerMap::operator[](const std::string& path) const {
  const OptimizerHandle* found = nullptr;
  std::string first;
  for (const auto& [key, optimizer] : entries_) {
    if (key == path) return optimizer;
  }
  for (const auto& [key, optimizer] : entries_) {
    if (!matches_path(key, path)) continue;
    if (found != nullptr) {
      throw ValueError("OptimizerMap: the keys '", first, "' and '", key, "' match the variable ",
                       path, "; a variable must have one optimizer");
    }
    found = &optimizer;
    first = key;
  }
  return found == nullptr ? default_optimizer_ : *found;
}

std::vector<OptimizerHandle> OptimizerMap::optimizers() const {
  std::vector<OptimizerHandle> out = {default_optimizer_};
  for (const auto& entry : entries_) {
    if (std::ranges::find(out, entry.second) == out.end()) out.push_back(entry.second);
  }
  return out;
}

Config OptimizerMap::get_config() const {
  Config of_keys = Config::dict();
  for (const auto& [key, optimizer] : entries_) {
    of_keys.set(key, keel::optimizers::serialize(*optimizer));
  }
  return Config::dict({{"default_optimizer", keel::optimizers::serialize(*default_optimizer_)},
                       {"optimizer_map", std::move(of_keys)}});
}

OptimizerMap OptimizerMap::from_config(const Config& config) {
  Entries entries;
  if (const Config* const of_keys = config.find("optimizer_map");
      of_keys != nullptr && !of_keys->is_null()) {
    for (const auto& [key, optimizer] : of_keys->entries()) {
      entries.emplace_back(key, keel::optimizers::deserialize(optimizer));
    }
  }
  return OptimizerMap(keel::optimizers::deserialize(config["default_optimizer"]),
                      std::move(entries));
}

MultiOptimizer::MultiOptimizer(const Options& options)
    : Optimizer(kClassName, std::make_shared<const NoUpdateRule>(),
                OptimizerOptions{.learning_rate = 0.0,
                                 .loss_scale_factor = checked(options).loss_scale_factor,
                                 .name = options.name}),
      options_(options),
      optimizers_(options_.optimizer_map->optimizers()),
      learning_rate_(Tensor::scalar(0.0F), {.name = "learning_rate", .trainable = false}) {
  learning_rate_.set_path(name() + "/learning_rate");
}

size_t MultiOptimizer::index_of(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  const auto known = indices_.find(variable.id());
  if (known != indices_.end()) return known->second;
  const OptimizerHandle& found = (*options_.optimizer_map)[variable.path()];
  const auto index =
      static_cast<size_t>(std::ranges::find(optimizers_, found) - optimizers_.begin());
  indices_.emplace(variable.id(), index);
  return index;
}

const Optimizer& MultiOptimizer::optimizer_of(const Variable& variable) const {
  return *optimizers_[index_of(variable)];
}

void MultiOptimizer::apply_gradients(const std::vector<Gradient>& gradients,
                                     const std::vector<Variable>& variables) {
  const NoGradient pause;
  const std::string caller = absl::StrCat(kClassName, ".apply_gradients");
  check_gradients(caller, gradients, variables);
  check_variables(variables);
  if (variables.empty()) return;
  distribute::Strategy& strategy = distribute::Strategy::current();
  const bool replicated = strategy.num_replicas_in_sync() > 1;
  std::vector<std::vector<Variable>> of_each(optimizers_.size());
  std::vector<std::vector<Gradient>> gradients_of_each(optimizers_.size());
  const auto scale = static_cast<float>(options_.loss_scale_factor.value_or(1));
  for (size_t i = 0; i < variables.size(); ++i) {
    const size_t o = index_of(variables[i]);
    of_each[o].push_back(variables[i]);
    gradients_of_each[o].push_back(scale == 1 ? gradients[i]
                                              : unscaled_gradient(gradients[i], scale));
  }
  // In replicas only all of them know whether a variable has a gradient.
  for (size_t o = 0; o < optimizers_.size() && !replicated; ++o) {
    const auto present = [](const Gradient& g) { return static_cast<bool>(g); };
    if (of_each[o].empty() || std::ranges::any_of(gradients_of_each[o], present)) continue;
    throw ValueError(caller, ": none of the variables of '", optimizers_[o]->name(),
                     "' has a gradient; check that the loss depends on them: ",
                     absl::StrJoin(std::views::transform(of_each[o], &Variable::path), ", "));
  }
  // Replicas call every optimizer, so that lists that do not agree are found.
  for (size_t o = 0; o < optimizers_.size(); ++o) {
    if (replicated || !of_each[o].empty()) {
      optimizers_[o]->apply_gradients(gradients_of_each[o], of_each[o]);
    }
  }
  const auto count = [&] {
    const VariableStorage storage(iterations_variable());
    storage.make_unique();
    ++storage.elements<int64_t>()[0];
  };
  if (!replicated) return count();
  strategy.communicator().local_barrier(kClassName, count);
}

std::vector<Variable> MultiOptimizer::wrapper_variables() const {
  return {iterations_variable(), learning_rate_};
}

Config MultiOptimizer::get_config() const {
  const ClassTraits keras = {.package = "keras"};
  return Config::dict(
      {{"name", name()},
       {"loss_scale_factor", encode(options_.loss_scale_factor)},
       {"optimizer_map", to_keras_object(keras, "optimizers", OptimizerMap::kClassName,
                                         options_.optimizer_map->get_config())}});
}

std::shared_ptr<MultiOptimizer> MultiOptimizer::from_config(const Config& config) {
  config_internal::reject_unknown_keys(config, {"name", "loss_scale_factor", "optimizer_map"},
                                       kClassName);
  const Config& map = config["optimizer_map"];
  if (map["class_name"] != Config(OptimizerMap::kClassName)) {
    throw NotImplementedError("MultiOptimizer: optimizer_map must be an OptimizerMap, received ",
                              to_json(map["class_name"]));
  }
  Options options = {.optimizer_map = OptimizerMap::from_config(map["config"])};
  if (const Config* const scale = config.find("loss_scale_factor")) {
    decode(*scale, options.loss_scale_factor);
  }
  if (const Config* const name = config.find("name"); name != nullptr && !name->is_null()) {
    options.name = name->string();
  }
  return std::make_shared<MultiOptimizer>(options);
}

KEEL_REGISTER_ALL(Optimizer, multi_optimizers) {
  registry.add<MultiOptimizer>({.package = "keras"});
}

}  // namespace keel

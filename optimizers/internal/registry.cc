#include <keel/optimizers/internal/registry.h>

#include <absl/strings/match.h>
#include <algorithm>

// The sources that register optimizers with KEEL_REGISTER_ALL(Optimizer, <name>, ...).
// clang-format off
#define KEEL_OPTIMIZER_GROUPS(X) \
  X(adagrad_optimizers) \
  X(adam_optimizers) \
  X(loss_scale_optimizers) \
  X(multi_optimizers) \
  X(schedule_free_optimizers) \
  X(sgd_optimizers) \
  X(whole_variable_optimizers)
// clang-format on

namespace keel {
namespace internal {

#define DECLARE(group) KEEL_DECLARE_REGISTRATION(Optimizer, group)
KEEL_OPTIMIZER_GROUPS(DECLARE)
#undef DECLARE

}  // namespace internal

namespace optimizers {
namespace {

// Keras's optimizer classes reject unknown settings, but its readers ignore unknown keys next to
// "class_name" and "config". The setting is therefore stored there.
constexpr char kLazyRows[] = "lazy_rows";

// A setting of Keras 2 optimizers that has no effect when it has this value.
struct KerasSetting {
  const char* key;
  Config off;
  bool any = false;  // true if no value affects results
};

const std::vector<KerasSetting>& keras_settings() {
  static const std::vector<KerasSetting> kSettings = {
      {"decay", 0.0},
      {"is_legacy_optimizer", false},
      {"jit_compile", {}, true},
  };
  return kSettings;
}

bool same(const Config& a, const Config& b) {
  return a.is_number() && b.is_number() ? a.number() == b.number() : a == b;
}

// Returns the config of a built-in class without the settings of Keras 2, which none of these
// classes has.
Config without_keras_settings(const std::string& class_name, Config config) {
  for (const KerasSetting& setting : keras_settings()) {
    const Config* found = config.find(setting.key);
    if (found == nullptr) continue;
    if (!setting.any && !same(*found, setting.off)) {
      throw NotImplementedError(class_name, ": config key '", setting.key, "' of Keras 2 must be ",
                                to_json(setting.off), ", received ", to_json(*found));
    }
    config.erase(setting.key);
  }
  return config;
}

// The registry and the names of its built-in classes.
struct Classes {
  Classes() {
#define ADD(group) internal::register_##group(registry);
    KEEL_OPTIMIZER_GROUPS(ADD)
#undef ADD
    builtin = registry.class_names();
  }
  bool is_builtin(const std::string& name) const {
    return std::ranges::find(builtin, name) != builtin.end();
  }
  Registry<Optimizer> registry{"optimizer"};
  std::vector<std::string> builtin;
};

Classes& classes() {
  static Classes all;
  return all;
}

// Returns the registered name that `name` refers to.
std::string registered(std::string name) {
  // Keras 2.11 to 2.15 write built-in classes with the prefix of custom ones.
  constexpr std::string_view kCustom = "Custom>";
  const std::vector<std::string> all = optimizer_registry().class_names();
  if (std::ranges::find(all, name) != all.end()) return name;
  if (name.starts_with(kCustom)) name.erase(0, kCustom.size());
  if (name == "LossScaleOptimizerV3") return "LossScaleOptimizer";  // of Keras 2.11 to 2.15
  for (const std::string& builtin : classes().builtin) {
    if (absl::EqualsIgnoreCase(builtin, name)) return builtin;
  }
  return name;
}

}  // namespace

Registry<Optimizer>& optimizer_registry() { return classes().registry; }

OptimizerHandle get(const std::string& name) {
  return {kAdopt, optimizer_registry().make(registered(name), Config::dict())};
}

OptimizerHandle deserialize(const Config& config) {
  const std::string name = registered(config["class_name"].string());
  Config own = config["config"];
  if (const Config* lazy = config.find(kLazyRows)) own.set(kLazyRows, *lazy);
  if (classes().is_builtin(name)) own = without_keras_settings(name, std::move(own));
  return {kAdopt, optimizer_registry().make(name, own)};
}

Config serialize(const Optimizer& optimizer) {
  const std::string name = optimizer_registry().name_of(optimizer);
  Config own = optimizer.get_config();
  std::optional<Config> lazy;
  if (const Config* found = own.find(kLazyRows)) lazy = *found;
  if (lazy) own.erase(kLazyRows);
  const ClassTraits traits = optimizer_registry().traits(name);
  Config out = traits.package.empty()
                   ? Config::dict({{"class_name", name}, {"config", std::move(own)}})
                   : to_keras_object(traits, "optimizers", name, std::move(own));
  if (lazy) out.set(kLazyRows, *lazy);
  return out;
}

}  // namespace optimizers
}  // namespace keel

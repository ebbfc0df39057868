#include <keel/optimizers/registry.h>

#include <algorithm>
#include <cctype>

#include <keel/optimizers/adadelta.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/adam_w.h>
#include <keel/optimizers/adamax.h>
#include <keel/optimizers/ftrl.h>
#include <keel/optimizers/lamb.h>
#include <keel/optimizers/lion.h>
#include <keel/optimizers/nadam.h>
#include <keel/optimizers/rmsprop.h>
#include <keel/optimizers/schedules/schedule_registry.h>
#include <keel/optimizers/sgd.h>

namespace keel::optimizers {
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

// Returns `config` without the settings of Keras 2 that the class does not know.
template <class T>
Config without_keras_settings(Config config) {
  std::vector<std::string> known;
  typename T::Options options;
  T::Options::fields(options, [&](const char* name, auto&) { known.emplace_back(name); });
  for (const KerasSetting& setting : keras_settings()) {
    const Config* found = config.find(setting.key);
    if (found == nullptr || std::ranges::find(known, setting.key) != known.end()) continue;
    if (!setting.any && !same(*found, setting.off)) {
      throw NotImplementedError(T::kClassName, ": config key '", setting.key,
                                "' of Keras 2 must be ", to_json(setting.off), ", received ",
                                to_json(*found));
    }
    config.erase(setting.key);
  }
  return config;
}

template <class T>
std::shared_ptr<Optimizer> make(const Config& config) {
  return std::make_shared<T>(
      from_config<typename T::Options>(without_keras_settings<T>(config), T::kClassName));
}

// The built-in classes.
template <class... T>
struct Classes {
  static void add_to(Registry<Optimizer>& registry) { (registry.add(T::kClassName, make<T>), ...); }
  static bool contain(const std::string& name) { return ((name == T::kClassName) || ...); }
  static std::vector<std::string> names() { return {T::kClassName...}; }
};

using Optimizers = Classes<AdadeltaOptimizer, AdagradOptimizer, AdamOptimizer, AdamWOptimizer,
                           AdamaxOptimizer, FtrlOptimizer, LambOptimizer, LionOptimizer,
                           NadamOptimizer, RMSpropOptimizer, SGDOptimizer>;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Returns the registered name that `name` refers to.
std::string registered(std::string name) {
  // Keras 2.11 to 2.15 write built-in classes with the prefix of custom ones.
  constexpr std::string_view kCustom = "Custom>";
  const std::vector<std::string> all = optimizer_registry().class_names();
  if (std::ranges::find(all, name) != all.end()) return name;
  if (name.starts_with(kCustom)) name.erase(0, kCustom.size());
  for (const std::string& builtin : Optimizers::names()) {
    if (lower(builtin) == lower(name)) return builtin;
  }
  return name;
}

}  // namespace

Registry<Optimizer>& optimizer_registry() {
  static Registry<Optimizer>& registry = []() -> Registry<Optimizer>& {
    static Registry<Optimizer> all("optimizer");
    Optimizers::add_to(all);
    return all;
  }();
  return registry;
}

OptimizerHandle get(const std::string& name) {
  return {kAdopt, optimizer_registry().make(registered(name), Config::dict())};
}

OptimizerHandle deserialize(const Config& config) {
  const std::string& name = config["class_name"].string();
  Config own = config["config"];
  if (const Config* lazy = config.find(kLazyRows)) own.set(kLazyRows, *lazy);
  return {kAdopt, optimizer_registry().make(registered(name), own)};
}

Config serialize(const Optimizer& optimizer) {
  const std::string& name = optimizer.class_name();
  Config own = optimizer.get_config();
  std::optional<Config> lazy;
  if (const Config* found = own.find(kLazyRows)) lazy = *found;
  if (lazy) own.erase(kLazyRows);
  Config out = schedules::serialized(Optimizers::contain(name) ? "keras.optimizers" : nullptr, name,
                                     std::move(own));
  if (lazy) out.set(kLazyRows, *lazy);
  return out;
}

}  // namespace keel::optimizers

#include <mutex>

#include <keel/layers/internal/class_lookup.h>
#include <keel/layers/losses/loss.h>

// The sources that register losses with KEEL_REGISTER_ALL(Loss, <name>, ...).
// clang-format off
#define KEEL_LOSS_GROUPS(X) \
  X(crossentropy_losses) \
  X(ctc_losses) \
  X(margin_losses) \
  X(probabilistic_losses) \
  X(ranking_losses) \
  X(regression_losses)
// clang-format on

namespace keel {
namespace internal {

#define DECLARE(group) KEEL_DECLARE_REGISTRATION(Loss, group)
KEEL_LOSS_GROUPS(DECLARE)
#undef DECLARE

}  // namespace internal

namespace {

// Returns the class that `name` stands for, or `name` if there is none.
std::string class_of(const std::string& name) {
  static constexpr ClassAlias kAliases[] = {{"huber_loss", "Huber"}, {"logcosh", "LogCosh"}};
  const std::string found = find_class(loss_registry().class_names(), kAliases, name);
  return found.empty() ? name : found;
}

// Returns the name of a function in Keras's files: a string, or {"class_name": "function",
// "config": name}.
std::string function_name(const Config& config) {
  return config.is_string() ? config.string() : config["config"].string();
}

}  // namespace

Registry<Loss>& loss_registry() {
  static Registry<Loss> registry("loss");
  static std::once_flag filled;
  std::call_once(filled, [] {
#define ADD(group) internal::register_##group(registry);
    KEEL_LOSS_GROUPS(ADD)
#undef ADD
  });
  return registry;
}

namespace losses {

LossHandle get(const std::string& name) {
  return {kAdopt, loss_registry().make(class_of(name), Config::dict())};
}

Config serialize(const Loss& loss) {
  return Config::dict(
      {{"class_name", loss_registry().name_of(loss)}, {"config", loss.get_config()}});
}

LossHandle deserialize(const Config& config) {
  if (config.is_string()) return get(config.string());
  std::string class_name = config["class_name"].string();
  if (class_name == "function") return get(function_name(config));
  const Config* inner = config.find("config");
  Config parameters = inner == nullptr || inner->is_null() ? Config::dict() : *inner;
  if (class_name == "LossFunctionWrapper") class_name = class_of(function_name(parameters["fn"]));
  for (const char* unused : {"dtype", "fn"}) parameters.erase(unused);
  const Config* reduction = parameters.find("reduction");
  if (reduction != nullptr && reduction->is_null()) parameters.set("reduction", "none");
  return {kAdopt, loss_registry().make(class_name, parameters)};
}

}  // namespace losses
}  // namespace keel

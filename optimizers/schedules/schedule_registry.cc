#include <keel/optimizers/schedules/schedule_registry.h>

#include <keel/optimizers/schedules/schedules.h>

namespace keel::optimizers::schedules {
namespace {

template <class... T>
struct Classes {
  static void add_to(Registry<LearningRateSchedule>& registry) { (registry.add<T>(), ...); }
  static bool contain(const std::string& name) { return ((name == T::kClassName) || ...); }
};

using Builtin =
    Classes<CosineDecaySchedule, CosineDecayRestartsSchedule, ExponentialDecaySchedule,
            InverseTimeDecaySchedule, PiecewiseConstantDecaySchedule, PolynomialDecaySchedule>;

}  // namespace

Config serialized(const char* module, const std::string& class_name, Config config) {
  Config out = Config::dict();
  if (module != nullptr) out.set("module", module);
  out.set("class_name", class_name);
  out.set("config", std::move(config));
  if (module != nullptr) out.set("registered_name", {});
  return out;
}

Registry<LearningRateSchedule>& schedule_registry() {
  static Registry<LearningRateSchedule>& registry = []() -> Registry<LearningRateSchedule>& {
    static Registry<LearningRateSchedule> all("learning rate schedule");
    Builtin::add_to(all);
    return all;
  }();
  return registry;
}

std::shared_ptr<const LearningRateSchedule> deserialize(const Config& config) {
  return schedule_registry().make(config["class_name"].string(), config["config"]);
}

Config serialize(const LearningRateSchedule& schedule) {
  const std::string name = schedule.class_name();
  return serialized(Builtin::contain(name) ? "keras.optimizers.schedules" : nullptr, name,
                    schedule.get_config());
}

}  // namespace keel::optimizers::schedules

#include <keel/optimizers/schedules/internal/schedule_registry.h>

#include <keel/optimizers/schedules/schedules.h>

namespace keel::optimizers::schedules {

Registry<LearningRateSchedule>& schedule_registry() {
  static Registry<LearningRateSchedule>& registry = []() -> Registry<LearningRateSchedule>& {
    static Registry<LearningRateSchedule> all("learning rate schedule");
    all.add_all<CosineDecaySchedule, CosineDecayRestartsSchedule, ExponentialDecaySchedule,
                InverseTimeDecaySchedule, PiecewiseConstantDecaySchedule, PolynomialDecaySchedule>(
        {.package = "keras"});
    return all;
  }();
  return registry;
}

std::shared_ptr<const LearningRateSchedule> deserialize(const Config& config) {
  return schedule_registry().make(config["class_name"].string(), config["config"]);
}

Config serialize(const LearningRateSchedule& schedule) {
  const std::string name = schedule.class_name();
  const ClassTraits traits = schedule_registry().traits(name);
  if (!traits.package.empty()) {
    return to_keras_object(traits, "optimizers.schedules", name, schedule.get_config());
  }
  return Config::dict({{"class_name", name}, {"config", schedule.get_config()}});
}

}  // namespace keel::optimizers::schedules

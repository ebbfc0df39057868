// The learning rate schedules that files may speak of.
#pragma once

#include <memory>
#include <string>

#include <keel/framework/config/registry.h>
#include <keel/optimizers/schedules/learning_rate.h>

namespace keel::optimizers::schedules {

Registry<LearningRateSchedule>& schedule_registry();

// {"class_name", "config"}. ValueError if the class is unknown or a key is missing.
std::shared_ptr<const LearningRateSchedule> deserialize(const Config& config);
Config serialize(const LearningRateSchedule& schedule);

// {"class_name", "config"}, between "module" and "registered_name" unless `module` is null.
Config serialized(const char* module, const std::string& class_name, Config config);

}  // namespace keel::optimizers::schedules

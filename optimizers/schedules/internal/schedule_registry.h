// The registry of learning rate schedules for configs and files.
#pragma once

#include <memory>
#include <string>

#include <keel/framework/config/registry.h>
#include <keel/optimizers/schedules/learning_rate.h>

namespace keel::optimizers::schedules {

// Returns the registry, which contains the built-in schedules from the start.
Registry<LearningRateSchedule>& schedule_registry();

// Creates a schedule from {"class_name", "config"}. Throws ValueError if the class is unknown or a
// key is missing.
std::shared_ptr<const LearningRateSchedule> deserialize(const Config& config);
// Returns {"class_name", "config"} of `schedule`, with Keras's "module" and "registered_name" for
// built-in schedules.
Config serialize(const LearningRateSchedule& schedule);

}  // namespace keel::optimizers::schedules

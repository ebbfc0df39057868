// The optimizers and learning rate schedules that files and names may speak of.
#pragma once

#include <keel/framework/registry.h>
#include <keel/optimizers/optimizer.h>

namespace keel::optimizers {

// Holds the built-in classes from the start; others may be added:
//   optimizers::optimizer_registry().add<MyOptimizer>();
// Built-in names are found in any case of letters, as in Keras, others as they are written.
// Configs that Keras 2 wrote for a built-in class may carry settings that it has no more ("decay",
// "is_legacy_optimizer", "jit_compile"): they are dropped if they are off, and NotImplementedError
// otherwise.
Registry<Optimizer>& optimizer_registry();

namespace schedules {

Registry<LearningRateSchedule>& schedule_registry();

// {"class_name", "config"}. ValueError if the class is unknown or a key is missing.
std::shared_ptr<const LearningRateSchedule> deserialize(const Config& config);
Config serialize(const LearningRateSchedule& schedule);

}  // namespace schedules
}  // namespace keel::optimizers

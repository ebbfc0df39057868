// The registry of optimizer classes for names, configs and files.
#pragma once

#include <keel/framework/config/registry.h>
#include <keel/optimizers/optimizer.h>

namespace keel::optimizers {

// Returns the registry, which contains the built-in classes from the start. Register others with
//   optimizers::optimizer_registry().add<MyOptimizer>();
// Built-in names are matched case-insensitively, as in Keras; other names must match exactly.
// Configs that Keras 2 wrote for a built-in class may carry settings that the class no longer has
// ("decay", "is_legacy_optimizer", "jit_compile"). They are dropped if they are off; otherwise
// reading them throws NotImplementedError.
Registry<Optimizer>& optimizer_registry();

}  // namespace keel::optimizers

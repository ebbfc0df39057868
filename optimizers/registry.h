// The optimizers that files and names may speak of.
#pragma once

#include <keel/framework/config/registry.h>
#include <keel/optimizers/optimizer.h>

namespace keel::optimizers {

// Holds the built-in classes from the start; others may be added:
//   optimizers::optimizer_registry().add<MyOptimizer>();
// Built-in names are found in any case of letters, as in Keras, others as they are written.
// Configs that Keras 2 wrote for a built-in class may carry settings that it has no more ("decay",
// "is_legacy_optimizer", "jit_compile"): they are dropped if they are off, and NotImplementedError
// otherwise.
Registry<Optimizer>& optimizer_registry();

}  // namespace keel::optimizers

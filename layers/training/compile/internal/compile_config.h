// What compile() was given, as Keras's files have it.
#pragma once

#include <keel/layers/training/compile/compile_options.h>

namespace keel {

// {"optimizer", "loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly",
// "steps_per_execution", "jit_compile"}.
Config compile_config_of(const CompileOptions& options);
// The inverse; keys may be missing. What the registries throw for classes that are not known.
CompileOptions compile_options_from(const Config& config);

}  // namespace keel

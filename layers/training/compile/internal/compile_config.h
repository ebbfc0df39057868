// Conversion of compile() options to and from the config that Keras stores in model files.
#pragma once

#include <keel/layers/training/compile/compile_options.h>

namespace keel {

// Returns a dict with the keys "optimizer", "loss", "loss_weights", "metrics", "weighted_metrics",
// "run_eagerly", "steps_per_execution" and "jit_compile".
Config compile_config_of(const CompileOptions& options);
// Converts such a dict back; missing keys keep their defaults. Throws the errors of the registries
// for unknown optimizer, loss or metric classes.
CompileOptions compile_options_from(const Config& config);

}  // namespace keel

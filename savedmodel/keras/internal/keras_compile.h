// Converts the arguments of compile() to and from the dialects of Keras's files. "compiled" is the
// form of Model::get_compile_config and compile_from_config.
#pragma once

#include <keel/framework/config/config.h>

namespace keel {

// Returns the training_config of legacy files. Losses are written with their full names because
// Keras 3 cannot resolve the short ones when it loads a file.
Config to_training_config(const Config& compiled);
// Returns the compile_config of .keras archives.
Config to_compile_config(const Config& compiled);

// Converts either form, as written by Keras 2 or 3. Returns null if it contains neither an
// optimizer nor a loss. Drops the decay of Keras 2 optimizers and prints a line to stderr, as Keras
// 3 does.
Config from_training_config(const Config& stored);

}  // namespace keel

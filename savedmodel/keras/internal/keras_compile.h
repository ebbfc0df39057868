// What compile() was given, in the dialects of Keras's files. "compiled" is the form of
// Model::get_compile_config and compile_from_config.
#pragma once

#include <keel/framework/config/config.h>

namespace keel {

// The training_config of legacy files. Losses have their full names, since Keras 3 cannot resolve
// the short ones when it loads a file.
Config to_training_config(const Config& compiled);
// The compile_config of .keras archives.
Config to_compile_config(const Config& compiled);

// Either of them, as Keras 2 and 3 write it. Null if it tells of no optimizer and no loss. The
// decay of an optimizer of Keras 2 is left out, with a line on the standard error, as Keras 3 does.
Config from_training_config(const Config& stored);

}  // namespace keel

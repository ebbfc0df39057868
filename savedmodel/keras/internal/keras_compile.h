// Converts the arguments of compile() between Model::get_compile_config() (`compiled`) and the
// forms of Keras's files.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// Returns the training_config of legacy files. Both forms are those of Keras 3.8, whose Tversky
// loss has alpha and beta exchanged; see losses::tversky(). Losses have their full names, because
// Keras 3 cannot resolve short names when it loads a file.
Config to_training_config(const Config& compiled);
// Returns the compile_config of .keras archives.
Config to_compile_config(const Config& compiled);

// Returns true for a configuration with an optimizer or a loss.
bool is_worth_saving(const Config& compiled);

// Converts either form, as Keras 2 and 3 write it, to `compiled`. Returns null if it contains
// neither an optimizer nor a loss. Like Keras 3, drops the `decay` of a Keras 2 optimizer and
// prints a warning to stderr. `keras_version` is that of the file, or empty if unknown, which
// stands for a version before 3.16.
Config from_training_config(const Config& stored, const std::string& keras_version = {});

}  // namespace keel

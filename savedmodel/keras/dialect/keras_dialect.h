// Converts configs of Keras 1 and 2 that Keras 3 would interpret differently.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

// Returns true if the config was written for Keras 1 or 2. `version` is the file's keras_version.
// If it is empty, the form of the config decides.
bool is_of_keras2(const std::string& version, const Config& model_config);
// Returns the keras_version of a legacy file, or "" if it has none.
std::string keras_version_of(const Hdf5File& file);

// Converts a config of Keras 1 or 2 to one that computes the same in Keras 3:
//   hard_sigmoid     0.2 x + 0.5 in [0, 1]; Keras 3 uses x / 6 + 0.5
//   GRU, GRUCell     a missing reset_after is false; Keras before 2.1.3 had no such option
Config from_keras2(const Config& config);

// Returns the config with "_" instead of "/" in the names of layers and in the references of a
// graph to them, because this library and Keras 3 refuse "/". Appends a number if the name is
// already used.
Config without_slashes_in_names(const Config& config);

}  // namespace keel
